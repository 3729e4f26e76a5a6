"""The table of ``docs/sizing.md``: how many series one CPU, port, disk or probe makes, counted on recorded hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from render_metrics import GOLDENS, THEMSELVES, sections

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


ROWS: Mapping[str, tuple[str, ...]] = {
    "CPU": ("cpu",),
    "network port": ("device",),
    "bond": ("device",),
    "InfiniBand or RoCE adapter": ("device",),
    "disk or volume: counters, identity, queue, users": ("device",),
    "disk: health": ("device",),
    "disk, each operation: latency histograms": ("device", "operation"),
    "PCI Express device": ("pci_address",),
    "software array, multipath disk": ("device",),
    "canary, each operation": ("probe", "operation"),
    "periodic probe, each operation": ("probe", "operation"),
    "OSD of the cluster, where the map is asked": ("ceph_daemon",),
    "pool of the cluster, where the map is asked": ("pool_id",),
    "Lustre: import": ("import",),
    "node: TCP": (),
    "node: kernel settings": (),
    "node: pressure": (),
    "node: CPU power and huge pages": (),
    THEMSELVES: (),
}
"""What series are counted by: the values of these labels on the metrics of the collectors that name the row."""


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


def counts(labels: tuple[str, ...], lines: Iterable[Line]) -> list[int]:
    """Series of each one there is, ascending. A series without the labels belongs to none."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        if line.labels.keys() >= set(labels):
            found[line.page, *(line.labels[each] for each in labels)] += 1
    return sorted(found.values())


def sizing_table(pages: Iterable[Path] = ()) -> str:
    """The generated part of ``docs/sizing.md``."""
    pages = tuple(pages) or tuple(sorted(GOLDENS.glob("*.prom")))
    collectors = sections()
    assert {row for each in collectors for row in each.sized_by} == ROWS.keys()
    # probe and canary share some metrics: those count for the canary, which is named first
    owner = {spec.name: each for each in reversed(collectors) for spec in each.specs}
    series = [line for page in pages for line in lines_of(page, owner.keys())]
    lines = ["| of each | seen | fewest | median | most | collectors |", "| --- | --- | --- | --- | --- | --- |"]
    for row, labels in ROWS.items():
        numbers = counts(labels, (line for line in series if row in owner[line.metric].sized_by))
        names = [each.name for each in collectors if row in each.sized_by]
        shown = ", ".join(f"`{name}`" if " " not in name else name for name in names)
        lines.append(f"| {row} | {len(numbers)} | {numbers[0]} | {median(numbers):g} | {numbers[-1]} | {shown} |")
    return "\n".join(lines) + "\n"
