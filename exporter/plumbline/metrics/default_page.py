"""The default page, ``/metrics``: what alerts, the first two levels of dashboards and our commands read.

The names are in ``default_page.txt``, which ``deploy/prometheus/keeplist.py`` writes from the rules and dashboards. Of
the families below even less is read. Histograms have the buckets that verdicts need (:class:`.histogram.Coarse`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from plumbline.core.histogram import HistogramValue, coarser
from plumbline.metrics.snapshot import Family, Snapshot
from plumbline.metrics.spec import Kind, MetricSpec

NAMES: Final = frozenset(
    line for line in Path(__file__).with_name("default_page.txt").read_text("ascii").splitlines() if line[0] != "#"
)
_Rows = tuple[tuple[str, ...], ...]


class Reduction(Struct, frozen=True):
    """What of a family is left out: series whose labels match, series that another family has as well, by the same
    labels in the same order; then a label over whose values is summed."""

    without: tuple[tuple[str, re.Pattern[str]], ...] = ()
    also_in: str = ""
    summed: str = ""


_VOLUMES = ("device", re.compile(r"dm-\d+"))
_WITHOUT_DATA = ("operation", re.compile("discard|flush"))
REDUCTIONS: Final = {
    # a volume is watched for operations that hang; latency, size and settings are those of its disks
    "plumbline_disk_info": Reduction((_VOLUMES,)),
    "plumbline_disk_io_bytes_total": Reduction((_VOLUMES, _WITHOUT_DATA)),
    # rules read it where the kernel's histograms are missing
    "plumbline_disk_io_seconds_total": Reduction(
        (_VOLUMES, ("operation", re.compile("discard"))), also_in="plumbline_disk_latency_seconds"
    ),
    "plumbline_disk_queue_info": Reduction((_VOLUMES,)),
    "plumbline_disk_queue_requests": Reduction((_VOLUMES,)),
    # read where a canary waits, which reads and writes
    "plumbline_disk_queue_seconds": Reduction((_WITHOUT_DATA,)),
    # which OSD and which CPU it was is on the node itself
    "plumbline_osd_slow_operations": Reduction(summed="ceph_daemon"),
    "plumbline_softnet_packets_dropped_total": Reduction(summed="cpu"),
}


class DefaultPage:
    """Makes snapshots smaller. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: dict[str, _Plan] = {}

    def of(self, snapshot: Snapshot, also: Iterable[str] = ()) -> Snapshot:
        """The families of the default page; those named in ``also`` (with or without a suffix) as they are."""
        whole = frozenset(re.sub("_(bucket|sum|count)$", "", name) for name in also) | frozenset(also)
        labels = {family.spec.name: family.labels for family in snapshot.families}
        with self._lock:
            made = [
                family if family.spec.name in whole else self._smaller(family, labels)
                for family in snapshot.families
                if family.spec.name in NAMES or family.spec.name in whole
            ]
        families = tuple(family for family in made if family.labels)
        foreign = tuple(
            family
            for family in snapshot.foreign
            if any(sample.name in NAMES or sample.name in whole for sample in family.samples)
        )
        return replace(snapshot, families=families, foreign=foreign)

    def _smaller(self, family: Family, others: Mapping[str, _Rows]) -> Family:
        reduction = REDUCTIONS.get(family.spec.name)
        if reduction is not None:
            plan, of = self._plans.get(family.spec.name), (family.labels, others.get(reduction.also_in, ()))
            if plan is None or plan.of != of:
                plan = self._plans[family.spec.name] = _Plan(family, reduction, of)
            family = plan.family(family.values)
        if family.spec.kind is Kind.HISTOGRAM:
            return replace(
                family, values=[coarser(value) for value in family.values if isinstance(value, HistogramValue)]
            )
        return family


class _Plan:
    """Which series of a family become which of the default page's, as long as the family has the same."""

    def __init__(self, family: Family, reduction: Reduction, of: tuple[_Rows, _Rows]) -> None:
        spec, self.of = family.spec, of
        others = set(of[1])
        places = tuple(index for index, name in enumerate(spec.labels) if name != reduction.summed)
        tests = [(spec.labels.index(name), pattern) for name, pattern in reduction.without]
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, labels in enumerate(family.labels):
            if labels not in others and not any(pattern.fullmatch(labels[place]) for place, pattern in tests):
                rows.setdefault(tuple(labels[place] for place in places), []).append(row)
        names = tuple(spec.labels[place] for place in places)
        self._spec = spec if names == spec.labels else MetricSpec(spec.name, spec.kind, spec.help, names)
        self._labels, self._rows = tuple(rows), tuple(rows.values())

    def family(self, values: Sequence[float | HistogramValue]) -> Family:
        kept = [values[rows[0]] if len(rows) == 1 else sum(_numbers(values, rows)) for rows in self._rows]
        return Family(self._spec, self._labels, kept)


def _numbers(values: Sequence[float | HistogramValue], rows: Iterable[int]) -> Iterator[float]:
    for row in rows:
        value = values[row]
        assert not isinstance(value, HistogramValue)
        yield value
