"""``make bench-rivals``: how quiet and how fast the shipped verdicts are, beside other designs.

The rules of ``alerts/out`` are evaluated by a real Prometheus over synthetic histories (see ``detection_model``), once
over healthy clusters and once over clusters whose layer regresses at a random moment of their second day. Printed are
false pages and tickets per series and month, and how long until the first page and the first ticket.

A series is one operation of one host's canary. A page is a firing of severity critical, a ticket one of warning;
firings of one series with less than half an hour between them count once, as Alertmanager's grouping has it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from bench import detection_model as model
from bench.detection_model import Array, Climate, History, Regression
from bench.detection_rules import Firing, Follower, Rule, needed, read_rules
from bench.history_store import Series, Store, labels_of
from plumbline.metrics.spec import le_text
from plumbline.probes.run.histogram import latency_edges
from support.rules import ALERTS, RULES

EPOCH_S = 1_767_571_200.0
"""A Monday, midnight UTC."""
CHUNK_S = 6 * 3600.0
RIVALS = Path(__file__).with_name("detection_rivals.yaml")
OURS = (
    "PlumblineCanaryLatencyExtreme",
    "PlumblineCanaryLatencyHigh",
    "PlumblineFleetLatencyHigh",
    "PlumblineCanaryBudgetBurn",
)
NO_SERIES_HERE = ("plumbline:degradation:ratio", "plumbline:degradation_long:ratio")
"""For baselines that have a mean alone; the benchmark's have a median. Leaving them out halves the time."""
BASELINE_P50_S = 1e-3
BASELINE_P99_S = 2.2e-3
"""Of the model's clean week: the cycle widens the log-normal body, whose own p99 is 2.1 medians."""
TOLERANCE = 1.25
BOUND_S = round(BASELINE_P99_S * TOLERANCE, 9)
ONE_EVENT_S = 1800.0
AFTER_RECOVERY_S = 7200.0
"""As long after a recovery a false alert still counts as caused by it."""
DETECT_WITHIN_S = float(model.DAY_S)
LAYER_WIDE = ("1.5x", "2x", "3x")


@dataclass(frozen=True, slots=True)
class Cluster:
    """One simulated cluster. ``start_s`` is when its regression began; ``None``: it stays healthy."""

    name: str
    history: History
    phases_s: Array
    """When in the interval each host is scraped; its clock of events is late by as much."""
    regression: str = ""
    start_s: float | None = None
    layer: str = "disk"


def main() -> int:
    """Exit code 0: measured. Nothing is judged here."""
    options = _parser().parse_args()
    climate = Climate(noise_sigma=options.noise, hiccups_per_day=options.hiccups)
    rules = needed(read_rules([RULES, ALERTS], options.interval), OURS, NO_SERIES_HERE)
    if options.rivals:
        rivals = read_rules([RIVALS], options.interval)
        rules = [*rules, *needed(rivals, [rule.name for rule in rivals if rule.alert])]
    began = time.monotonic()
    print(
        f"seed {options.seed}, {options.rate:g} operations a second, rules every {options.interval:g} s, "
        f"scrapes every {model.SCRAPE_S} s", flush=True,
    )  # fmt: skip
    if options.days:
        clusters = list(_healthy(options, climate))
        _print_false(clusters, _run(clusters, rules, options), options.days)
    if options.episodes:
        clusters = list(_regressing(options, climate))
        _print_delays(clusters, _run(clusters, rules, options))
    print(f"took {(time.monotonic() - began) / 60:.0f} min")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-rivals ARGS=…", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--seed", type=int, default=2026, help="the alerts were tuned on seeds 0 to 1999 (default: 2026)"
    )
    parser.add_argument("--clusters", type=int, default=4, help="healthy clusters (default: 4)")
    parser.add_argument("--hosts", type=int, default=4, help="hosts of each (default: 4)")
    parser.add_argument("--days", type=float, default=15, help="days of healthy history (default: 15; 0: none)")
    parser.add_argument("--episodes", type=int, default=8, help="of each regression (default: 8; 0: none)")
    parser.add_argument(
        "--rate", type=float, default=10, help="operations a second; 1 as on rotational disks (default: 10)"
    )
    parser.add_argument(
        "--interval", type=float, default=60, help="Prometheus's evaluation_interval in s (default: 60)"
    )
    parser.add_argument("--noise", type=float, default=Climate().noise_sigma, help="of the level (default: 0.04)")
    parser.add_argument("--hiccups", type=float, default=Climate().hiccups_per_day, help="a day and host (default: 6)")
    parser.add_argument("--rivals", action="store_true", help="other designs beside ours, on the same series")
    return parser


def _healthy(options: argparse.Namespace, climate: Climate) -> Iterator[Cluster]:
    for index in range(options.clusters):
        rng = np.random.default_rng([options.seed, 0, index])
        history = model.healthy(rng, options.hosts, options.days, climate)
        yield Cluster(f"healthy-{index}", history, phases(rng, options.hosts))


def _regressing(options: argparse.Namespace, climate: Climate) -> Iterator[Cluster]:
    kinds: list[tuple[Regression, int, str]] = [(each, 1, each.name) for each in model.REGRESSIONS]
    kinds += [(each, options.hosts, each.name + ", all hosts") for each in model.STEPS if each.name in LAYER_WIDE]
    for number, (regression, hosts, name) in enumerate(kinds):
        for index in range(options.episodes):
            rng = np.random.default_rng([options.seed, 1, number, index])
            # a day of history, then the regression within 6 hours, then a day to find it
            history = model.healthy(rng, hosts, 2.5, climate)
            slot = _calm_slot(rng, history)
            phases_s = phases(rng, hosts)
            start_s = EPOCH_S + slot * model.SLOT_S + float(phases_s.mean())
            yield Cluster(f"{number}-{index}", model.inject(history, regression, slot), phases_s, name, start_s)


def _calm_slot(rng: np.random.Generator, history: History) -> int:
    """Between 25 and 31 h, outside recovery: what a recovery holds back is measured by the healthy clusters."""
    hour = 3600 // model.SLOT_S
    while True:
        slot = int(rng.integers(25 * hour, 31 * hour))
        if not history.recovering[slot - 2 * hour : slot + hour].any():
            return slot


def phases(rng: np.random.Generator, hosts: int) -> Array:
    return rng.uniform(0, model.SCRAPE_S, hosts).round(3)


# --- running ----------------------------------------------------------------------------------------------------------


def _run(clusters: Sequence[Cluster], rules: Sequence[Rule], options: argparse.Namespace) -> list[Firing]:
    edges = bucket_edges()
    totals = {(cluster.name, host): np.zeros(len(edges) + 2) for cluster in clusters for host in range(_hosts(cluster))}
    slots = max(cluster.history.level.shape[1] for cluster in clusters)
    end_s = slots * model.SLOT_S
    rng = np.random.default_rng([options.seed, 2])
    with Store() as store:
        follower = Follower(store, rules)
        for start_s in np.arange(0, end_s, CHUNK_S):
            until_s = min(start_s + CHUNK_S, end_s)
            for cluster in clusters:
                store.write(samples(rng, cluster, start_s, until_s, edges, totals, options.rate))
            follower.follow(EPOCH_S + start_s, EPOCH_S + until_s)
            if sys.stderr.isatty():
                print(f"\r{until_s / end_s:4.0%}", end="", file=sys.stderr, flush=True)
        return follower.firings()


def _hosts(cluster: Cluster) -> int:
    return int(cluster.history.level.shape[0])


def bucket_edges() -> Array:
    """In seconds: of the exporter's own those around the medians, some of the others. Fewer series, same verdicts."""
    every = np.array(latency_edges([BOUND_S]))
    near = (every > 0.6 * BASELINE_P50_S) & (every < 2.2 * BASELINE_P50_S)
    far = (every > 0.3 * BASELINE_P50_S) & (every < 20 * BASELINE_P50_S) & (np.arange(len(every)) % 3 == 0)
    return np.asarray(every[near | far | (every == BOUND_S)])


def samples(
    rng: np.random.Generator, cluster: Cluster, start_s: float, until_s: float, edges: Array,
    totals: Mapping[tuple[str, int], Array], rate: float,
) -> Iterator[Series]:  # fmt: skip
    """Everything the cluster's targets would have been scraped for. ``totals`` grow: the counters' values so far."""
    part = slice(int(start_s) // model.SLOT_S, int(until_s) // model.SLOT_S)
    history = cluster.history
    history = History(history.level[:, part], history.tail[:, part], history.slow[:, part], history.recovering[part])
    counts = model.draw(rng, history, edges / BASELINE_P50_S, rate)
    middles = np.append(np.sqrt(edges * np.append(edges[0] / 2, edges[:-1])), edges[-1] * 2)
    scrapes_s = EPOCH_S + start_s + np.arange(1, counts.shape[1] + 1) * model.SCRAPE_S
    for host in range(len(counts)):
        total = totals[cluster.name, host]
        grown = np.cumsum(counts[host], axis=0)
        cumulative = np.cumsum(grown, axis=1) + total[:-1]
        seconds = grown @ middles + total[-1]
        times_ms = np.rint((scrapes_s + cluster.phases_s[host]) * 1000).astype(np.int64)
        place = {
            "cluster": cluster.name, "instance": f"host{host}:10047", "probe": "canary", "layer": cluster.layer,
            "device_class": "nvme", "workload": "randread-4k-qd1-j1", "operation": "read",
        }  # fmt: skip
        name = "plumbline_canary_latency_seconds"
        for index, edge in enumerate([*map(le_text, edges.tolist()), "+Inf"]):
            labels = labels_of(name + "_bucket", {**place, "le": edge})
            yield Series(labels, times_ms, cumulative[:, index].astype(float))
        yield Series(labels_of(name + "_count", place), times_ms, cumulative[:, -1].astype(float))
        yield Series(labels_of(name + "_sum", place), times_ms, seconds)
        above = cumulative[:, -1] - cumulative[:, edges.tolist().index(BOUND_S)]
        bound = labels_of("plumbline_canary_slow_operations_total", {**place, "bound": le_text(BOUND_S)})
        yield Series(bound, times_ms, above.astype(float))
        totals[cluster.name, host][:-1] = cumulative[-1]
        totals[cluster.name, host][-1] = seconds[-1]
        # what never changes is sampled as seldom as Prometheus's 5 minutes of looking back allow
        yield from _constants(place, times_ms[::8])
    recovering = history.recovering[:: model.SLOTS_PER_SCRAPE]
    times_ms = np.rint(scrapes_s * 1000).astype(np.int64)
    labels = labels_of("ceph_pg_recovering", {"cluster": cluster.name, "instance": "mgr", "pool_id": "1"})
    yield Series(labels, times_ms, recovering[: len(times_ms)].astype(float))


def _constants(place: Mapping[str, str], times_ms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[Series]:
    likeness = {key: value for key, value in place.items() if key != "probe"}
    entry = {**likeness, "config_hash": "f8ebba40cbad", "source": "measured", "profile": "baseline.yaml"}
    for name, labels, value in (
        ("plumbline_baseline_applicable", entry, 1.0),
        ("plumbline_baseline_latency_seconds", {**entry, "statistic": "p50"}, BASELINE_P50_S),
        ("plumbline_baseline_tolerance_ratio", entry, TOLERANCE),
        ("plumbline_canary_workload_info", {**place, "config_hash": "f8ebba40cbad"}, 1.0),
    ):
        yield Series(labels_of(name, labels), times_ms, np.full(len(times_ms), value))


# --- what came of it -----------------------------------------------------------------------------------------------


def _design(firing: Firing) -> str:
    return firing.alert if not firing.alert.startswith("Plumbline") else "Plumbline"


def merged(firings: Sequence[Firing]) -> list[Firing]:
    """Of one series, firings that follow each other closely are one."""
    found: list[Firing] = []
    for firing in sorted(firings, key=lambda each: each.start_s):
        if found and firing.start_s - found[-1].end_s < ONE_EVENT_S:
            found[-1] = replace(found[-1], end_s=max(found[-1].end_s, firing.end_s))
        else:
            found.append(firing)
    return found


def _print_false(clusters: Sequence[Cluster], firings: Sequence[Firing], days: float) -> None:
    series = sum(map(_hosts, clusters))
    months = series * days / 30
    recovering = {cluster.name: cluster.history.recovering for cluster in clusters}
    print(f"\nfalse alerts, {series} series x {days:g} days = {series * days:.0f} series-days; per series and 30 days")
    print(f"{'':34}{'outside recovery':>24}{'during recovery':>24}")
    rows: dict[tuple[str, str], list[int]] = {}
    names = sorted({(_design(each), each.severity, each.alert) for each in firings})
    keys = [("Plumbline", severity) for severity in ("critical", "warning")]
    keys += [(design, severity) for design, severity, _ in names if design != "Plumbline"]
    keys += [("  " + alert, severity) for design, severity, alert in names if design == "Plumbline"]
    for title, severity in dict.fromkeys(keys):
        chosen = [
            each for each in firings if each.severity == severity and title.strip() in (_design(each), each.alert)
        ]
        rows[title, severity] = _count(chosen, recovering)
    for (title, severity), (outside, during) in rows.items():
        kind = "pages" if severity == "critical" else "tickets"
        print(
            f"{title + ', ' + kind:40}{outside:8d} {outside / months:9.3f}{during:14d} {during / months:9.3f}",
            flush=True,
        )


def _count(firings: Sequence[Firing], recovering: Mapping[str, model.Flags]) -> list[int]:
    by_series: dict[tuple[str, str], list[Firing]] = {}
    for each in firings:
        by_series.setdefault((each.labels["cluster"], each.labels.get("instance", "")), []).append(each)
    counted = [0, 0]
    for (cluster, _), those in by_series.items():
        for firing in merged(those):
            slot = int(firing.start_s - EPOCH_S) // model.SLOT_S
            since = slot - int(AFTER_RECOVERY_S) // model.SLOT_S
            counted[bool(recovering[cluster][max(0, since) : slot + 1].any())] += 1
    return counted


def _print_delays(clusters: Sequence[Cluster], firings: Sequence[Firing]) -> None:
    print("\ndelay in minutes, median / 95th percentile, and share found within 24 h")
    designs = sorted({_design(each) for each in firings} - {"Plumbline"})
    columns = [("Plumbline", "critical"), ("Plumbline", "warning"), *((design, "critical") for design in designs)]
    for title, severity in columns:
        print(f"\n{title}: {'page' if severity == 'critical' else 'ticket'}")
        chosen = [each for each in firings if _design(each) == title and each.severity == severity]
        for name in dict.fromkeys(cluster.regression for cluster in clusters):
            delays = [_delay_min(cluster, chosen) for cluster in clusters if cluster.regression == name]
            judged = [delay for delay in delays if delay is not None]
            found = sorted(delay for delay in judged if math.isfinite(delay))
            shown = f"{median(found):7.1f} /{found[math.ceil(0.95 * len(found)) - 1]:7.1f}" if found else f"{'-':>16}"
            print(f"  {name:28}{shown}{len(found) / len(judged):8.0%} of {len(judged)}", flush=True)


def _delay_min(cluster: Cluster, firings: Sequence[Firing]) -> float | None:
    """Until the first firing after the regression began; infinite: none within a day; ``None``: it fired already."""
    assert cluster.start_s is not None
    first = math.inf
    for firing in firings:
        if firing.labels["cluster"] != cluster.name or firing.end_s <= cluster.start_s:
            continue
        if firing.start_s <= cluster.start_s:
            return None
        first = min(first, firing.start_s)
    delay_s = first - cluster.start_s
    return delay_s / 60 if delay_s <= DETECT_WITHIN_S else math.inf


if __name__ == "__main__":
    sys.exit(main())
