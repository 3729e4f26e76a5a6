"""The verdict that a person needs first at 3 a.m.: what is wrong here, or that nothing is.

It never says "all is well" if nothing could be judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from plumbline.checks.model import Severity
from plumbline.core.units import count_text, seconds_text
from plumbline.sources.ceph.osds import OsdState
from plumbline.status.layers import LayerVerdict, height
from plumbline.status.model import Level, Measure, ProbeRow, StatusModel, missing_baseline_hint
from plumbline.status.peers import compare


class HostVerdict(Struct, frozen=True):
    """The first thing on the page: one sentence, then the facts behind it, from the lowest layer up."""

    level: Level
    headline: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Findings:
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def judge(model: StatusModel, layers: Sequence[LayerVerdict]) -> HostVerdict:
    """``layers``: those of :func:`~plumbline.status.layers.judge_layers`."""
    findings = _Findings()
    _judge_losses(model, findings)
    findings.problems += (
        f"{disk.device} is slower than its peers: {disk.text}"
        for disk in compare(model.disks, model.window_s).values()
        if disk.out_of_line
    )
    _judge_osds(model, findings)
    for row in sorted(model.probes, key=lambda row: height(row.layer)):
        _judge_probe(row, findings)
    findings.notes += model.standing
    _judge_findings(model, findings)
    _judge_daemon(model, findings)
    problems, notes = tuple(findings.problems), tuple(findings.notes)
    suspicion = _suspicion(layers)
    if problems or suspicion:
        headline = problems[0] if len(problems) == 1 else suspicion or f"{len(problems)} problems"
        return HostVerdict(Level.BAD, headline, problems, notes)
    if model.waiting_for is not None:
        return HostVerdict(Level.NOTE, f"Still starting: {model.waiting_for}", (), notes)
    judged = [row for row in model.probes if row.judged]
    if not judged:
        return HostVerdict(Level.NOTE, "Nothing has failed, but no probe can be judged yet", (), notes)
    level = Level.NOTE if notes else Level.GOOD
    if len(judged) == len(model.probes):
        return HostVerdict(level, "Nothing is wrong: every probe performs as accepted", (), notes)
    share = f"{len(judged)} of {len(model.probes)} measurements"
    return HostVerdict(level, f"No problem where a baseline exists ({share})", (), notes)


def _suspicion(layers: Sequence[LayerVerdict]) -> str:
    """``disk is suspected: loop1: p99 of write …; rados may only be slow because of it``; empty: nothing is."""
    suspects = [verdict for verdict in layers if verdict.suspected]
    if not suspects:
        return ""
    shown = "; ".join(verdict.basis[0].text.removeprefix("worst: ") for verdict in suspects if verdict.basis)
    above = ", ".join(verdict.layer for verdict in layers if verdict.above)
    effect = f"; {above} may only be slow because of it" if above else ""
    return f"{' or '.join(verdict.layer for verdict in suspects)} is suspected: {shown}{effect}"


def _judge_daemon(model: StatusModel, findings: _Findings) -> None:
    if model.config_error:
        findings.problems.append(f"The new configuration was refused, the old one is in force: {model.config_error}")
    for health in model.collectors:
        if not health.success:
            findings.problems.append(f"Collector {health.name} fails: {health.reason}")


def _judge_probe(row: ProbeRow, findings: _Findings) -> None:
    what = row.name
    if row.stuck_s is not None:
        findings.problems.append(f"{what} has been in flight for {seconds_text(row.stuck_s)}: something below it hangs")
    elif row.success is False:
        findings.problems.append(f"{what} failed{': ' if row.message else ''}{row.message}")
    worse = [
        f"{name} {figure.word} ({figure.text(figure.measured)}, accepted {figure.text(figure.baseline)})"
        for name, figure in row.judged
        if figure.beyond and figure.measured is not None and figure.baseline is not None
    ]
    if worse:
        slower = (
            "slower" if any(judged.beyond for _, judged in row.judged if judged.measure is Measure.LATENCY) else "less"
        )
        findings.problems.append(f"{what} is {slower} than accepted: {', '.join(worse)}")
    if row.overdue:
        findings.notes.append(f"{what} is overdue{': ' if row.message else ''}{row.message}")
    if row.success is None:
        findings.notes.append(f"{what} has not run yet{': ' if row.message else ''}{row.message}")
    elif not row.baseline:
        findings.notes.append(f"{what} has no baseline; {missing_baseline_hint(recordable=row.recordable)}")
    elif not row.judges:
        findings.notes.append(
            f"{what} is shown beside another site's figures ({row.baseline}), which are not used to judge this node"
        )


def _judge_osds(model: StatusModel, findings: _Findings) -> None:
    for osd in model.osds:
        if osd.answer is OsdState.ENDED:
            findings.problems.append(f"{osd.daemon} has ended: it was stopped or crashed")
        elif not osd.answers:
            findings.problems.append(f"{osd.daemon} does not answer on its admin socket")
        elif osd.blocked:
            oldest = "" if not osd.blocked_age_s else f", the oldest for {seconds_text(osd.blocked_age_s)}"
            findings.problems.append(f"{osd.daemon}: {osd.blocked:,} operations are blocked{oldest}")
        elif osd.slow:
            findings.notes.append(f"{osd.daemon}: {osd.slow:,} slow operations in the last ten minutes")


def _judge_losses(model: StatusModel, findings: _Findings) -> None:
    for nic in model.nics:
        for loss in nic.losses:
            if loss.out_of_line:
                findings.problems.append(f"{nic.device} is losing packets: {loss.grown}")
    softnet = model.softnet
    if softnet is not None and softnet.out_of_line:
        findings.problems.append(f"The kernel's backlog overflows: {softnet.dropped_grew:,} more packets dropped")
    if softnet is not None and softnet.time_squeeze_grew:
        more = count_text(softnet.time_squeeze_grew, "more time")
        findings.notes.append(f"Packet processing ran out of its time slice {more} (time squeeze)")


def _judge_findings(model: StatusModel, findings: _Findings) -> None:
    """Critical findings are problems; warnings are counted in one note, and the table lists them all."""
    for entry in model.open_findings:
        if entry.severity is Severity.CRITICAL:
            findings.problems.append(f"{entry.subject}: {entry.actual}; should be {entry.expected}")
    warnings = sum(finding.severity is Severity.WARNING for finding in model.open_findings)
    if warnings:
        findings.notes.append(f"{count_text(warnings, 'finding asks', 'findings ask')} for a change, see Findings")
