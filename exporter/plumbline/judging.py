"""Judging a host again and again: what grew between looks, and the findings of the last one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from plumbline.arrayfacts import array_facts
from plumbline.checks import array, disk, health, network, pcie
from plumbline.checks.facts import NetworkFacts
from plumbline.checks.model import Finding, worst_first
from plumbline.diskfacts import disk_facts
from plumbline.healthfacts import health_facts
from plumbline.networkfacts import network_facts
from plumbline.pciefacts import pcie_facts
from plumbline.seriesview import Labels, SeriesView
from plumbline.snapshot import Snapshot

WINDOW_S = 3600.0
"""What grew within the last hour grows "lately": a burst a day ago is no reason to change a setting now, and one of a
minute ago must still be there when somebody comes to look."""

_COUNTERS = frozenset(
    f"plumbline_{name}_total"
    for name in (
        "disk_media_errors",
        "nic_drops",
        "nic_pause_frames",
        "softnet_processed",
        "softnet_dropped",
        "softnet_time_squeeze",
        "softnet_time_squeeze_attributed",
        "tcp_receive_drops",
        "pcie_aer_errors",
    )
)

DOMAINS: tuple[Callable[[SeriesView, float | None], tuple[Finding, ...]], ...] = (
    lambda view, window_s: network.judge(network_facts(view, window_s)),
    lambda view, window_s: disk.judge(disk_facts(view, window_s)),
    lambda view, _window_s: array.judge(array_facts(view)),
    lambda view, window_s: pcie.judge(pcie_facts(view, window_s)),
    lambda view, window_s: health.judge(health_facts(view, window_s)),
)
"""Each part of a host: what is known of it after so many seconds of looking (``None``: one look), judged."""


class Judge:
    """Looks at collections one after the other. For one thread; :attr:`findings` may be read by all.

    Growth is what was added between looks within the last ``window_s`` seconds; a counter that fell was reset and
    counts from 0.
    """

    def __init__(self, *, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._began_s: float | None = None
        self._last: dict[tuple[str, Labels], float] = {}
        self._added: deque[tuple[float, dict[tuple[str, Labels], float]]] = deque()
        self.findings: tuple[Finding, ...] | None = None
        """Of the last look; ``None`` before the first."""

    def look(self, snapshot: Snapshot, now_s: float) -> tuple[Finding, ...]:
        """Judge this collection. ``now_s`` is monotonic."""
        view, seen_s = self._view(snapshot, now_s)
        self.findings = worst_first(finding for judge in DOMAINS for finding in judge(view, seen_s))
        return self.findings

    def facts(self, snapshot: Snapshot, now_s: float) -> NetworkFacts:
        """What is known of the network after this collection, too; it counts as a look."""
        return network_facts(*self._view(snapshot, now_s))

    def _view(self, snapshot: Snapshot, now_s: float) -> tuple[SeriesView, float | None]:
        """The series with what they grew by, and for how long they have been looked at."""
        view = SeriesView(snapshot)
        known = self._note(view, now_s)
        grown: dict[tuple[str, Labels], float] = defaultdict(float)
        for _, added in self._added:
            for series, amount in added.items():
                grown[series] += amount
        view.grown = {series: int(grown.get(series, 0)) for series in known}
        seen_s = None if self._began_s is None or self._began_s == now_s else min(now_s - self._began_s, self._window_s)
        return view, seen_s

    def _note(self, view: SeriesView, now_s: float) -> set[tuple[str, Labels]]:
        """Remember the counters; the series that were there before."""
        if self._began_s is None:
            self._began_s = now_s
        now = {(name, labels): value for name in _COUNTERS for labels, value in view.series(name).items()}
        known = now.keys() & self._last.keys()
        added = {}
        for series in known:
            before, value = self._last[series], now[series]
            if value != before:
                added[series] = value - before if value > before else value
        self._last = now
        self._added.append((now_s, added))
        while self._added[0][0] <= now_s - self._window_s:
            self._added.popleft()
        return set(known)
