"""Which baselines this node shows, which may judge, which one is in force, and the latency bound that follows.

A baseline is comparable if layer, device class, workload, operation *and* ``config_hash`` agree with something that a
probe of this node measures. Comparable measured, class and site baselines may judge; a documented one may judge only
where the configuration's ``baseline.judge`` chooses its profile for the device class, and never where the document
contradicts itself. Of several from one source, the newest judges. The strongest that judges is in force, in the order
of :class:`~plumbline.baseline.model.Source`.

The bound of a target with a baseline in force is an exact bucket edge of the canary's histogram::

    bound = max(p99 × tolerance, 2 × p50), rounded up to three significant digits

A missing p99 is estimated from p95, mean or p50, in this order, assuming exponentially distributed latencies, where the
share above x is exp(−x ÷ mean): p99 = mean × ln 100 = p95 × ln 100 ÷ ln 20 = p50 × ln 100 ÷ ln 2. ``tolerance`` is the
baseline's own, or 1.5. The second term exists because a minute of recording sees less of the tail than a day does. The
bound is for the tail; other rules detect a shifted median.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from plumbline.baseline.model import BaselineEntry, Experiment, Source, Target, experiment

DEFAULT_TOLERANCE = 1.5
"""For baselines without a tolerance: between 1.25, the least of a recorded baseline, and 2, which is never normal."""

TAIL_FLOOR = 2.0  # The bound is at least this many medians

_TO_P99 = {"p99": 1.0, "p95": math.log(100) / math.log(20), "mean": math.log(100), "p50": math.log(100) / math.log(2)}
_STRENGTH = {source: rank for rank, source in enumerate(Source)}


class Comparable(Struct, frozen=True):
    entry: BaselineEntry
    judges: bool


class Incomparable(Struct, frozen=True):
    """An entry for the same layer, device class, workload and operation as ``target``, but another experiment."""

    entry: BaselineEntry
    target: Target
    would_judge: bool = True
    """False: it would only be shown, because it is a document that the configuration does not choose."""


class Judgement(Struct, frozen=True):
    """The baseline in force for a target and its latency bound in seconds, each ``None`` if there is none."""

    target: Target
    in_force: BaselineEntry | None
    bound: float | None


class Selection(Struct, frozen=True):
    """The result of :func:`select`; everything in the order of the arguments."""

    comparable: tuple[Comparable, ...]
    incomparable: tuple[Incomparable, ...]
    verdicts: tuple[Judgement, ...]

    @property
    def mismatched(self) -> tuple[Incomparable, ...]:
        """The baselines that would judge targets without a baseline in force, if their parameters agreed."""
        missing = set(self.missing)
        return tuple(
            comparable for comparable in self.incomparable if comparable.would_judge and comparable.target in missing
        )

    @property
    def missing(self) -> tuple[Target, ...]:
        return tuple(verdict.target for verdict in self.verdicts if verdict.in_force is None)


def select(entries: Sequence[BaselineEntry], targets: Sequence[Target], judge: Mapping[str, str]) -> Selection:
    """Compare ``entries`` of all sources with this node's ``targets``; ``judge``: device class → profile."""
    wanted = {experiment(target) for target in targets}
    candidates = [entry for entry in entries if experiment(entry) in wanted]
    newest = _newest_of_each_source(candidates)
    comparable = tuple(_unique(Comparable(entry, _judges(entry, newest, judge)) for entry in candidates))
    in_force: dict[Experiment, BaselineEntry] = {}
    for item in sorted((row for row in comparable if row.judges), key=lambda row: _STRENGTH[row.entry.source]):
        in_force.setdefault(experiment(item.entry), item.entry)
    return Selection(
        comparable=comparable,
        incomparable=tuple(_incomparable(entries, targets, judge)),
        verdicts=tuple(_verdict(target, in_force.get(experiment(target))) for target in targets),
    )


def bound(entry: BaselineEntry) -> float | None:
    """The latency bound in seconds (see the module docstring); ``None`` if the baseline has no latency."""
    statistic = next((name for name in _TO_P99 if name in entry.latency), None)
    if statistic is None:
        return None
    tolerance = DEFAULT_TOLERANCE if entry.tolerance_ratio is None else entry.tolerance_ratio
    tail = entry.latency[statistic] * _TO_P99[statistic] * tolerance
    return _round_up(max(tail, TAIL_FLOOR * entry.latency.get("p50", 0.0)))


def _newest_of_each_source(entries: Iterable[BaselineEntry]) -> dict[tuple[Experiment, Source], BaselineEntry]:
    """The newest entry per experiment and source. Of entries of the same age or without a date, the last one wins, as
    everywhere in the configuration. Documented profiles do not compete: the configuration chooses between them."""
    newest: dict[tuple[Experiment, Source], BaselineEntry] = {}
    for entry in entries:
        slot = (experiment(entry), entry.source)
        if slot not in newest or (entry.measured or 0.0) >= (newest[slot].measured or 0.0):
            newest[slot] = entry
    return newest


def _judges(
    entry: BaselineEntry, newest: Mapping[tuple[Experiment, Source], BaselineEntry], judge: Mapping[str, str]
) -> bool:
    if entry.source is Source.DOCUMENTED:
        return judge.get(entry.device_class) == entry.profile and not entry.doubt
    return newest[experiment(entry), entry.source] is entry


def _unique(comparable: Iterable[Comparable]) -> list[Comparable]:
    """Two site files may share a name and thus the labels of their series; then the one that judges is kept."""
    kept: dict[tuple[Experiment, Source, str], Comparable] = {}
    for row in comparable:
        label = (experiment(row.entry), row.entry.source, row.entry.profile)
        if label not in kept or row.judges:
            kept[label] = row
    return list(kept.values())


def _incomparable(
    entries: Sequence[BaselineEntry], targets: Sequence[Target], judge: Mapping[str, str]
) -> Iterable[Incomparable]:
    for target in targets:
        for entry in entries:
            if entry.key == target.key and entry.config_hash != target.config_hash:
                chosen = entry.source is not Source.DOCUMENTED or judge.get(entry.device_class) == entry.profile
                yield Incomparable(entry, target, chosen)


def _verdict(target: Target, entry: BaselineEntry | None) -> Judgement:
    return Judgement(target, entry, bound(entry) if entry else None)


def _round_up(seconds: float) -> float:
    """To three significant digits and whole nanoseconds: ``le`` is short and stays the same after every restart."""
    ns = max(1, math.ceil(round(seconds * 1e9, 3)))
    unit: int = 10 ** max(0, len(str(ns)) - 3)
    return -(-ns // unit) * unit / 1e9
