"""The host's counters of the last minutes, for the status page: what has grown lately, not only since boot.

The daemon makes a collection every minute anyway to judge the host. The few families below are kept from it unchanged.
Memory is bounded by :data:`LOOKS` times those families: about 4 MB on a host of 60 disks and 60 OSDs, mostly their
histograms (``tests/unit/status/test_lately.py`` counts).
"""

from __future__ import annotations

from collections.abc import Mapping

from plumbline.collectors import disk, latency, nic, osd, softnet
from plumbline.core.histogram import HistogramValue, difference
from plumbline.metrics.snapshot import Family, Snapshot
from plumbline.metrics.spec import MetricSpec

LOOKS = 6
"""One collection per minute: the oldest is five to six minutes old."""
KEPT = (disk.IO, disk.IO_SECONDS, latency.LATENCY, nic.DROPS, nic.ERRORS, osd.LATENCY, softnet.DROPPED,
        softnet.TIME_SQUEEZE)  # fmt: skip
_NAMES = frozenset(spec.name for spec in KEPT)

Values = Mapping[tuple[str, ...], float]
Histograms = Mapping[tuple[str, ...], HistogramValue]


class Lately:
    """Keeps the collections. One thread may call :meth:`remember`; any thread may read."""

    def __init__(self) -> None:
        self._looks: tuple[tuple[float, tuple[Family, ...]], ...] = ()

    def remember(self, snapshot: Snapshot, now: float) -> None:
        """Keep a collection made at ``now``, in monotonic seconds."""
        kept = tuple(family for family in snapshot.families if family.spec.name in _NAMES)
        self._looks = (*self._looks, (now, kept))[-LOOKS:]

    def before(self, now: float) -> Earlier | None:
        """The oldest collection; ``None`` if there is none."""
        if not self._looks:
            return None
        at, families = self._looks[0]
        return Earlier(now - at, families)


class Earlier:
    """A collection from some minutes ago, and what has grown since."""

    def __init__(self, age_s: float, families: tuple[Family, ...]) -> None:
        self.age_s = age_s
        self._families = families

    def grown(self, spec: MetricSpec, now: Values) -> dict[tuple[str, ...], float] | None:
        """How much each series grew. As in Prometheus, a series that fell was reset and counts from 0; so does a new
        one. ``None``: the family did not exist."""
        then = values(self._families, spec)
        if not then:
            return None
        return {
            labels: total - before if total >= (before := then.get(labels, 0.0)) else total
            for labels, total in now.items()
        }

    def times(self, spec: MetricSpec, now: Histograms) -> dict[tuple[str, ...], HistogramValue]:
        """What was counted since then; a histogram that was reset or is new counts completely."""
        then = histograms(self._families, spec)
        return {labels: _since(then.get(labels), total) for labels, total in now.items()}


def values(families: tuple[Family, ...], spec: MetricSpec) -> dict[tuple[str, ...], float]:
    """A family's numbers by label values; empty if the family is absent."""
    return {labels: value for labels, value in _series(families, spec).items() if not isinstance(value, HistogramValue)}


def histograms(families: tuple[Family, ...], spec: MetricSpec) -> dict[tuple[str, ...], HistogramValue]:
    """A family's histograms by label values; empty if the family is absent."""
    return {labels: value for labels, value in _series(families, spec).items() if isinstance(value, HistogramValue)}


def _series(families: tuple[Family, ...], spec: MetricSpec) -> Mapping[tuple[str, ...], float | HistogramValue]:
    for family in families:
        if family.spec.name == spec.name:
            return dict(zip(family.labels, family.values, strict=True))
    return {}


def _since(before: HistogramValue | None, total: HistogramValue) -> HistogramValue:
    grown = difference(before, total) if before is not None else None
    return total if grown is None else grown
