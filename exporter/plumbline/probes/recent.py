"""The last minutes of a growing histogram: what happened lately, where the totals only say what happened ever.

Prometheus has ``rate()`` for this; the status page and ``plumbline`` on the terminal have to work without it.
"""

from __future__ import annotations

from collections import deque

from plumbline.catalogue import HistogramValue, difference


class RecentHistogram:
    """Snapshots of one histogram over ``width_s`` seconds, at most one every ``step_s``."""

    def __init__(self, *, width_s: float = 300.0, step_s: float = 10.0) -> None:
        self._width_s = width_s
        self._step_s = step_s
        self._snapshots: deque[tuple[float, HistogramValue]] = deque()

    def add(self, now: float, total: HistogramValue) -> None:
        """Remember the totals at ``now`` (monotonic seconds). Totals that shrank or changed edges start afresh."""
        if self._snapshots:
            last_at, last = self._snapshots[-1]
            if total.edges != last.edges or total.count < last.count:
                self._snapshots.clear()
            elif now - last_at < self._step_s:
                return
        self._snapshots.append((now, total))
        # keep one snapshot older than the window, so that the difference covers all of it
        while len(self._snapshots) > 2 and self._snapshots[1][0] <= now - self._width_s:
            self._snapshots.popleft()

    def difference(self, total: HistogramValue) -> HistogramValue | None:
        """What ``total`` has more than the oldest snapshot kept; ``None`` before the first snapshot."""
        if not self._snapshots:
            return None
        return difference(self._snapshots[0][1], total)
