"""The table of ``docs/sizing.md``: how many series one CPU, port, disk or probe makes, counted on recorded hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from render_metrics import GOLDENS, sections, written

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


@dataclass(frozen=True, slots=True)
class Thing:
    """What series are counted by: the values of ``labels`` on the metrics of ``collectors``."""

    what: str
    collectors: tuple[str, ...]
    labels: tuple[str, ...]


THINGS = (
    Thing("CPU", ("softnet",), ("cpu",)),
    Thing(
        "network port",
        ("link", "ethtool", "ring", "pause", "channel", "coalesce", "offload", "linkmode", "interrupts", "topology"),
        ("device",),
    ),
    Thing("bond", ("bond",), ("device",)),
    Thing("InfiniBand or RoCE adapter", ("infiniband",), ("device",)),
    Thing(
        "disk or volume: counters, identity, queue, users",
        ("disk", "device", "queue", "diskuse", "diskpresence"),
        ("device",),
    ),
    Thing("disk: health", ("health",), ("device",)),
    Thing("disk, each operation: latency histograms", ("latency",), ("device", "operation")),
    Thing("PCI Express device", ("pcie",), ("address",)),
    Thing("software array, multipath disk", ("array",), ("device",)),
    Thing("canary, each operation", ("canary",), ("probe", "operation")),
    Thing("periodic probe, each operation", ("probe",), ("probe", "operation")),
    Thing("OSD of the cluster, where the map is asked", ("cephmap",), ("ceph_daemon",)),
    Thing("pool of the cluster, where the map is asked", ("cephmap",), ("pool_id",)),
    Thing("node: TCP", ("tcp",), ()),
    Thing("node: kernel settings", ("sysctl",), ()),
    Thing("node: the collectors themselves", ("the daemon itself",), ()),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a page; ``metric`` is its family's name."""

    page: str
    metric: str
    labels: dict[str, str]


def lines_of(page: Path, metrics: Collection[str]) -> Iterator[Line]:
    """Every series of these metrics; a histogram's samples belong to its family."""
    for line in page.read_text("utf-8").splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        metric = name if name in metrics else _HISTOGRAM.sub("", name)
        if metric in metrics:
            yield Line(page.stem, metric, dict(_LABEL.findall(line.rpartition("}")[0])))


def counts(thing: Thing, lines: Iterable[Line], collector: Mapping[str, str]) -> list[int]:
    """Series of each one there is, ascending. A series without the labels belongs to none."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        if collector[line.metric] in thing.collectors and line.labels.keys() >= set(thing.labels):
            found[line.page, *(line.labels[each] for each in thing.labels)] += 1
    return sorted(found.values())


def sizing_table(pages: Iterable[Path] = ()) -> str:
    """The generated part of ``docs/sizing.md``."""
    pages = tuple(pages) or tuple(sorted(GOLDENS.glob("*.prom")))
    # probe and canary share some metrics: those count for the canary, which is named first
    collector = {spec.name: each.name for each in reversed(sections(written())) for spec in each.specs}
    series = [line for page in pages for line in lines_of(page, collector.keys())]
    lines = ["| of each | seen | fewest | median | most | collectors |", "| --- | --- | --- | --- | --- | --- |"]
    for thing in THINGS:
        numbers = counts(thing, series, collector)
        names = ", ".join(f"`{each}`" if " " not in each else each for each in thing.collectors)
        lines.append(
            f"| {thing.what} | {len(numbers)} | {numbers[0]} | {median(numbers):g} | {numbers[-1]} | {names} |"
        )
    return "\n".join(lines) + "\n"
