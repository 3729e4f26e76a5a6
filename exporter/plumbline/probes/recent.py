"""The last minutes of a growing histogram: the totals only show everything since the start.

Prometheus has ``rate()`` for this; the status page and ``plumbline`` on the terminal must work without it.
"""

from __future__ import annotations

from array import array
from math import isnan, nan

from plumbline.core.histogram import HistogramValue, difference
from plumbline.probes.histogram import quantile


class RecentHistogram:
    """Snapshots of one histogram over ``width_s`` seconds, at most one every ``step_s``."""

    def __init__(self, *, width_s: float = 300.0, step_s: float = 10.0) -> None:
        self._width_s = width_s
        self._step_s = step_s
        self._snapshots: tuple[tuple[float, HistogramValue], ...] = ()  # replaced whole: any thread may read it

    def add(self, now: float, total: HistogramValue) -> None:
        """Remember the totals at ``now`` (monotonic seconds). If totals shrank or edges changed, start afresh."""
        snapshots = self._snapshots
        if snapshots:
            last_at, last = snapshots[-1]
            if difference(last, total) is None:
                snapshots = ()
            elif now - last_at < self._step_s:
                return
        snapshots = (*snapshots, (now, total))
        # keep one snapshot older than the window, so that the difference covers all of it
        while len(snapshots) > 2 and snapshots[1][0] <= now - self._width_s:
            snapshots = snapshots[1:]
        self._snapshots = snapshots

    def difference(self, total: HistogramValue) -> HistogramValue | None:
        """The increase of ``total`` since the oldest snapshot kept; ``None`` before the first one, and if ``total``
        belongs to another series."""
        snapshots = self._snapshots
        return difference(snapshots[0][1], total) if snapshots else None


class MedianHistory:
    """Medians of a growing histogram: one per ``step_s``, the last ``points`` of them.

    Memory is bounded: 8 bytes per median, plus the totals of the latest step, 6 kB for a canary's 130 buckets.
    """

    def __init__(self, *, points: int = 60, step_s: float = 60.0) -> None:
        self._points, self._step_s = points, step_s
        self._medians = array("d")  # NaN: nothing finished in that step
        self._at = 0.0
        self._total: HistogramValue | None = None

    def add(self, now: float, total: HistogramValue) -> None:
        """Take the totals at ``now`` (monotonic seconds). If totals shrank or edges changed, begin a new step."""
        since = difference(self._total, total) if self._total is not None else None
        if since is None:
            self._at, self._total = now, total
            return
        if now - self._at < self._step_s:
            return
        median = quantile(since, 0.5)
        medians = self._medians[1 - self._points :] if self._points > 1 else array("d")
        medians.append(nan if median is None else median)
        self._medians = medians  # replaced whole: the page may be iterating over the old ones
        self._at, self._total = now, total

    @property
    def values(self) -> tuple[float | None, ...]:
        """Seconds, oldest first; ``None``: nothing finished in that step."""
        return tuple(None if isnan(value) else value for value in self._medians)
