"""``make bench-detection``: how often the shipped verdicts are wrong in each climate, and how soon they are right.

Climates are data (``detection_climates.yaml``). A cluster has three hosts (``--hosts``), each with a canary on a
disk and one in RADOS, that read and write, and a baseline that was recorded in its own climate. The rules are those of
``detection_fast``; ``--check`` holds that model against the shipped rules in a real Prometheus. Printed is the table of
``docs/climates.md``: false pages and tickets per 1,000 nodes and week, with the 95 % interval, and delays. The first
days are counted by themselves.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from bench import detection_check as check
from bench import detection_model as model
from bench.detection import ONE_EVENT_S
from bench.detection_fast import Verdicts, after, agreed, catastrophe, judge, lasting, observe, scrapes, shipped
from bench.detection_model import Climate, Flags
from support.paces import seconds

CLIMATES = Path(__file__).with_name("detection_climates.yaml")
HOSTS = 3
"""Of a cluster, if not asked for otherwise."""
LAYERS = ("disk", "disk", "rados", "rados")
"""Of the series of a node: the reads and the writes of two canaries."""
CLIENTS = slice(2, 4)
Counts = NDArray[np.int64]
WARM_UP_DAYS = 15
"""The rules look back for two weeks; a day more, so that no first day is in it. Counted by themselves."""
COUNTED_DAYS = 28
TOLERANCE = 1.25
"""The least that a recorded baseline has."""
PAGES_BAR, TICKETS_BAR = 1, 10
"""Per 1,000 nodes and week."""
AT_ONCE = 12
"""Hosts judged in one piece, for memory: whole clusters, one at the least."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is found how soon, in 95 of 100 cases."""

    name: str
    regression: model.Regression
    page: bool
    bar_min: float


CASES = (
    Case("clients, twice: page", model.STEPS[2], page=True, bar_min=5),
    Case("one disk, twice: ticket", model.STEPS[2], page=False, bar_min=30),
    Case("one disk, five times: ticket", model.STEPS[4], page=False, bar_min=15),
    Case("drift to 1.6 in 24 h: ticket", model.DRIFT, page=False, bar_min=480),
)


def main() -> int:
    """Exit code 1: ``--check`` or ``--native`` was asked for, and the two do not agree."""
    options = _parser().parse_args()
    if options.hosts < HOSTS or (options.hosts > HOSTS and (options.check or options.native)):
        _parser().error(f"--hosts {options.hosts}: {HOSTS} or more; with --check and --native {HOSTS}")
    climates = read_climates(CLIMATES, hosts=options.hosts)
    chosen = options.climates.split(";") if options.climates else list(climates)
    config = shipped() | {"tolerance": TOLERANCE, "spread": 0.0}
    if options.check or options.native:
        agreeing = check.flavours_agree if options.native else check.agrees
        agree = [agreeing(config, name, climates[name], options.seed) for name in chosen]
        return 0 if all(agree) else 1
    of_cluster = options.hosts * len(LAYERS) * COUNTED_DAYS
    clusters = -(-options.series_days // of_cluster)
    print(
        f"seed {options.seed}; {options.hosts} hosts; {clusters * of_cluster} series-days a climate, {COUNTED_DAYS} "
        f"after {WARM_UP_DAYS} of warm-up; {options.episodes} clusters for delays\n", flush=True,
    )  # fmt: skip
    titles = [f"{case.name} ({case.bar_min:g} min)" for case in CASES]
    for kind, bar in (("tickets", TICKETS_BAR), ("pages", PAGES_BAR)):
        titles = [f"{kind} ({bar})", f"first {WARM_UP_DAYS} days", "of which", *titles]
    titles = ["climate", *titles, "took"]
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}", flush=True)
    for number, name in enumerate(climates):
        if name in chosen:
            began = time.monotonic()
            rows = false_alerts(config, climates[name], [options.seed, number], clusters)
            times = delays(config, climates[name], [options.seed, number, 1], options.episodes)
            print(_row(name, rows, times, clusters * options.hosts, time.monotonic() - began), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-detection ARGS=…", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--seed", type=int, default=2026, help="the alerts were tuned on seeds 0 to 1999 (default: 2026)"
    )
    parser.add_argument("--climates", default="", help="their names, with ; between (default: all)")
    parser.add_argument("--hosts", type=int, default=HOSTS, help=f"of a cluster (default: {HOSTS})")
    parser.add_argument("--series-days", type=int, default=14_000, help="of each climate (default: 14000)")
    parser.add_argument("--episodes", type=int, default=50, help="clusters that regress (default: 50; 0: none)")
    parser.add_argument("--check", action="store_true", help="against the shipped rules in a real Prometheus (long)")
    parser.add_argument(
        "--native", action="store_true", help="the rules for native histograms against the others, in Prometheus 3.5"
    )
    return parser


def read_climates(
    path: Path, uses: Sequence[str] = ("tuning", "examination"), hosts: int = HOSTS
) -> dict[str, list[Climate]]:
    """By name, the climate of each host of a cluster. A mixed one's are repeated in turn."""
    found: dict[str, list[Climate]] = {}
    worlds = yaml.safe_load(path.read_text("utf-8"))
    for name, own in ((name, own) for use in uses for name, own in worlds[use].items()):
        if isinstance(own, list):
            found[name] = [found[own[host % len(own)]][0] for host in range(hosts)]
            continue
        jobs = tuple(model.Job(**job | {"lasts_h": tuple(job["lasts_h"])}) for job in own.pop("jobs", ()))
        frozen = {key: tuple(map(tuple, value)) if key == "periods" else value for key, value in own.items()}
        frozen |= {key: tuple(value) for key, value in frozen.items() if key.endswith("_s") and isinstance(value, list)}
        found[name] = [Climate(**frozen, jobs=jobs)] * hosts
    return found


@cache
def bound(climate: Climate) -> float:
    """From how many medians on an operation counts as slow: the tolerance times the p99 of a clean week."""
    clean = replace(
        climate,
        hiccups_per_day=0,
        blips_per_week=0,
        recoveries_per_week=0,
        stalls_per_day=0,
        day_sigma=0,
        own_days=False,
        production_ratio=1,
        growth_per_week=0,
        periods=(),
        jobs=(),
    )
    history = model.healthy(np.random.default_rng(0), 1, 7, clean)
    edges = np.linspace(1, 8, 701)
    levels = slice(None, None, model.SLOTS_PER_SCRAPE * 10)
    share = model.share_up_to(edges, history.level[0, levels], history.tail[0, levels], history.slow[0, levels])
    return float(edges[np.argmax(share.mean(axis=0) >= 0.99)]) * TOLERANCE


def false_alerts(
    config: Mapping[str, Any], climates: Sequence[Climate], seed: Sequence[int], clusters: int
) -> dict[str, Counts]:
    """How often each alert fired outside recovery: (clusters, 2), in the first days and after them."""
    counted: dict[str, list[Counts]] = {}
    for rng, size in _pieces(seed, clusters, len(climates)):
        days = WARM_UP_DAYS + COUNTED_DAYS
        histories = [model.healthy(rng, len(climates), days, climates, len(LAYERS)) for _ in range(size)]
        verdicts = _judged(rng, config, climates, histories, len(LAYERS))
        recovering = np.array([each.recovering[:: model.SLOTS_PER_SCRAPE] for each in histories])
        for name, count in _count(config, verdicts, recovering, len(climates)).items():
            counted.setdefault(name, []).append(count)
    return {name: np.concatenate(counts) for name, counts in counted.items()}


def _pieces(seed: Sequence[int], clusters: int, hosts: int) -> Iterator[tuple[np.random.Generator, int]]:
    """What is judged in one piece: its random numbers and how many clusters."""
    at_once = max(1, AT_ONCE // hosts)
    for begin in range(0, clusters, at_once):
        yield np.random.default_rng([*seed, begin]), min(at_once, clusters - begin)


def _judged(
    rng: np.random.Generator, config: Mapping[str, Any], climates: Sequence[Climate],
    histories: Sequence[model.History], layers: int,
) -> Verdicts:  # fmt: skip
    bounds = np.repeat([bound(each) for each in climates], layers)
    rates = np.repeat([each.ops_per_second for each in climates], layers)
    seen = [observe(rng, history, bounds, rates) for history in histories]
    now, slow = (np.concatenate(each) for each in zip(*seen, strict=True))
    here = np.tile(np.arange(layers), len(climates))
    groups = np.concatenate([here + layers * number for number in range(len(histories))])
    return judge(config, now, slow, groups, loaded=climates[0].production_ratio > 1)


def _count(config: Mapping[str, Any], verdicts: Verdicts, recovering: Flags, hosts: int) -> dict[str, Counts]:
    canary, burn = config["canary"], config["alerts"]["PlumblineCanaryBudgetBurn"]

    def of(flags: Flags) -> Flags:
        return flags.reshape(len(recovering), hosts, len(LAYERS), -1)

    def outside(flags: Flags, window: str) -> Flags:
        held = after(recovering, scrapes(window))
        step = recovering.shape[1] // flags.shape[-1]
        return np.asarray(flags & ~np.expand_dims(held[:, ::step], tuple(range(1, flags.ndim - 1))))

    extreme = of(verdicts.extreme)
    extreme_long = lasting(extreme, scrapes(config["alerts"]["PlumblineCanaryLatencyExtreme"]["ticket"]["for"]) + 1)
    burning = of(verdicts.burning)[:, :, CLIENTS].sum(axis=1) >= canary["minimumHosts"]["client"]
    beyond, near = (of(flags).swapaxes(1, 2) for flags in (verdicts.beyond, verdicts.near))
    # of two layers of one cluster at once Alertmanager tells of the lower one
    agree = agreed(config, beyond, near, model.SCRAPE_S).any(axis=1)
    found = {
        "page hosts agree": outside(agree, canary["recoveryWindow"]),
        "page budget": outside(burning, canary["recoveryWindow"]),
        "page extreme": catastrophe(config, extreme[:, :, CLIENTS].swapaxes(1, 2), model.SCRAPE_S).any(axis=(1, 2)),
        "ticket extreme": extreme_long[:, :, : CLIENTS.start],  # clients have the page
        "ticket budget": outside(of(verdicts.burnt), burn["ticket"]["long"]),
    }
    windows = (canary["recoveryLongWindow"], canary["recoveryDriftWindow"], canary["dayWindow"])
    for (span, flags), window in zip(verdicts.high.items(), windows, strict=True):
        found[f"ticket {span}"] = outside(of(flags), window)
    return {name: _starts(flags, recovering.shape[1]) for name, flags in found.items()}


def _starts(flags: Flags, length: int) -> Counts:
    step = length // flags.shape[-1]
    warm = WARM_UP_DAYS * model.DAY_S // model.SCRAPE_S // step
    apart = ONE_EVENT_S / model.SCRAPE_S / step
    counts = np.zeros((len(flags), 2), np.int64)
    for cluster, rows in enumerate(flags.reshape(len(flags), -1, flags.shape[-1])):
        for row in rows:
            at = np.flatnonzero(row)
            starts = at[np.append(True, np.diff(at) > apart)] if len(at) else at
            counts[cluster] += (starts < warm).sum(), (starts >= warm).sum()
    return counts


def interval(counts: NDArray[np.int64]) -> tuple[float, float]:
    """95 % interval of the sum: Poisson (Byar's), wider by how much clusters differ more than chance makes them."""
    total = counts.sum()
    wider = max(1.0, counts.var(ddof=1) / counts.mean()) if total and len(counts) > 1 else 1.0

    def end(count: float, sign: int) -> float:
        return (
            float(wider * count * (1 - 1 / (9 * count) + sign * 1.96 / (3 * math.sqrt(count))) ** 3) if count else 0.0
        )

    return end(total / wider, -1), end(total / wider + 1, 1)


def delays(
    config: Mapping[str, Any], climates: Sequence[Climate], seed: Sequence[int], clusters: int
) -> dict[str, list[float]]:
    """Minutes of each case of :data:`CASES`; infinite: not within a day."""
    calm = [replace(each, recoveries_per_week=0) for each in climates]
    found: dict[str, list[float]] = {case.name: [] for case in CASES}
    slots_of_day = model.SLOTS_PER_DAY
    for rng, size in _pieces(seed, clusters, len(climates)):
        for _ in range(size):
            history = model.healthy(rng, len(climates), WARM_UP_DAYS + 2.25, calm)
            start = int(rng.integers(WARM_UP_DAYS * slots_of_day, (WARM_UP_DAYS + 1) * slots_of_day))
            # scrapes of a host are as many slots behind its clock; all hosts regress at the same moment
            behind = rng.integers(0, model.SLOTS_PER_SCRAPE, len(climates))
            judged: dict[str, Verdicts] = {}
            for case in CASES:
                verdicts = judged.get(case.regression.name)
                if verdicts is None:
                    changed = [model.inject(history, case.regression, int(start - each)).level for each in behind]
                    level = np.stack([each[host] for host, each in enumerate(changed)])
                    verdicts = _judged(rng, config, calm, [replace(history, level=level)], 1)
                    judged[case.regression.name] = verdicts
                first = _pages if case.page else _tickets
                found[case.name] += first(rng, config, verdicts, start * model.SLOT_S, behind * model.SLOT_S)
    return found


def _pages(
    rng: np.random.Generator, config: Mapping[str, Any], verdicts: Verdicts, start_s: int, behind_s: NDArray[np.int64]
) -> list[float]:
    """Until most hosts agree, on the rules' own instants."""
    interval_s, pace_s = seconds(config["canary"]["interval"]), seconds(config["canary"]["agreementInterval"])
    at_s = start_s + rng.uniform(0, interval_s) + np.arange(-ONE_EVENT_S, model.DAY_S, interval_s)
    seen = ((at_s - behind_s[:, None]) // model.SCRAPE_S).astype(int) - 1
    those = np.arange(len(behind_s))[:, None], np.minimum(seen, verdicts.beyond.shape[1] - 1)
    agree = agreed(config, verdicts.beyond[those], verdicts.near[those], interval_s)
    fires = np.flatnonzero(agree & (at_s > start_s))
    return [(at_s[fires[0]] + rng.uniform(0, pace_s) - start_s) / 60 if len(fires) else np.inf]


def _tickets(
    rng: np.random.Generator, config: Mapping[str, Any], verdicts: Verdicts, start_s: int, behind_s: NDArray[np.int64]
) -> list[float]:
    """Of each host by itself, whatever the span or the budget; none of those that fired already."""
    found = []
    step = scrapes(config["tick"])
    interval_s = seconds(config["canary"]["interval"])
    for host in range(len(behind_s)):
        high = np.any([flags[host] for flags in verdicts.high.values()], axis=0)
        first = start_s
        times = []
        for flags, every in ((high, step), (verdicts.burnt[host], 1)):
            at_s = model.SCRAPE_S * (np.flatnonzero(flags) * every + 1) + behind_s[host]
            if ((at_s > first - ONE_EVENT_S) & (at_s <= first)).any():
                break
            # the season's group comes somewhere between two scrapes, the alert's within its interval
            at_s = at_s[at_s > first] + rng.uniform(0, model.SCRAPE_S if every > 1 else 0) + rng.uniform(0, interval_s)
            times.append((at_s[0] - first) / 60 if len(at_s) else np.inf)
        else:
            found.append(min(times))
    return found


def _row(name: str, counted: Mapping[str, Counts], times: Mapping[str, list[float]], nodes: int, took_s: float) -> str:
    cells = [name]
    for kind in ("page", "ticket"):
        those = {key.removeprefix(kind + " "): count for key, count in counted.items() if key.startswith(kind)}
        total = np.sum(list(those.values()), axis=0)
        first, later = (1000 / (nodes * days / 7) for days in (WARM_UP_DAYS, COUNTED_DAYS))
        low, high = (each * later for each in interval(total[:, 1]))
        cells.append(f"{total[:, 1].sum() * later:,.0f} ({low:,.0f} to {high:,.0f})")
        cells.append(f"{total[:, 0].sum() * first:,.0f}")
        cells.append(
            ", ".join(f"{key} {count[:, 1].sum()}" for key, count in those.items() if count[:, 1].any()) or "-"
        )
    for case in CASES:
        values = times[case.name]
        if not values:
            cells.append("-")
            continue
        middle, high = np.quantile(values, [0.5, 0.95], method="higher")
        share = np.mean(np.array(values) <= case.bar_min)
        cells.append(f"{_minutes(middle)} / {_minutes(high)} ({share:.0%})")
    return "| " + " | ".join([*cells, f"{took_s:.0f} s"]) + " |"


def _minutes(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else "-"


if __name__ == "__main__":
    sys.exit(main())
