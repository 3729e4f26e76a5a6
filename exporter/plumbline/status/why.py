"""Why this node, or one part of it, is not as it was accepted: the facts for and against, and what to do first.

The daemon answers it as JSON; ``plumbline why`` prints it.
"""

import re
from collections.abc import Iterator
from shlex import quote

from msgspec import Struct

from plumbline.core import jsontext
from plumbline.core.units import count_text, seconds_text
from plumbline.status import steps
from plumbline.status.layers import LayerState, LayerVerdict, judge_layers
from plumbline.status.model import Level, OsdRow, ProbeRow, StatusModel
from plumbline.status.peers import compare
from plumbline.status.steps import NOTHING, Step
from plumbline.status.verdict import judge


class Fact(Struct, frozen=True):
    """``about``: a layer, probe, OSD or device. ``runbook``: its path on the daemon."""

    about: str
    level: Level
    text: str
    command: str = ""
    runbook: str = ""


class Explanation(Struct, frozen=True):
    """``level``: of ``headline``. Facts speak for a fault, against one, or could not be judged."""

    host: str
    level: Level
    headline: str
    facts_for: tuple[Fact, ...] = ()
    against: tuple[Fact, ...] = ()
    unknown: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()


def answer(model: StatusModel, what: str) -> bytes | None:
    """What :func:`explain` finds, as JSON; names that are not UTF-8 are escaped."""
    explanation = explain(model, what)
    return None if explanation is None else jsontext.encode(explanation)


def explain(model: StatusModel, what: str = "") -> Explanation | None:
    """``what``: a layer, probe, OSD, disk or port of this node, ``None`` if there is no such thing; empty: the node."""
    verdicts = judge_layers(model)
    if what:
        return _part(model, verdicts, what)
    whole = judge(model, verdicts)
    bad, good = tuple(_facts(verdicts, (Level.BAD, Level.NOTE))), tuple(_facts(verdicts, (Level.GOOD,)))
    notes = (*(f"In maintenance: {lease}" for lease in model.maintenance), *whole.notes)
    return Explanation(model.host, whole.level, whole.headline, bad, good, tuple(_unjudged(verdicts)), notes)


def _facts(verdicts: tuple[LayerVerdict, ...], levels: tuple[Level, ...]) -> Iterator[Fact]:
    """Those of the suspected layers first, the others from the lowest layer up."""
    for verdict in sorted(verdicts, key=lambda verdict: not verdict.suspected):
        for basis in verdict.basis:
            if basis.level in levels:
                yield _fact(verdict.layer, basis.level, basis.text, basis.step)


def _unjudged(verdicts: tuple[LayerVerdict, ...]) -> Iterator[Fact]:
    for verdict in verdicts:
        if verdict.state is LayerState.NOT_JUDGED:
            yield _fact(verdict.layer, Level.NEUTRAL, f"{verdict.state}: {verdict.why}")


def _part(model: StatusModel, verdicts: tuple[LayerVerdict, ...], what: str) -> Explanation | None:
    own = [verdict for verdict in verdicts if verdict.layer == what]
    facts = [*_facts(tuple(own), tuple(Level)), *_rows(model, f"osd.{what}" if what.isdigit() else what)]
    facts += _unjudged(tuple(own))
    if not facts:
        return None
    bad = [fact for fact in facts if fact.level in (Level.BAD, Level.NOTE)]
    against = tuple(fact for fact in facts if fact.level is Level.GOOD)
    if bad:
        level, headline = min((fact.level for fact in bad), key=(Level.BAD, Level.NOTE).index), f"{what}: {bad[0].text}"
    elif against:
        level, headline = Level.GOOD, f"{what}: nothing is out of line"
    else:
        level, headline = Level.NEUTRAL, f"{what}: nothing judges it here"
    unknown = tuple(fact for fact in facts if fact.level is Level.NEUTRAL)
    osds = dict.fromkeys(fact.about for fact in facts if fact.about.startswith("osd."))
    notes = tuple(f"Who loads {osd}: plumbline ceph top --clients {osd}" for osd in osds)
    return Explanation(model.host, level, headline, tuple(bad), against, unknown, notes)


def _rows(model: StatusModel, what: str) -> Iterator[Fact]:
    """What is known of one OSD with its disks, disk with its OSDs, port, or probe."""
    osds = [osd for osd in model.osds if what == osd.daemon or what in osd.disks]
    disks = [disk for disk in model.disks if what == disk.device or what in disk.osds]
    compared = compare(model.disks, model.window_s)
    subjects = {what, *(osd.daemon for osd in osds), *(disk.device for disk in disks)}
    for osd in osds:
        yield from _osd(osd)
    for disk in disks:
        means = (("read", disk.read_mean_s), ("write", disk.write_mean_s))
        known = ", ".join(f"{kind} {seconds_text(mean)}" for kind, mean in means if mean is not None)
        text = f"{known or 'no operation yet'} on average since boot"
        yield _fact(disk.device, Level.NEUTRAL, text, Step(command=f"plumbline disk {quote(disk.device)}"))
        if beside := compared.get(disk.device):
            level, step = (Level.BAD, steps.disk(disk.device)) if beside.out_of_line else (Level.GOOD, NOTHING)
            yield _fact(disk.device, level, beside.text, step)
    for nic in (nic for nic in model.nics if nic.device == what):
        for lost in (lost for lost in nic.losses if lost.grew and not lost.benign):
            yield _fact(what, Level.BAD if lost.out_of_line else Level.NEUTRAL, lost.grown, steps.loss(what, lost))
        if not any(lost.grew for lost in nic.losses) and nic.up and model.window_s is not None:
            yield _fact(what, Level.GOOD, f"no packet lost in the last {seconds_text(round(model.window_s))}")
        if nic.up is False:
            yield _fact(what, Level.NOTE, "down", steps.port("PlumblineNicLinkDown", what))
    for row in model.probes:
        if row.probe == what or subjects & set(re.split(r"[/ ]", row.probe)):
            yield _probe(row)
    for finding in model.open_findings:
        if finding.subject in subjects:
            text = f"{finding.check}: {finding.actual}; should be {finding.expected}"
            yield _fact(finding.subject, Level.NOTE, text, steps.FINDINGS)


def _osd(osd: OsdRow) -> Iterator[Fact]:
    level, state = osd.state
    step = NOTHING if level is Level.GOOD else steps.osd(osd)
    slowest = max((times.p99_s or 0.0 for times in osd.times), default=0.0)
    more = f"; p99 of the last minutes {seconds_text(slowest)}" if slowest else ""
    yield _fact(osd.daemon, level, f"{state}{more}", step)
    if osd.slow:
        text = count_text(osd.slow, "slow operation") + " in the last ten minutes"
        yield _fact(osd.daemon, Level.NOTE, text, steps.SLOW_OSD)


def _probe(row: ProbeRow) -> Fact:
    level, state = row.state
    if level is not Level.GOOD:
        return _fact(row.name, level, f"{state}{': ' if row.message else ''}{row.message}", steps.probe(row))
    if not row.judged:
        return _fact(row.name, Level.NEUTRAL, "no baseline in force")
    name, figure = max(row.judged, key=lambda pair: pair[1].excess)
    if figure.beyond:
        return _fact(row.name, Level.BAD, f"{name} {figure.word}", steps.beyond(row, figure.measure))
    return _fact(row.name, Level.GOOD, ", ".join(f"{name} {figure.word}" for name, figure in row.judged))


def _fact(about: str, level: Level, text: str, step: Step = NOTHING) -> Fact:
    return Fact(about, level, text, step.command, step.runbook)
