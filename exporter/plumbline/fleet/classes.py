"""Nodes beside their class: who is out of line, and what the class as a whole achieves.

A class is a model and a role. Of each experiment (layer, device class, workload, operation, parameters) its median over
the nodes is the class's figure. A node is out of line where it is further from that, in either direction, than the
class's own spread explains: three standard deviations by the median absolute deviation (1.4826 × MAD), at least the
least tolerance of a baseline, and at most the factor of which a recording says that something else was measured. A node
that is much faster than its like measured something else, too: a cache, or another model.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from statistics import median

from msgspec import Struct

from plumbline.baseline.comparison import DIRECT
from plumbline.baseline.files import SCHEMA_VERSION, Latencies
from plumbline.baseline.model import BaselineEntry, Experiment, experiment
from plumbline.baseline.record.statistics import SPREAD_LIMIT, TOLERANCE_FLOOR, mad, median_of, quantity, rounded
from plumbline.baseline.site import LoadedSite, SiteEntry, SiteFile
from plumbline.baseline.units import Iops, Latency, Throughput
from plumbline.config.workloads import STATISTICS
from plumbline.core.grouping import grouped

_MOST_RATIO, _MOST_SPREAD = 1e3, 1e9  # SiteEntry takes no more
LEAST_NODES = 3  # of two that differ, nobody can say which is wrong
_DEVIATIONS, _OF_NORMAL = 3.0, 1.4826  # MAD × 1.4826 is the standard deviation of normally distributed figures


class ClassSpread(Struct, frozen=True):
    """One figure of a node beside its class's, in base units. ``ratio``: degradation, 2 is twice as bad; ``limit``: the
    most that is in line, ``None`` if the class is too small to judge. ``nodes``: how many have the figure."""

    node: str
    fleet_class: str
    entry: BaselineEntry
    figure: str
    value: float
    middle: float
    ratio: float
    limit: float | None
    mad_ratio: float
    nodes: int

    @property
    def outlier(self) -> bool:
        return self.limit is not None and not 1 / self.limit <= self.ratio <= self.limit


def figures(entry: BaselineEntry) -> Iterator[tuple[str, float]]:
    """The figures that nodes are compared by: the median latency (the mean where there is none) and the rates."""
    latency = next((name for name in ("p50", "mean") if entry.latency.get(name)), None)
    if latency is not None:
        yield f"latency.{latency}", entry.latency[latency]
    if entry.iops:
        yield "iops", entry.iops
    if entry.throughput:
        yield "throughput", entry.throughput


def class_spread(members: Mapping[str, LoadedSite], fleet_class: str) -> tuple[ClassSpread, ...]:
    """Every figure of the nodes of one class beside its median; by experiment, the worst node first."""
    of: dict[tuple[Experiment, str], list[tuple[str, BaselineEntry, float]]] = {}
    for node, site in members.items():
        for entry in site.entries:
            for figure, value in figures(entry):
                of.setdefault((experiment(entry), figure), []).append((node, entry, value))
    spreads: list[ClassSpread] = []
    for (_, figure), rows in of.items():
        values = [value for _, _, value in rows]
        middle, spread = median(values), mad(values)
        limit = limit_of(spread) if len(rows) >= LEAST_NODES else None
        rows.sort(key=lambda row: -_ratio(figure, row[2], middle))
        spreads += [
            ClassSpread(
                node, fleet_class, entry, figure, value, middle, _ratio(figure, value, middle), limit, spread, len(rows)
            )
            for node, entry, value in rows
        ]
    return tuple(spreads)


def limit_of(mad_ratio: float) -> float:
    """The largest ratio that is in line."""
    return min(SPREAD_LIMIT, max(TOLERANCE_FLOOR, 1 + _DEVIATIONS * _OF_NORMAL * mad_ratio))


def by_class(nodes: Mapping[str, LoadedSite]) -> dict[str, dict[str, LoadedSite]]:
    """Class → its nodes; sorted."""
    ordered = sorted(nodes, key=lambda name: (nodes[name].file.fleet_class, name))
    return {
        name: {node: nodes[node] for node in members}
        for name, members in groupby(ordered, key=lambda node: nodes[node].file.fleet_class)
    }


def class_file(fleet_class: str, members: Mapping[str, LoadedSite], *, when: datetime, by: str) -> SiteFile:
    """The accepted figures of a class: each the median of its nodes."""
    pairs = (pair for site in members.values() for pair in zip(site.entries, site.file.entries, strict=True))
    entries = grouped((pair for pair in pairs if any(figures(pair[0]))), lambda pair: experiment(pair[0]))
    return SiteFile(
        schema_version=SCHEMA_VERSION,
        source="class",
        name=fleet_class,
        fleet_class=fleet_class,
        hosts=tuple(members),
        recorded=when,
        recorded_by=by,
        tools=_tools(members.values()),
        entries=tuple(_class_entry(same) for same in entries.values()),
    )


def _tools(sites: Iterable[LoadedSite]) -> dict[str, str]:
    """Software that the nodes were accepted on, Ceph and the kernel too: the commonest version of each."""
    seen: dict[str, Counter[str]] = {}
    for site in sites:
        fingerprint = site.file.fingerprint
        more = {"ceph": fingerprint.ceph, "kernel": fingerprint.kernel} if fingerprint else {}
        for tool, version in {**site.file.tools, **more}.items():
            if version:
                seen.setdefault(tool, Counter())[version] += 1
    return {tool: versions.most_common(1)[0][0] for tool, versions in sorted(seen.items())}


def _class_entry(same: Sequence[tuple[BaselineEntry, SiteEntry]]) -> SiteEntry:
    entry, wrote = same[0]
    latencies = {
        name: Latency.of(rounded(median(values)))
        for name in STATISTICS
        if len(values := [recorded.latency[name] for recorded, _ in same if name in recorded.latency]) == len(same)
    }
    of: dict[str, list[float]] = {}
    for recorded, _ in same:
        for figure, value in figures(recorded):
            of.setdefault(figure, []).append(value)
    main = next(iter(of.values()))
    worst = [_ratio(figure, value, median(values)) for figure, values in of.items() for value in values]
    own = [recorded.tolerance_ratio for recorded, _ in same if recorded.tolerance_ratio]
    return SiteEntry(
        workload=entry.workload,
        operation=entry.operation,
        device_class=entry.device_class,
        rate_iops=wrote.rate_iops,
        latency=Latencies(**latencies),
        iops=quantity(Iops, median_of(recorded.iops for recorded, _ in same)),
        throughput=quantity(Throughput, median_of(recorded.throughput for recorded, _ in same)),
        # within what a file may hold: a node with absurd figures must not leave its class without any
        tolerance_ratio=rounded(min(_MOST_RATIO, max(TOLERANCE_FLOOR, median(own) if own else 0.0, *worst))),
        runs=len(same),
        mad_ratio=rounded(min(_MOST_RATIO, mad(main))),
        spread_ratio=rounded(min(_MOST_SPREAD, max(main) / min(main))) if min(main) else None,
        config_hash=entry.config_hash,
    )


def _ratio(figure: str, value: float, middle: float) -> float:
    return middle / value if figure in DIRECT else value / middle


def drift(before: LoadedSite | None, now: Sequence[BaselineEntry]) -> tuple[tuple[BaselineEntry, str, float], ...]:
    """What of a class's figures changed since ``before`` by more than the least tolerance: entry, figure, ratio."""
    if before is None:
        return ()
    then = {experiment(entry): dict(figures(entry)) for entry in before.entries}
    changed = []
    for entry in now:
        for figure, value in figures(entry):
            old = then.get(experiment(entry), {}).get(figure)
            if old and not 1 / TOLERANCE_FLOOR <= (ratio := _ratio(figure, value, old)) <= TOLERANCE_FLOOR:
                changed.append((entry, figure, ratio))
    return tuple(changed)
