"""What the panels of the pages L0 and L1 cost beside comparable ones of others, on the same history.

The history is a week with a sample an hour, and its last day with one in five minutes: all of it as dense as
scrapes are would be 10¹⁰ samples. Thinner series favour whoever reads raw counters over long windows, which is them.
Raw buckets of histograms are there for the last day only. ``every_s`` makes the day as dense as scrapes, for a smaller
fleet. Prometheus' remote write takes the samples: promtool's
blocks from OpenMetrics text would be the same data, written at a hundredth of the pace.

A panel is asked as Grafana asks it: tables for the end of the range, graphs for a full screen's width of points.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench import queries_fleet as fleet
from bench.history_store import Store
from bench.queries_fleet import Template
from bench.queries_peers import OUT, VALUES, Panel, Query
from preview.variables import substitute

DAY_S = 86_400
THIN_EVERY_S, DENSE_EVERY_S = 3600, 300
OPENED_S = 6 * 3600
"""What most pages open with."""
LOOKBACK_S = THIN_EVERY_S + 60
WIDE = 1000
"""Points across a full screen."""
LEAST_STEP_S = 15
"""Grafana's data source asks no denser than this by default."""
RUNS, ENOUGH_S = 3, 2.0
"""So often a panel is asked, less often when it takes so long."""
LEVELS = ("overview", "network", "disks", "osds", "pools", "rbd", "probes", "tuning", "budget", "capacity")
COMPARABLE = {
    "overview": ("ceph-cluster", "hosts-overview", "node-cluster-rsrc-use"),
    "network": ("hosts-overview", "node-cluster-rsrc-use"),
    "disks": ("hosts-overview", "node-cluster-rsrc-use"),
    "osds": ("osds-overview",),
    "pools": ("pool-overview", "ceph-cluster"),
    "rbd": ("rbd-overview", "pool-overview"),
    "capacity": ("ceph-cluster", "pool-overview", "osds-overview"),
}
"""Our page → dashboards of the others that show the same subjects. The others have no page about probes, settings or
where the time of an operation goes."""
_WINDOW = re.compile(r"\[(\d+)([smhd])((?::[^\]]*)?)\]")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": DAY_S}


@dataclass(frozen=True, slots=True)
class Range:
    """What a page shows: its length, the pace of the samples there, and the points' distance."""

    title: str
    length_s: float
    sampled_every_s: float
    points: int = WIDE

    @property
    def target_s(self) -> float:
        """What a panel may take (dashboards/README.md)."""
        return 2.0 if self.length_s <= DAY_S else 5.0

    @property
    def step_s(self) -> float:
        """Between two points."""
        return max(self.length_s / self.points, LEAST_STEP_S)

    @property
    def window_s(self) -> float:
        """``$__rate_interval``, as Grafana makes it."""
        return max(self.step_s + self.sampled_every_s, 4 * self.sampled_every_s)


@dataclass(frozen=True, slots=True)
class Cost:
    """What all queries of a panel take together; how many series came back; what was refused."""

    panel: Panel
    cpu_s: float
    wall_s: float
    series: int
    errors: tuple[str, ...]


def measure(
    panels: Sequence[Panel], theirs: Sequence[Panel], series: Sequence[Template], *, days: int, every_s: int
) -> None:
    """Write the history of these series, ask, and print. ``every_s``: between two samples of the last day."""
    now_ms = fleet.now_ms() // (THIN_EVERY_S * 1000) * THIN_EVERY_S * 1000
    long = [each for each in series if not each.name.endswith("_bucket")]
    print(f"\npanels: {len(long):,} series of {days} days, {len(series) - len(long):,} of one", flush=True)
    with Store(lookback_s=LOOKBACK_S) as store:
        dense_from_ms = now_ms - (DAY_S + LOOKBACK_S) * 1000
        history, recent = fleet.Feed(long, now_ms), fleet.Feed(series, now_ms)
        for begin_ms in range(now_ms - days * DAY_S * 1000, dense_from_ms, DAY_S * 500):
            end_ms = min(begin_ms + DAY_S * 500, dense_from_ms)
            history.write(store, np.arange(begin_ms, end_ms, THIN_EVERY_S * 1000, dtype=np.int64))
        # in parts: a request holds all of a series' samples
        for begin_ms in range(dense_from_ms, now_ms, DAY_S * 250):
            end_ms = min(begin_ms + DAY_S * 250, now_ms)
            recent.write(store, np.arange(begin_ms, end_ms, every_s * 1000, dtype=np.int64))
        end_s = now_ms / 1e3 - every_s
        _compare(store, panels, theirs, end_s, Range(f"{OPENED_S // 3600} hours", OPENED_S, every_s))
        _compare(store, panels, theirs, end_s, Range("a day", DAY_S, every_s))
        if days == 1:
            return
        whole = [each for each in panels if not _reads_buckets(each)]
        _compare(store, whole, theirs, end_s, Range(f"{days} days", days * DAY_S, THIN_EVERY_S))
        for each in panels:
            if each not in whole:
                print(f"  not asked for so long (raw buckets): {each.dashboard} / {each.title}")


def _reads_buckets(panel: Panel) -> bool:
    return any("_seconds_bucket" in query.expr and not query.instant for query in panel.queries)


def _compare(store: Store, panels: Sequence[Panel], theirs: Sequence[Panel], end_s: float, over: Range) -> None:
    chosen = {name for names in COMPARABLE.values() for name in names}
    others = [_cost(store, panel, end_s, over) for panel in theirs if panel.dashboard in chosen]
    # nothing came back: its series are not in this fleet, so it took no time
    answered = [each for each in others if each.series]
    mine = [_cost(store, panel, end_s, over) for panel in panels]
    refused = sum(1 for each in others if each.errors)
    print(f"\n{over.title}: of the others' {len(others)} panels {len(answered)} have data, {refused} are refused")
    for each in mine:
        for error in each.errors:
            print(f"  {each.panel.dashboard} / {each.panel.title} fails: {error[:300]}")
    late = sorted((each for each in mine if each.wall_s > over.target_s), key=lambda each: -each.wall_s)
    named = ", ".join(f"{each.panel.title} {each.wall_s:.2f} s" for each in late)
    print(f"  over {over.target_s:g} s: {named or 'none'}")
    print("  slowest panel ÷ their slowest comparable one, in Prometheus' CPU time (wall time):")
    for page in LEVELS:
        with_data = [each for each in mine if each.panel.dashboard == page and each.series]
        own = sum(1 for each in mine if each.panel.dashboard == page)
        peers = [each for each in answered if each.panel.dashboard in COMPARABLE.get(page, ())]
        if with_data:
            for line in _page(page, own, with_data, peers):
                print(line, flush=True)


def _page(page: str, own: int, costs: Sequence[Cost], peers: Sequence[Cost]) -> Iterator[str]:
    worst = max(costs, key=lambda each: each.cpu_s)
    head = f"  {page:9} {len(costs):>3} of {own:>3} with data"
    if not peers:
        of = worst.cpu_s / _refresh_s(page)
        yield f"{head}  nothing comparable; {of:.2%} of a refresh of the page: {worst.panel.title}"
        return
    against = max(peers, key=lambda each: each.cpu_s)
    wall = max(each.wall_s for each in costs) / max(each.wall_s for each in peers)
    middle = statistics.median(each.cpu_s for each in costs) / statistics.median(each.cpu_s for each in peers)
    yield (
        f"{head}  {worst.cpu_s / against.cpu_s:6.2f} ({wall:.2f}), medians {middle:.2f}:"
        f" {worst.panel.title} ÷ {against.panel.title}"
    )
    for each in sorted(costs, key=lambda each: -each.cpu_s):
        if each.cpu_s > against.cpu_s:
            yield f"      {each.cpu_s / against.cpu_s:6.2f}  {each.panel.title} ({each.series} series)"


def _refresh_s(page: str) -> float:
    said = json.loads((OUT / f"plumbline-{page}.json").read_text("utf-8"))["refresh"]
    return float(said[:-1]) * _SECONDS[said[-1]]


def _cost(store: Store, panel: Panel, end_s: float, over: Range) -> Cost:
    walls: list[float] = []
    found, errors = 0, set()
    if panel.points:
        over = replace(over, points=panel.points)
    before_s = store.cpu_s()
    while len(walls) < RUNS and sum(walls) < ENOUGH_S:
        began = time.perf_counter()
        found = 0
        for query in panel.queries:
            try:
                found += _ask(store, query, end_s, over)
            except RuntimeError as error:
                errors.add(str(error))
        walls.append(time.perf_counter() - began)
    cpu_s = (store.cpu_s() - before_s) / len(walls)
    return Cost(panel, cpu_s, statistics.median(walls), found, tuple(sorted(errors)))


def _ask(store: Store, query: Query, end_s: float, over: Range) -> int:
    expr = asked(query.expr, over)
    if query.instant:
        return len(store.query(expr, end_s))
    return len(store.query_range(expr, end_s - over.length_s, end_s, over.step_s))


def asked(expr: str, over: Range) -> str:
    """As Grafana sends it; windows that would hold fewer than two samples of this history are as long as a rate's."""
    window = f"{over.window_s:.0f}s"
    values = VALUES | {
        "__rate_interval": window,
        "__interval": f"{over.step_s:.0f}s",
        "__range": f"{over.length_s:.0f}s",
        "__range_s": f"{over.length_s:.0f}",
    }

    def long_enough(found: re.Match[str]) -> str:
        length_s = int(found[1]) * _SECONDS[found[2]]
        return found[0] if found[3] or length_s >= 2 * over.sampled_every_s else f"[{window}]"

    return _WINDOW.sub(long_enough, substitute(expr, values))
