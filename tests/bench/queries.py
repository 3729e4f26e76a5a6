"""``make bench-queries``: what our panels and rules cost beside node-mixin's and ceph-mixin's, on the same large fleet.

A real Prometheus is given 200 nodes with 2,000 disks and OSDs (see ``queries_fleet``). First the rules: half an hour of
raw series, the rules evaluated at the present every minute, the time that each group says it took. Then the panels:
what the rules recorded and what panels read raw becomes a history of a week, one sample in five minutes (raw buckets of
histograms: a day of it, as more does not fit a small machine), and every query of the pages L0 and L1 is asked as
Grafana asks it for a graph of a full screen's width. Prometheus' remote write takes the samples: promtool's blocks from
OpenMetrics text would be the same data, written at a hundredth of the pace.

Printed are ratios: a page's slowest panel beside the slowest comparable panel of the others.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import queries_fleet as fleet
from bench.history_store import Store
from bench.queries_fleet import Template
from bench.queries_peers import Panel, ceph_mixin, names, node_mixin, ours
from support.daemon import eventually, running
from support.osd_fleet import osd_fleet
from support.ports import free_port
from support.rules import ALERTS, RULES, rules_of

DAY_S = 86_400
HISTORY_EVERY_S = 300
LIVE_EVERY_S = 60
LIVE_BEFORE_S = 1500
EVALUATED_FOR_S = 330
"""Longer than the longest window of a rule that works on raw series."""
BATCH = 4000
WIDE = 1000
"""Points across a full screen."""
RUNS, ENOUGH_S = 3, 5.0
"""So often a panel is asked, less often when it takes so long."""
LEVELS = ("overview", "network", "disks", "osds", "pools", "rbd", "probes", "tuning", "budget", "capacity")
COMPARABLE = {
    "overview": ("ceph-cluster", "hosts-overview", "node-cluster-rsrc-use"),
    "network": ("hosts-overview", "node-cluster-rsrc-use", "node-multicluster-rsrc-use"),
    "disks": ("hosts-overview", "node-cluster-rsrc-use", "node-multicluster-rsrc-use"),
    "osds": ("osds-overview",),
    "pools": ("pool-overview", "ceph-cluster"),
    "rbd": ("rbd-overview", "pool-overview"),
    "capacity": ("ceph-cluster", "pool-overview", "osds-overview"),
}
"""Our page → dashboards of the others that show the same subjects. Pages without one are held against all of them."""
_VALUES = {
    "cluster": "fleet", "instance": "node000", "statistic": "p50", "datasource": "x", "job": "node",
    "ceph_daemon": "osd.0", "device": ".*",
}  # fmt: skip
_WINDOW = re.compile(r"\[(?:\$[\w]+|\$\{\w+\}|\d+[smhd])(:[^\]]*)?\]")


def main() -> int:
    """Exit code 0: measured. Nothing is judged here."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as name:
        folder = Path(name)
        theirs_rules = folder / "node-mixin.yaml"
        theirs = [*ceph_mixin(), *node_mixin(theirs_rules)]
        for who, found in (("ceph-mixin", "ceph-cluster"), ("node-mixin", "node-cluster-rsrc-use")):
            if not any(panel.dashboard == found for panel in theirs):
                print(f"({who} can't be had here: compared with the others alone)")
        panels = [panel for panel in ours() if panel.dashboard in LEVELS]
        rules = [RULES, ALERTS, *([theirs_rules] if theirs_rules.exists() else [])]
        wanted = {word for panel in (*panels, *theirs) for query in panel.queries for word in names(query)}
        wanted |= {word for file in rules for rule in rules_of(file) for word in names(rule["expr"])}
        series = _series(folder, wanted)
        recorded = _rules(series, rules)
        if not options.rules_only:
            _panels(panels, theirs, [each for each in series if each.name in wanted], recorded, options)
    return 0


def _series(folder: Path, wanted: set[str]) -> list[Template]:
    """What one daemon, with ten OSDs, and one node_exporter say here, as 200 nodes would."""
    sockets = folder / "sockets"
    sockets.mkdir()
    site = folder / "site.yaml"
    site.write_text(
        '{"schema_version": 1, "entries": [{"workload": "randread-4k-qd1-j1", "device_class": "ssd",'
        ' "latency": {"p50": "1ms", "p99": "3ms", "mean": "1ms"}}]}'
    )
    config = {
        "baseline": {"files": [str(site)]},
        "ceph": {"admin_sockets": [f"{sockets}/*.asok"]},
        "probes": [{"type": "canary", "name": "canary", "device_class": "ssd", "rate": 20, "file_size": "4MiB"}],
    }
    with osd_fleet(sockets, fleet.OSDS, peers=3 * fleet.OSDS), running(folder, config=config) as daemon:
        eventually(lambda: "plumbline_osd_latency_seconds_count" in daemon.get("/metrics").text, within_s=60)
        time.sleep(30)
        page = fleet.daemon_page(daemon.get("/metrics").text)
    return list(fleet.fleet(page, _node_exporter(), wanted.__contains__))


def _node_exporter() -> Any:
    port = free_port()
    argv = ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    try:
        process = subprocess.Popen(argv)
    except FileNotFoundError:
        print("(prometheus-node-exporter is not installed: node-mixin's panels find nothing)")
        return None
    try:

        def text() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return str(answer.read().decode())

        return fleet.node_exporter_page(eventually(_unless_refused(text)))
    finally:
        process.terminate()
        process.wait()


def _unless_refused(ask: Callable[[], str]) -> Callable[[], str]:
    def asked() -> str:
        try:
            return ask()
        except OSError:
            return ""

    return asked


def _rules(series: Sequence[Template], rules: Sequence[Path]) -> list[Template]:
    """Prints what evaluating costs; returns a template of every series that came of it."""
    captured_ms = _now_ms()
    print(f"\nrules: {len(series):,} series, evaluated every {LIVE_EVERY_S} s", flush=True)
    with Store(rules, evaluation_s=LIVE_EVERY_S) as store:
        start_ms = captured_ms - LIVE_BEFORE_S * 1000
        _write(store, series, np.arange(start_ms, captured_ms, LIVE_EVERY_S * 1000, dtype=np.int64), captured_ms)
        until = time.monotonic() + EVALUATED_FOR_S
        while time.monotonic() < until:
            began = time.monotonic()
            _write(store, series, np.array([_now_ms()], np.int64), captured_ms)
            time.sleep(max(0.0, LIVE_EVERY_S / 2 - (time.monotonic() - began)))
        last_s = time.time()
        for group in store.groups():
            for rule in group["rules"]:
                if rule.get("lastError"):
                    print(f"  {rule['name']} fails: {rule['lastError'][:200]}")
        # One after the other and with nothing else going on: beside writing, it is the writing that one would measure.
        groups = [(Path(group["file"]).name, group["name"], group["rules"]) for group in store.groups()]
        store.forget_rules()
        costs = [
            (store.evaluation_s(rule["query"], last_s), file, group, rule["name"])
            for file, group, of_group in groups
            for rule in of_group
        ]
        own = {RULES.name, ALERTS.name}
        mine = sum(took for took, file, _, _ in costs if file in own)
        theirs = sum(took for took, file, _, _ in costs if file not in own)
        print(f"  all of ours, one after the other: {mine / LIVE_EVERY_S:.1%} of the interval")
        print(f"  node-mixin's recording rules: {theirs / LIVE_EVERY_S:.1%}")
        for took, _, group, rule in sorted(costs, reverse=True)[:12]:
            print(f"    {took / LIVE_EVERY_S:7.2%}  {group} / {rule}")
        found = store.query('{__name__=~".+:.+|ALERTS"}')
        print(f"  they record {len(found):,} series", flush=True)
    return [
        fleet.template(labels.pop("__name__"), labels, float(each["value"][1]))
        for each in found
        for labels in [dict(each["metric"])]
        if each["value"][1] not in ("NaN", "+Inf", "-Inf")
    ]


def _panels(
    panels: Sequence[Panel],
    theirs: Sequence[Panel],
    raw: Sequence[Template],
    recorded: Sequence[Template],
    options: Any,
) -> None:
    wanted = {word for panel in (*panels, *theirs) for query in panel.queries for word in names(query)}
    now_ms = _now_ms() // 300_000 * 300_000
    kept = [each for each in (*raw, *recorded) if each.name in wanted]
    buckets = [each for each in kept if each.name.endswith("_bucket")]
    others = [each for each in kept if not each.name.endswith("_bucket")]
    print(f"\npanels: {len(others):,} series of {options.days} days, {len(buckets):,} of a day", flush=True)
    with Store() as store:
        step_ms = HISTORY_EVERY_S * 1000
        for day in range(options.days, 0, -1):
            chosen = others + (buckets if day == 1 else [])
            start = now_ms - day * DAY_S * 1000
            for half in range(2):
                times = np.arange(start + half * DAY_S * 500, start + (half + 1) * DAY_S * 500, step_ms, dtype=np.int64)
                _write(store, chosen, times, now_ms)
        for days in (1, options.days):
            _compare(store, panels, theirs, now_ms / 1e3, days)


@dataclass(frozen=True, slots=True)
class Cost:
    """A panel, the median seconds that all its queries take together, how many series came back, what was refused."""

    panel: Panel
    seconds: float
    series: int
    errors: tuple[str, ...] = ()


def _compare(store: Store, panels: Sequence[Panel], theirs: Sequence[Panel], now_s: float, days: int) -> None:
    print(f"\na graph of {days} days", flush=True)
    raw = [panel for panel in panels if days > 1 and any("_bucket" in query for query in panel.queries)]
    mine = [_cost(store, panel, now_s, days) for panel in panels if panel not in raw]
    chosen = {name for names in COMPARABLE.values() for name in names}
    others = [_cost(store, panel, now_s, days) for panel in theirs if panel.dashboard in chosen]
    # nothing came back: its series are not in this fleet, so it took no time
    answered = [each for each in others if each.series]
    for each in mine:
        for error in each.errors:
            print(f"  {each.panel.dashboard} / {each.panel.title} fails: {error[:300]}")
    failing = sum(1 for each in others if each.errors)
    print(f"  the others: {len(answered)} of {len(others)} panels have data, {failing} fail on it")
    print(f"  {'page':10}{'panels':>7}{'with data':>10}{'slowest ÷ theirs':>18}{'median ÷ theirs':>17}   slowest panel")
    for page in LEVELS:
        own = [each for each in mine if each.panel.dashboard == page]
        with_data = [each for each in own if each.series]
        peers = [each for each in answered if each.panel.dashboard in COMPARABLE.get(page, ())] or answered
        if not with_data or not peers:
            continue
        worst = max(with_data, key=lambda each: each.seconds)
        against = max(each.seconds for each in peers)
        middle = statistics.median(each.seconds for each in peers)
        own_middle = statistics.median(each.seconds for each in with_data)
        print(
            f"  {page:10}{len(own):>7}{len(with_data):>10}{worst.seconds / against:>18.2f}{own_middle / middle:>17.2f}"
            f"   {worst.panel.title}",
            flush=True,
        )
        for each in sorted(with_data, key=lambda each: -each.seconds):
            if each.seconds > against:
                print(f"    {each.seconds / against:6.2f}  {each.panel.title} ({each.series} series)")
    for panel in raw:
        print(f"  not asked for so long (raw buckets): {panel.dashboard} / {panel.title}")


def _cost(store: Store, panel: Panel, now_s: float, days: int) -> Cost:
    step = max(days * DAY_S / WIDE, 15.0)
    window = f"{int(max(step + HISTORY_EVERY_S, 4 * HISTORY_EVERY_S))}s"
    queries = [_asked(query, window, f"{days}d") for query in panel.queries]
    runs: list[float] = []
    found, errors = 0, set()
    for _ in range(RUNS):
        began = time.perf_counter()
        found = 0
        for query in queries:
            try:
                found += len(store.query_range(query, now_s - days * DAY_S, now_s - HISTORY_EVERY_S, step))
            except RuntimeError as error:
                errors.add(str(error))
        runs.append(time.perf_counter() - began)
        if sum(runs) > ENOUGH_S:
            break
    return Cost(panel, statistics.median(runs), found, tuple(sorted(errors)))


def _asked(query: str, window: str, span: str) -> str:
    """As Grafana sends it. All windows are the same, because this history has a sample in five minutes."""
    query = query.replace("$__range", span)
    query = _WINDOW.sub(lambda found: f"[{window}{found[1] or ''}]", query)

    def value(found: re.Match[str]) -> str:
        return _VALUES.get(found[1], ".*")

    query = re.sub(r"\[\[(\w+)\]\]", value, query)
    return re.sub(r"\$\{?(\w+)(?::\w+)?\}?", value, query)


def _write(store: Store, templates: Iterable[Template], times_ms: NDArray[np.int64], captured_ms: int) -> None:
    waiting = iter(templates)
    while batch := list(islice(waiting, BATCH)):
        store.write(fleet.series(each, times_ms, captured_ms) for each in batch)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=7, help="how long the history is")
    parser.add_argument("--rules-only", action="store_true", help="only what evaluating the rules costs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
