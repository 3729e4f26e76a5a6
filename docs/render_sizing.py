"""The table of ``docs/sizing.md``: how many series one CPU, port, disk or probe makes, counted on recorded hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
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


def counts(thing: Thing, pages: Iterable[Path]) -> list[int]:
    """Series of each one there is in the pages, ascending. A line without the labels belongs to none."""
    metrics = {spec.name for each in sections(written()) if each.name in thing.collectors for spec in each.specs}
    found: Counter[tuple[str, ...]] = Counter()
    for page in pages:
        for line in page.read_text("utf-8").splitlines():
            name = line.partition("{")[0].partition(" ")[0]
            if name not in metrics and _HISTOGRAM.sub("", name) not in metrics:
                continue
            labels = dict(_LABEL.findall(line.rpartition("}")[0]))
            if set(thing.labels) <= labels.keys():
                found[page.stem, *(labels[each] for each in thing.labels)] += 1
    return sorted(found.values())


def sizing_table(pages: Iterable[Path] = ()) -> str:
    """The generated part of ``docs/sizing.md``."""
    pages = tuple(pages) or tuple(sorted(GOLDENS.glob("*.prom")))
    lines = ["| of each | seen | fewest | median | most | collectors |", "| --- | --- | --- | --- | --- | --- |"]
    for thing in THINGS:
        numbers = counts(thing, pages)
        names = ", ".join(f"`{each}`" if " " not in each else each for each in thing.collectors)
        lines.append(
            f"| {thing.what} | {len(numbers)} | {numbers[0]} | {median(numbers):g} | {numbers[-1]} | {names} |"
        )
    return "\n".join(lines) + "\n"
