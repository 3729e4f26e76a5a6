"""``make bench-families``: the alerts that judge by history or by equals, besides the canaries', in the same worlds.

The shipped rules run in a real Prometheus over synthetic clusters (:mod:`bench.detection_model`): gateways, disks with
histograms, OSDs by Ceph's own means, and the growth of a cluster's data. Of each world some clusters stay healthy, in
the others one member becomes slow (or the data grows) for good. No number of these rules was chosen on these worlds.
Printed is a table of docs/climates.md: false tickets, and how soon a slow member has one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from bench import detection_model as model
from bench.detection import CHUNK_S, EPOCH_S, merged
from bench.detection_climates import CLIMATES, interval, read_climates
from bench.detection_model import Array
from bench.detection_rules import Firing, Follower, Rule, needed, read_rules
from bench.history_store import Series, Store, labels_of
from support.rules import ALERTS, RULES

SCRAPE_S = 60
"""Prometheus' own default."""
DAYS, FIRST_DAYS = 22.0, 8.0
"""Counted from a week on: before it nothing is usual."""
GROWTH_DAYS, FIRST_GROWTH_DAYS, GROWTH_SCRAPE_S = 70.0, 31.0, 240
MEMBERS = 6
OPERATIONS_PER_S = 50.0
QUEUE_S = 0.0002
EDGES_S = 2.0 ** np.arange(-14, 0)
"""Limits of a disk's histogram: twofold, as the kernel's are exported."""
WORLDS = ("people's days", "slow noise, a day", "nightly job at no fixed minute")
Totals = dict[object, Array]


@dataclass(frozen=True, slots=True)
class Family:
    """What is alike: ``mean_s`` is a member's latency, ``ratio`` what a fault makes of it."""

    name: str
    alerts: tuple[str, ...]
    mean_s: float
    ratio: float
    samples: Callable[[str, int, Array, Array, Totals], Iterator[Series]]


def counters(
    names: Sequence[tuple[str, dict[str, str]]], key: object, times_ms: Array, steps: Array, totals: Totals
) -> Iterator[Series]:
    """One counter for each name, from what it grows by (names, times)."""
    grown = totals.get(key, np.zeros(len(names)))[:, None] + np.cumsum(steps, axis=1)
    totals[key] = grown[:, -1]
    for (name, labels), values in zip(names, grown, strict=True):
        yield Series(labels_of(name, labels), times_ms.astype(np.int64), values)


def _pairs(names: Sequence[str], labels: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    return [(f"{name}_{part}", labels) for name in names for part in ("count", "sum")]


def gateway(cluster: str, member: int, mean_s: Array, times_ms: Array, totals: Totals) -> Iterator[Series]:
    """An RGW, by the manager of Ceph 16."""
    place = {"cluster": cluster, "instance": "mgr", "job": "ceph", "instance_id": str(member)}
    count = np.full(len(times_ms), OPERATIONS_PER_S * SCRAPE_S)
    names = _pairs(["ceph_rgw_get_initial_lat"], place)
    yield from counters(names, (cluster, member), times_ms, np.stack([count, count * mean_s]), totals)
    named = {**place, "ceph_daemon": f"rgw.{member}", "hostname": f"h{member}"}
    yield Series(labels_of("ceph_rgw_metadata", named), times_ms.astype(np.int64), np.ones(len(times_ms)))


def disk(cluster: str, member: int, mean_s: Array, times_ms: Array, totals: Totals) -> Iterator[Series]:
    """One of six of a model on one host, with the kernel's histogram."""
    place = {"cluster": cluster, "instance": "h0:10047", "job": "plumbline", "device": f"sd{'abcdef'[member]}"}
    count = np.full(len(times_ms), OPERATIONS_PER_S * SCRAPE_S)
    nothing = np.zeros(len(times_ms))
    share = model.share_up_to(EDGES_S, mean_s, np.full(len(mean_s), model.TAIL_SHARE), nothing)
    read = {**place, "operation": "read"}
    buckets = [("plumbline_disk_latency_seconds_bucket", {**read, "le": f"{edge:.12g}"}) for edge in EDGES_S]
    last = ("plumbline_disk_latency_seconds_bucket", {**read, "le": "+Inf"})
    names = [*buckets, last, *_pairs(["plumbline_disk_latency_seconds"], read)]
    names += [("plumbline_disk_ios_total", read), ("plumbline_disk_io_bytes_total", read)]
    steps = np.vstack([share.T * count, count, count, count * mean_s, count, count * 4096])
    yield from counters(names, (cluster, member), times_ms, steps, totals)
    kind = {"device_class": "ssd", "transport": "sata", "model": "M", "serial": f"S{cluster}{member}"}
    yield Series(labels_of("plumbline_disk_info", place | kind), times_ms.astype(np.int64), np.ones(len(times_ms)))


def osd(cluster: str, member: int, mean_s: Array, times_ms: Array, totals: Totals) -> Iterator[Series]:
    """By the manager a write, the store's commit that is most of it, and a queue that stays short; by the OSD
    itself its writes for other OSDs."""
    place = {"cluster": cluster, "instance": "mgr", "job": "ceph", "ceph_daemon": f"osd.{member}"}
    count = np.full(len(times_ms), OPERATIONS_PER_S * SCRAPE_S)
    names = [
        *(f"ceph_osd_op_{kind}_latency" for kind in ("w", "w_process", "r", "r_process")),
        *(f"ceph_bluestore_{part}_lat" for part in ("txc_commit", "kv_sync")),
    ]
    parts_s = (mean_s * 1.2 + QUEUE_S, mean_s * 1.2, mean_s * 0.5 + QUEUE_S, mean_s * 0.5, mean_s, mean_s * 0.8)
    own = {**place, "instance": f"h{member // 2}:10047", "job": "plumbline"}
    subops = [("plumbline_osd_subops_total", own), ("plumbline_osd_subop_seconds_total", own)]
    steps = np.vstack([row for part_s in (*parts_s, mean_s) for row in (count, count * part_s)])
    yield from counters([*_pairs(names, place), *subops], (cluster, member), times_ms, steps, totals)
    known = {**place, "device_class": "ssd", "hostname": f"h{member // 2}", "back_iface": "", "cluster_addr": ""}
    for name, labels in (("ceph_osd_metadata", known), ("ceph_osd_up", place)):
        yield Series(labels_of(name, labels), times_ms.astype(np.int64), np.ones(len(times_ms)))


FAMILIES = (
    Family("gateways", ("PlumblineGatewayLatencyHigh",), 0.02, 5, gateway),
    Family("disks", ("PlumblineDiskLatencyOutlier", "PlumblineDiskLatencyRegressed"), 0.002, 8, disk),
    Family("OSDs", ("PlumblineOsdOutlier", "PlumblineOsdSlowDisk", "PlumblineOsdQueueing"), 0.004, 8, osd),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one family in one world."""

    false: list[int]
    """Tickets of each healthy cluster."""
    weeks: float
    delays_min: list[float]

    def row(self, family: str, world: str) -> str:
        """A line of the table."""
        low, high = interval(np.array(self.false))
        found = [each for each in self.delays_min if np.isfinite(each)]
        soon = f"{median(found):.0f} min" if found else "-"
        return (
            f"| {family} | {world} | {sum(self.false)} in {self.weeks:.0f} cluster-weeks ({low:.0f} to {high:.0f}) "
            f"| {soon}; {len(found)} of {len(self.delays_min)} |"
        )


def examine(family: Family, climates: Sequence[model.Climate], seed: Sequence[int], clusters: int) -> Outcome:
    """Half of the clusters stay healthy; in the others the first member is slow from some moment after a week on."""
    rng = np.random.default_rng(seed)
    histories: dict[str, tuple[Array, float]] = {}
    for index, kind in itertools.product(range(clusters), ("healthy", "slow")):
        level = model.healthy(rng, MEMBERS, DAYS, climates[0]).level
        start_s = np.inf
        if kind == "slow":
            start_s = float(rng.uniform(FIRST_DAYS + 1, DAYS - 2) * model.DAY_S)
            level[0, int(start_s) // model.SLOT_S :] *= family.ratio
        scraped = level.reshape(MEMBERS, -1, SCRAPE_S // model.SLOT_S).mean(axis=2)
        histories[f"{kind}-{index}"] = scraped, start_s
    rules = needed(read_rules([RULES, ALERTS], 60), family.alerts)
    totals: Totals = {}

    def samples(part: slice, times_ms: Array) -> Iterator[Series]:
        for name, (level, _) in histories.items():
            for member in range(MEMBERS):
                yield from family.samples(name, member, family.mean_s * level[member, part], times_ms, totals)

    firings = _followed(rules, DAYS, SCRAPE_S, samples)
    return _outcome(firings, {name: start_s for name, (_, start_s) in histories.items()}, DAYS, FIRST_DAYS)


def grows(kind: str, rng: np.random.Generator, days: float) -> Array:
    """Used of 1: how the data of a cluster that is not full for years, or in 100 days, comes and goes."""
    time_d = np.arange(round(days * model.DAY_S / GROWTH_SCRAPE_S)) * GROWTH_SCRAPE_S / model.DAY_S
    used = 0.5 + 0.0005 * time_d
    if kind == "backups, deleted the next day":
        used += 0.05 * ((time_d + rng.uniform()) % 1 < 0.5)
    elif kind == "snapshots of two weeks":
        used += 0.06 * ((time_d + rng.uniform(0, 14)) % 14) / 14
    elif kind == "an import in a day":
        used += 0.05 * np.clip(time_d - rng.uniform(35, 60), 0, 1)
    elif kind == "writes on workdays alone":
        used += 0.0004 * (np.floor(time_d / 7) * 5 + np.minimum(time_d % 7, 5)) - 0.0003 * time_d
    return np.asarray(used + 0.002 * rng.standard_normal(len(used)))


GROWTHS = ("backups, deleted the next day", "snapshots of two weeks", "an import in a day", "writes on workdays alone")
GIVEN = (
    "plumbline:capacity_used:bytes", "plumbline:capacity_used:ratio", "plumbline:capacity_fullest:ratio",
    "plumbline:capacity_limit:ratio",
)  # fmt: skip


def examine_growth(kind: str, seed: Sequence[int], clusters: int) -> Outcome:
    """The alert about growth; in half of the clusters the data grows by 0.4 % a day from some moment on."""
    rng = np.random.default_rng(seed)
    used, starts = {}, {}
    for index, fate in itertools.product(range(clusters), ("healthy", "slow")):
        name = f"{fate}-{index}"
        used[name], starts[name] = grows(kind, rng, GROWTH_DAYS), np.inf
        if fate == "slow":
            starts[name] = float(rng.uniform(FIRST_GROWTH_DAYS, FIRST_GROWTH_DAYS + 10) * model.DAY_S)
            since_d = np.arange(len(used[name])) * GROWTH_SCRAPE_S / model.DAY_S - starts[name] / model.DAY_S
            used[name] += 0.004 * np.maximum(since_d, 0)
    rules = needed(read_rules([RULES, ALERTS], 60), ("PlumblineCapacityGrowthFast",), GIVEN)
    rules = [rule for rule in rules if "pool" not in rule.name and "host_loss" not in rule.name]

    def samples(part: slice, times_ms: Array) -> Iterator[Series]:
        for name, values in used.items():
            yield from _filled(name, values[part], times_ms.astype(np.int64))

    firings = _followed(rules, GROWTH_DAYS, GROWTH_SCRAPE_S, samples)
    return _outcome(firings, starts, GROWTH_DAYS, FIRST_GROWTH_DAYS)


def _followed(
    rules: Sequence[Rule], days: float, scrape_s: int, samples: Callable[[slice, Array], Iterator[Series]]
) -> list[Firing]:
    """What fires; ``samples`` are asked for by the places of the scrapes and their moments."""
    with Store() as store:
        follower = Follower(store, rules)
        for start_s in np.arange(0, days * model.DAY_S, CHUNK_S):
            part = slice(int(start_s) // scrape_s, int(start_s + CHUNK_S) // scrape_s)
            times_ms = (EPOCH_S + start_s + np.arange(1, CHUNK_S // scrape_s + 1) * scrape_s) * 1000
            store.write(samples(part, times_ms))
            follower.follow(EPOCH_S + start_s, EPOCH_S + start_s + CHUNK_S)
        return follower.firings()


def _filled(cluster: str, used: Array, times_ms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[Series]:
    place = {"cluster": cluster, "device_class": "hdd"}
    limit = labels_of("plumbline:capacity_limit:ratio", {"cluster": cluster, "limit": "full"})
    yield Series(limit, times_ms, np.full(len(times_ms), 0.95))
    for name, values in (("used:bytes", used * 1e15), ("used:ratio", used), ("fullest:ratio", used * 1.1)):
        yield Series(labels_of(f"plumbline:capacity_{name}", place), times_ms, values)


def _outcome(firings: Sequence[Firing], starts_s: dict[str, float], days: float, first_days: float) -> Outcome:
    false, delays = [], []
    for cluster, start_s in starts_s.items():
        own = [each for each in firings if each.labels.get("cluster") == cluster]
        counted = [each for each in own if each.start_s >= EPOCH_S + first_days * model.DAY_S]
        if np.isinf(start_s):
            by_member: dict[tuple[tuple[str, str], ...], list[Firing]] = {}
            for each in counted:
                by_member.setdefault(tuple(sorted(each.labels.items())), []).append(each)
            false.append(sum(len(merged(those)) for those in by_member.values()))
        else:
            later = [each.start_s - EPOCH_S - start_s for each in own if each.start_s > EPOCH_S + start_s]
            delays.append(min(later) / 60 if later else np.inf)
    return Outcome(false, len(false) * (days - first_days) / 7, delays)


def main() -> int:
    """Exit code 0: measured. Nothing is judged here."""
    parser = argparse.ArgumentParser(prog="make bench-families ARGS=…", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--clusters", type=int, default=4, help="of each fate in each world (default: 4)")
    parser.add_argument("--families", default="", help="their names, with ; between (default: all)")
    options = parser.parse_args()
    chosen = options.families.split(";") if options.families else [*(each.name for each in FAMILIES), "growth"]
    climates = read_climates(CLIMATES)
    print(
        "| family | world | false tickets | a slow member: ticket after; found |\n| --- | --- | --- | --- |", flush=True
    )
    for number, family in enumerate(FAMILIES):
        for place, world in enumerate(WORLDS if family.name in chosen else ()):
            outcome = examine(family, climates[world], [options.seed, number, place], options.clusters)
            print(outcome.row(family.name, world), flush=True)
    for place, kind in enumerate(GROWTHS if "growth" in chosen else ()):
        outcome = examine_growth(kind, [options.seed, 9, place], options.clusters)
        print(outcome.row("growth", kind), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
