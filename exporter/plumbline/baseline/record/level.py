"""How restless the level of a recording is: the spread of medians over 1, 5 and 30 minutes, the time to calm down.

A run is kept in slices of some seconds. A window ends with a slice, is at least half measured, and may hold several
runs: what lies between two runs of one probe is the turn of another.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import median

import msgspec
from msgspec import field

from plumbline.core.histogram import HistogramValue, added

SPANS = {"1m": 60.0, "5m": 300.0, "30m": 1800.0}
SLICE_S = 10.0  # Ten operations at the least in an interactive run; a hiccup of a minute has six slices
# a spread of fewer windows that do not overlap is chance
_LEAST_WINDOWS = 3
_RANK = 0.9

Quantile = Callable[[HistogramValue, float], float | None]


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in the ``seconds`` before ``ended`` (Unix seconds): operations by the place of their bucket's
    edge, and the number of edges for those above the last. Sparse, because a recording of hours has thousands."""

    ended: float
    seconds: float
    counts: dict[int, int]

    @classmethod
    def of(cls, grown: HistogramValue, *, ended: float, seconds: float) -> "Slice":
        below = (0, *grown.cumulative)
        counts = {
            place: now - before
            for place, (before, now) in enumerate(zip(below, (*grown.cumulative, grown.count), strict=True))
        }
        return cls(ended=ended, seconds=seconds, counts={place: count for place, count in counts.items() if count})

    def histogram(self, edges: tuple[float, ...]) -> HistogramValue:
        """The sum is not kept: nothing here asks for a mean."""
        cumulative = list(accumulate(self.counts.get(place, 0) for place in range(len(edges))))
        return HistogramValue(edges, cumulative, sum(self.counts.values()), 0.0)


class Level(msgspec.Struct, frozen=True):
    """``spread``: by span, the 0.9 quantile of the medians ÷ their median − 1. ``calm_s``: the longest time from
    leaving the tolerance until the level was back within it; 0 if it never left, ``None`` if the recording is too short
    or ended before it was back. ``measured_s``: how much was measured."""

    measured_s: float = 0.0
    spread: Mapping[str, float] = field(default_factory=dict)
    calm_s: float | None = None


def level_of(slices: Sequence[Slice], edges: tuple[float, ...], *, tolerance: float, quantile: Quantile) -> Level:
    """The level of one target's ``slices``, in order; ``tolerance`` is a factor of their median."""
    made = [(piece, piece.histogram(edges)) for piece in slices if piece.counts]
    measured_s = sum(piece.seconds for piece, _ in made)
    spread: dict[str, float] = {}
    for name, span_s in SPANS.items():
        if measured_s < _LEAST_WINDOWS * span_s:
            break
        medians = [value for pooled in _windows(made, span_s) if (value := quantile(pooled, 0.5))]
        if len(medians) >= _LEAST_WINDOWS:
            spread[name] = sorted(medians)[math.ceil(_RANK * len(medians)) - 1] / median(medians) - 1
    calm_s = _calm_s(made, tolerance, quantile) if measured_s >= _LEAST_WINDOWS * SPANS["1m"] else None
    return Level(measured_s, spread, calm_s)


def joined(levels: Sequence[Level]) -> Level:
    """Of several targets the median one, as with every figure of an entry."""
    spread = {
        name: median(level.spread[name] for level in levels)
        for name in SPANS
        if all(name in level.spread for level in levels)
    }
    calm = [level.calm_s for level in levels if level.calm_s is not None]
    whole = median(calm) if calm and len(calm) == len(levels) else None
    return Level(min((level.measured_s for level in levels), default=0.0), spread, whole)


def missing(level: Level) -> dict[str, float]:
    """The spans that are left out, and how many seconds must be measured for each."""
    return {name: _LEAST_WINDOWS * span_s for name, span_s in SPANS.items() if name not in level.spread}


def _windows(made: Sequence[tuple[Slice, HistogramValue]], span_s: float) -> Iterator[HistogramValue]:
    begin = made[0][0].ended - made[0][0].seconds
    first = 0
    for last, (end, _) in enumerate(made):
        if end.ended - begin < span_s - SLICE_S / 2:
            continue
        while made[first][0].ended <= end.ended - span_s + SLICE_S / 2:
            first += 1
        inside = made[first : last + 1]
        if sum(piece.seconds for piece, _ in inside) >= span_s / 2:
            yield added([histogram for _, histogram in inside])


def _calm_s(made: Sequence[tuple[Slice, HistogramValue]], tolerance: float, quantile: Quantile) -> float | None:
    levels = [(level, quantile(histogram, 0.5) or 0.0) for level, histogram in made]
    limit = tolerance * median(value for _, value in levels)
    longest, since, before = 0.0, None, None
    for entry, value in levels:
        began = entry.ended - entry.seconds
        if before is not None and began - before > SLICE_S:
            since = None  # between two runs nobody saw when it ended
        if value > limit:
            since = began if since is None else since
        elif since is not None:
            longest, since = max(longest, began - since), None
        before = entry.ended
    return longest if since is None else None
