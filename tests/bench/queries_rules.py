"""What evaluating the rules costs on the fleet: all together, and each rule alone as a share of its group's interval.

Raw series are written as scrapes of every 30 s would bring them, those of the next minutes too. Then Prometheus
evaluates the rules with nothing else to do, and what CPU time it takes for that is the whole. Then the rules are taken
away, and each expression is asked once, one after the other, to see which are dear.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import queries_fleet as fleet
from bench.history_store import Store
from bench.queries_fleet import Template
from support.rules import ALERTS, RULES

INTERVAL_S = 60
"""Of groups without one of their own: Prometheus' default, and the longest that the rules are made for."""
SCRAPED_EVERY_S = 30
THIN_FROM_S, THIN_EVERY_S = 1500, 60
DENSE_FROM_S = 360
"""Longer than the window of any rule that reads many series."""
WARM_S, WHOLE_S = 90, 240
"""Until rules that read what others record find it; and a multiple of all groups' intervals."""
DEAREST = 14
ASKED = 3
"""So often each rule. The middle one counts: into some falls what Prometheus does for itself, like freeing memory."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One evaluation: CPU seconds of Prometheus, seconds by its own clock, and how often it comes."""

    file: str
    group: str
    rule: str
    cpu_s: float
    wall_s: float
    interval_s: float

    @property
    def share(self) -> float:
        """Of its interval."""
        return self.cpu_s / self.interval_s


@dataclass(frozen=True, slots=True)
class Whole:
    """Evaluating everything: share of one CPU, and by Prometheus' own word the share of time that groups took."""

    cpu: float
    reported: float


def measure(series: Sequence[Template], rules: Sequence[Path]) -> list[Template]:
    """Print it; return a template of every series that the rules recorded."""
    print(f"\nrules on {len(series):,} series, evaluated every {INTERVAL_S} s where a group has no interval of its own")
    with Store(evaluation_s=INTERVAL_S) as store:
        write_history(store, series)
        whole, groups = evaluate(store, rules)
        last_s = time.time()
        for group in groups:
            for rule in group["rules"]:
                if rule.get("lastError"):
                    print(f"  {rule['name']} fails: {rule['lastError'][:200]}")
        costs = list(_costs(store, groups, last_s))
        found = store.query('{__name__=~".+:.+|ALERTS"}', last_s)
    _print(whole, costs, len(series), len(found))
    return [
        fleet.template(labels.pop("__name__"), labels, float(each["value"][1]))
        for each in found
        for labels in [dict(each["metric"])]
        if each["value"][1] not in ("NaN", "+Inf", "-Inf")
    ]


def write_history(store: Store, series: Sequence[Template]) -> None:
    """Up to now, and beyond it for as long as the rules will be evaluated."""
    now_s = fleet.now_ms() // 1000
    feed = fleet.Feed(series, now_s * 1000)
    thin = np.arange(now_s - THIN_FROM_S, now_s - DENSE_FROM_S, THIN_EVERY_S, dtype=np.int64)
    began = time.monotonic()
    feed.write(store, thin * 1000)
    each_s = (time.monotonic() - began) / len(thin)
    # twice as long as it should take, and a reserve for asking
    needed_s = DENSE_FROM_S + (time.time() - now_s) + WARM_S + WHOLE_S + 120
    dense = int(needed_s / max(SCRAPED_EVERY_S - 2 * each_s, 1))
    feed.write(store, (now_s - DENSE_FROM_S + SCRAPED_EVERY_S * np.arange(dense, dtype=np.int64)) * 1000)


def evaluate(store: Store, rules: Sequence[Path]) -> tuple[Whole, list[dict[str, Any]]]:
    """Let Prometheus evaluate them for some minutes; what that took, and all groups with their rules."""
    store.evaluate(rules)
    time.sleep(WARM_S)
    before_s, began = store.cpu_s(), time.monotonic()
    time.sleep(WHOLE_S)
    cpu = (store.cpu_s() - before_s) / (time.monotonic() - began)
    groups = store.groups()
    store.evaluate([])
    return Whole(cpu, sum(group["evaluationTime"] / group["interval"] for group in groups)), groups


def _costs(store: Store, groups: Iterable[dict[str, Any]], at_s: float) -> Iterable[Cost]:
    for group in groups:
        for rule in group["rules"]:
            walls, clocks = list[float](), [store.cpu_s()]
            for _ in range(ASKED):
                # counted, because sending thousands of series as text is no part of a rule's work
                walls.append(store.evaluation_s(f"count({rule['query']})", at_s))
                clocks.append(store.cpu_s())
            cpu_s = median(after - before for before, after in pairwise(clocks))
            yield Cost(Path(group["file"]).name, group["name"], rule["name"], cpu_s, median(walls), group["interval"])


def _print(whole: Whole, costs: Sequence[Cost], series: int, recorded: int) -> None:
    own = [each for each in costs if each.file in (RULES.name, ALERTS.name)]
    theirs = [each for each in costs if each.file not in (RULES.name, ALERTS.name)]
    mine = sum(each.share for each in own)
    wall = sum(each.wall_s / each.interval_s for each in own)
    print(f"  everything, node-mixin's too: {whole.cpu:.1%} of one CPU; groups report {whole.reported:.1%} of theirs")
    print(f"  ours, each rule alone: {mine:.1%} of the intervals in CPU time, {wall:.1%} in wall time")
    print(f"  that is {mine * INTERVAL_S / series * 1e6:.1f} µs of CPU time a series and minute")
    print(f"  node-mixin's recording rules: {sum(each.share for each in theirs):.1%}")
    print("  the fullest groups, of their own interval:")
    groups = {each.group: each.interval_s for each in own}
    shares = {name: sum(each.share for each in own if each.group == name) for name in groups}
    for name in sorted(shares, key=lambda name: -shares[name])[:DEAREST]:
        print(f"    {shares[name]:7.2%}  {name}, every {groups[name]:g} s")
    print("  the dearest rules:")
    for each in sorted(own, key=lambda each: -each.share)[:DEAREST]:
        print(f"    {each.share:7.2%}  {each.group} / {each.rule}: {each.cpu_s:.2f} s every {each.interval_s:g} s")
    print(f"  they record {recorded:,} series", flush=True)
