"""``plumbline baseline compare``: find both sides, compare them, print the result.

One side may be ``now``: the latest results of the daemon on the same storage path, from its state file, which is read
beside the daemon (:func:`.state.read_state`) and holds the runs of periodic probes. A canary's figures exist only in
the daemon's memory and on ``/metrics``, so they are listed as missing, with the command that measures them. A result
older than three intervals is not current, as on ``/metrics``.
"""

import argparse
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from plumbline.background.fingerprint import read_fingerprint
from plumbline.baseline import describe
from plumbline.baseline.comparison import NOT_COMPARED, Compared, Comparison, Item, Only, Side, Word, compare
from plumbline.baseline.describe import Loaded, find
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.profiles import LoadedProfile
from plumbline.baseline.site import read_site
from plumbline.collectors.probe import STALE_AFTER_INTERVALS
from plumbline.commands.node import Node, this_node
from plumbline.commands.shared import complain, show
from plumbline.core.console import line, table
from plumbline.core.units import figure_text, seconds_text
from plumbline.errors import BaselineError, ConfigError, PlumblineError, UnknownName
from plumbline.probes.run.model import PeriodicProbe
from plumbline.probes.run.plan import ProbingPlan
from plumbline.probes.run.result import ProbeResult
from plumbline.probes.run.schedule import interval_s
from plumbline.probes.run.state import ProbeRecord, read_state

NOW = "now"
_STYLE = {Word.WORSE: "bold red", Word.BETTER: "green", Word.AS_ACCEPTED: "green", Word.NOT_JUDGED: ""}
_NOTE = "yellow"
# Longer lists of names become counts
_NAMED = 24
_HEADS = ("Layer", "Workload", "Operation", "Figure", "Accepted", "Compared", "Ratio", "Tolerance", "Verdict")


def run(options: argparse.Namespace) -> int:
    """Exit code 0: nothing is worse beyond its tolerance, 1: something is, 3: it could not be compared."""
    try:
        comparison = compare_here(options.a, options.b, node=this_node(options), classes=options.classes)
    except UnknownName:
        raise
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return NOT_COMPARED
    show(options, as_data(comparison), lambda console: print_comparison(console, comparison))
    return comparison.exit_code


def compare_here(a: str, b: str, *, node: Node, classes: Iterable[str] = ()) -> Comparison:
    """Compare ``a`` with ``b``: names or paths, ``b`` also ``now``; ``classes`` are pairs such as ``ssd=nvme``. Raises
    :class:`BaselineError`, :class:`ConfigError` or :class:`StateError` when they can't be compared."""
    renamed = _classes(classes)
    if a == NOW:
        raise BaselineError(a, "only the second side can be `now`; name what was accepted first")
    accepted = _side(lookup(a, node))
    compared = _now(node) if b == NOW else _side(lookup(b, node))
    for device_class in renamed:
        if all(item.entry.device_class != device_class for item in accepted.items):
            have = ", ".join(sorted({item.entry.device_class for item in accepted.items}))
            raise UnknownName(f"--as = {device_class!r}: {accepted.name} has no such device class; it has: {have}")
    return compare(accepted, compared, renamed=renamed)


def lookup(name: str, node: Node) -> Loaded:
    """Find a baseline by its name here, or by a file's path, even another host's."""
    return find(name, node.profiles, node.sites, read=lambda path: read_site(Path(path), host=None))


def _now(node: Node) -> Side:
    """The daemon's latest results, and this host's fingerprint now."""
    items, missing = figures_now(node.plan, read_state(node.storage), now=time.time())
    ceph = node.config.ceph if any(identity.cluster for identity in node.plan.identities()) else None
    fingerprint = read_fingerprint(node.roots, environment=os.environ, ceph=ceph)
    return Side(NOW, NOW, f"the latest results on {node.host}", items, fingerprint=fingerprint, missing=missing)


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Data for ``--json``: the two sides without their items, which the rows contain."""
    return {
        "a": _side_data(comparison.a),
        "b": _side_data(comparison.b),
        "exit_code": comparison.exit_code,
        "rows": [msgspec.structs.asdict(row) | {"verdict": row.word.value} for row in comparison.rows],
        "other_parameters": comparison.others,
        "only_a": comparison.only_a,
        "only_b": comparison.only_b,
        "environment": comparison.environment,
    }


def _side_data(side: Side) -> dict[str, Any]:
    return {key: getattr(side, key) for key in ("name", "source", "title", "when", "fingerprint", "missing")}


def _side(loaded: Loaded) -> Side:
    items = tuple(Item(entry) for entry in loaded.entries)
    if isinstance(loaded, LoadedProfile):
        return Side(loaded.name, Source.DOCUMENTED.value, loaded.profile.title, items)
    (summary,) = describe.summaries({}, [loaded], {})
    file = loaded.file
    return Side(summary.name, file.source, summary.title, items, when=summary.recorded, fingerprint=file.fingerprint)


def _classes(pairs: Iterable[str]) -> dict[str, str]:
    by_class = {}
    for pair in pairs:
        ours, separator, theirs = pair.partition("=")
        if not (ours and separator and theirs):
            raise ConfigError("--as", "expected two device classes, such as ssd=nvme", value=pair)
        by_class[ours] = theirs
    return by_class


def figures_now(
    plan: ProbingPlan, records: Mapping[str, ProbeRecord], *, now: float
) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """The newest successful run of every periodic probe, in configuration order; ``now`` is in Unix seconds. Then the
    probes without current figures, with the reason and how to get them."""
    items: list[Item] = []
    missing = [
        f"{job.name}: only the daemon has a canary's figures (/metrics, status page); measure now: {_run(job.name)}"
        for job in plan.continuous
    ]
    for probe in plan.periodic:
        name = probe.identity.probe
        result = records.get(name, ProbeRecord()).success
        why = _why_not(probe, result, now)
        if result is None or why:
            missing.append(f"{name}: {why}; measure now: {_run(name)}")
        else:
            items += _items(result, now)
    return tuple(items), tuple(missing)


def _why_not(probe: PeriodicProbe, result: ProbeResult | None, now: float) -> str:
    if result is None:
        return "no run has succeeded yet"
    if result.config_hash != probe.identity.config_hash:
        return "its last run had other parameters"
    age_s = now - result.finished
    if age_s > STALE_AFTER_INTERVALS * interval_s(probe):
        return f"its last success is {seconds_text(age_s)} old, more than {STALE_AFTER_INTERVALS:g} intervals"
    return ""


def _items(result: ProbeResult, now: float) -> Iterator[Item]:
    for operation in result.operations:
        entry = BaselineEntry(
            layer=result.layer,
            device_class=result.device_class,
            workload=result.workload,
            operation=operation.operation,
            source=Source.MEASURED,
            profile=NOW,
            config_hash=result.config_hash,
            latency=operation.latency,
            iops=operation.iops,
            throughput=operation.throughput,
            measured=result.finished,
        )
        yield Item(entry, what=result.probe, age_s=max(0.0, now - result.finished))


def _run(name: str) -> str:
    return f"plumbline probe run {shlex.quote(name)}"


def print_comparison(console: Console, comparison: Comparison) -> None:
    """A table of what both sides have, then what could not be compared and why, then the verdict."""
    line(console, f"accepted: {_heading(comparison.a)}", "bold")
    line(console, f"compared: {_heading(comparison.b)}", "bold")
    if comparison.rows:
        table(console, _HEADS, [cells for row in comparison.rows for cells in _cells(row)])
    for doubt in dict.fromkeys(row.doubt for row in comparison.rows if row.doubt):
        line(console, f"not judged, the document contradicts itself: {doubt}", _NOTE)
    for other in comparison.others:
        what = f"{other.layer} {other.device_class} {other.workload} {other.operation}"
        hashes = f"{', '.join(other.a)} and {', '.join(other.b)}"
        line(console, f"not compared, other parameters: {what} (config_hash {hashes})", _NOTE)
    _only(console, f"only in {comparison.a.name}", comparison.only_a)
    _only(console, f"only in {comparison.b.name}", comparison.only_b)
    for missing in comparison.b.missing:
        line(console, f"not available: {missing}", _NOTE)
    _environment(console, comparison)
    _verdict(console, comparison)


def _heading(side: Side) -> str:
    return ", ".join(filter(None, (f"{side.name} ({side.source}): {side.title}", side.when)))


def _cells(row: Compared) -> Iterable[tuple[str | Text, ...]]:
    classes = row.device_class if row.device_class == row.device_class_b else f"{row.device_class}={row.device_class_b}"
    age = f"{seconds_text(row.age_s)} ago" if row.age_s is not None else ""
    workload = row.workload + (f" ({', '.join(filter(None, (row.what, age)))})" if row.what or age else "")
    for figure in row.figures:
        yield (
            f"{row.layer} {classes}",
            workload,
            row.operation,
            figure.name.removeprefix("latency."),
            figure_text(figure.name, figure.a),
            figure_text(figure.name, figure.b),
            f"{figure.ratio:.2f}",
            f"{figure.allowed:.2f}{'' if row.own_tolerance else ' (default)'}" if figure.allowed is not None else "",
            Text(figure.word.value, style=_STYLE[figure.word]),
        )


def _only(console: Console, heading: str, only: Sequence[Only]) -> None:
    """By layer and class. A documented profile has 170 rows that a node does not measure: many names become a count."""
    groups: dict[str, dict[str, None]] = {}
    for row in only:
        groups.setdefault(f"{row.layer} {row.device_class}", {})[row.workload] = None
    if len(only) > _NAMED:
        counts = ", ".join(f"{place} {len(workloads)}" for place, workloads in groups.items())
        line(console, f"{heading}, by layer and class (--json lists them): {counts}")
        return
    for place, workloads in groups.items():
        line(console, f"{heading}: {place}: {', '.join(workloads)}")


def _environment(console: Console, comparison: Comparison) -> None:
    if comparison.environment is None:
        without = [side.name for side in (comparison.a, comparison.b) if side.fingerprint is None]
        line(console, f"environment not compared: {' and '.join(without)} has no fingerprint")
        return
    for change in comparison.environment.changes:
        line(console, f"possible cause, {change.part.value}: {change.then} → {change.now}", _NOTE)
    if not comparison.environment.changes:
        parts = ", ".join(part.value for part in comparison.environment.compared)
        line(
            console,
            f"environment unchanged: {parts}" if parts else "environment not compared: no part is known on both sides",
        )


def _verdict(console: Console, comparison: Comparison) -> None:
    worse, better, same = (comparison.count(word) for word in (Word.WORSE, Word.BETTER, Word.AS_ACCEPTED))
    if not worse + better + same:
        line(console, "nothing could be compared", _NOTE)
        return
    for row in comparison.rows:
        beyond = [figure for figure in row.figures if figure.word is Word.WORSE]
        if beyond:
            ratios = ", ".join(f"{figure.name.removeprefix('latency.')} {figure.ratio:.2f}" for figure in beyond)
            where = " ".join(filter(None, (row.layer, row.device_class_b, row.workload, row.operation, row.what)))
            line(console, f"worse: {where}: {ratios}", "bold red")
    unjudged = comparison.count(Word.NOT_JUDGED)
    summary = f"{worse} worse beyond tolerance, {better} better, {same} as accepted"
    line(console, summary + (f", {unjudged} not judged" if unjudged else ""), "bold red" if worse else "green")
