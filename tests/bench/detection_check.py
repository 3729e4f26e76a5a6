"""Whether ``detection_fast`` says what the shipped rules say: both over the same series, in a real Prometheus.

After eight days of history, a cluster of three hosts in RADOS has something to find for a day and a half: episodes of
different length and height, of one host or of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import detection as real
from bench import detection_model as model
from bench.detection_fast import ALERTS, Floats, agreed, catastrophe, judge
from bench.detection_model import Array, Climate
from bench.detection_rules import Firing, Follower, needed, read_rules
from bench.history_store import Histograms, Labels, Series, Store, labels_of
from support import rules as rendered
from support.native_histograms import HISTOGRAMS
from support.paces import seconds

HOSTS = 3
QUIET_DAYS = 8
DAYS = 9.5
WITHIN_S = 60.0
LEAST_AGREEMENT = 0.9
REMEMBERED = (
    "plumbline:canary_expected:ratio", "plumbline:canary_slow_usual:ratio", "plumbline:fleet_spread:ratio",
    "plumbline:recovery:bool", "plumbline:canary_drift_limit:ratio", "plumbline:canary_usual_peak:ratio",
)  # fmt: skip
"""What looks back for days, or is looked back at. All else is evaluated from six hours before the first episode on."""
EPISODE_RATIOS = (1.3, 1.5, 2.0, 3.0, 5.0, 30.0)
Starts = dict[tuple[str, str, str], list[float]]
"""By alert, severity and host (none: of the cluster), in seconds since the beginning."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The cluster of this check and its samples, the same each time for one seed."""

    cluster: real.Cluster
    rng: np.random.Generator
    rate: float

    @classmethod
    def of(cls, climates: Sequence[Climate], seed: int) -> Checked:
        """All hosts have the first one's rate of operations."""
        rng = np.random.default_rng([seed, 3])
        history = _with_episodes(rng, model.healthy(rng, HOSTS, DAYS, climates))
        cluster = real.Cluster("checked", history, real.phases(rng, HOSTS), layer="rados")
        return cls(cluster, rng, climates[0].ops_per_second)

    def chunks(self) -> Iterator[tuple[float, float, list[Series]]]:
        """(from, until, samples), in the order of time."""
        edges = real.bucket_edges()
        totals = {(self.cluster.name, host): np.zeros(len(edges) + 2) for host in range(HOSTS)}
        end_s = DAYS * model.DAY_S
        for start_s in np.arange(0, end_s, real.CHUNK_S):
            until_s = min(start_s + real.CHUNK_S, end_s)
            yield (
                start_s,
                until_s,
                list(real.samples(self.rng, self.cluster, start_s, until_s, edges, totals, self.rate)),
            )


class Shipped:
    """The shipped rules of these files, followed over what is written to a store."""

    def __init__(self, store: Store, paths: Sequence[Path]) -> None:
        shipped = read_rules(paths, 60)
        self.offsets_s = {rule.name: rule.offset_s for rule in shipped}
        """When in its interval a rule is evaluated."""
        history = needed(shipped, REMEMBERED, real.NO_SERIES_HERE)
        rules = needed(shipped, ALERTS, real.NO_SERIES_HERE)
        self._remembering = Follower(store, history)
        self._judging = Follower(store, [replace(rule, keep_firing_s=0.0) for rule in rules if rule not in history])

    def follow(self, start_s: float, until_s: float) -> None:
        """Judged is from six hours before the first episode on."""
        span_s = real.EPOCH_S + start_s, real.EPOCH_S + until_s
        self._remembering.follow(*span_s)
        if until_s >= QUIET_DAYS * model.DAY_S:
            self._judging.follow(*span_s)

    def starts(self) -> Starts:
        """When alerts began to fire."""
        return _shipped(self._judging.firings())


def agrees(config: Mapping[str, Any], name: str, climates: Sequence[Climate], seed: int) -> bool:
    """Prints how many alerts fire within a minute of each other."""
    checked = Checked.of(climates, seed)
    counts: list[list[Array]] = [[] for _ in range(HOSTS)]
    with Store() as store:
        rules = Shipped(store, [rendered.RULES, rendered.ALERTS])
        for start_s, until_s, chunk in checked.chunks():
            store.write(chunk)
            for host in range(HOSTS):
                counts[host].append(_buckets(chunk, host))
            rules.follow(start_s, until_s)
        shipped = rules.starts()
    cluster, edges = checked.cluster, real.bucket_edges()
    modelled = _modelled(
        config, [np.concatenate(each) for each in counts], edges, cluster.phases_s, cluster.history, rules.offsets_s
    )
    return compare(name, ("Prometheus", shipped), ("model", modelled), seconds(config["tick"]))


def flavours_agree(config: Mapping[str, Any], name: str, climates: Sequence[Climate], seed: int) -> bool:
    """The same of the rules for classic and for native histograms, in two Prometheus 3.5 with the same operations."""
    checked = Checked.of(climates, seed)
    with Store() as one, Store(native=True) as other:
        classic, native = Shipped(one, [rendered.RULES, rendered.ALERTS]), Shipped(other, rendered.NATIVE)
        for start_s, until_s, chunk in checked.chunks():
            one.write(chunk)
            others, histograms = as_native(chunk)
            other.write(others)
            other.write_histograms(histograms)
            for rules in (classic, native):
                rules.follow(start_s, until_s)
        return compare(name, ("classic", classic.starts()), ("native", native.starts()), seconds(config["tick"]))


def as_native(chunk: Sequence[Series]) -> tuple[list[Series], list[Histograms]]:
    """Histograms as Prometheus 3.5 stores them with ``convert_classic_histograms_to_nhcb``; all else as it is."""
    others: list[Series] = []
    parts: dict[Labels, dict[str, Series]] = {}
    for each in chunk:
        labels = dict(each.labels)
        name, _, part = labels["__name__"].rpartition("_")
        if name not in HISTOGRAMS or part not in {"bucket", "count", "sum"}:
            others.append(each)
            continue
        limit = labels.pop("le", part)
        parts.setdefault(labels_of(name, labels), {})[limit] = each
    return others, [_histograms(place, of) for place, of in parts.items()]


def _histograms(place: Labels, of: Mapping[str, Series]) -> Histograms:
    limits = sorted((float(part), each) for part, each in of.items() if part not in {"count", "sum"})
    cumulative = np.stack([each.values for _, each in limits], axis=1)
    return Histograms(
        place,
        of["sum"].times_ms,
        np.array([limit for limit, _ in limits[:-1]]),
        np.diff(cumulative, axis=1, prepend=0.0),
        of["sum"].values,
    )


def _with_episodes(rng: np.random.Generator, history: model.History) -> model.History:
    """From the ninth day on one after the other, with three hours at least between two."""
    level = history.level.copy()
    hour = 3600 // model.SLOT_S
    slot = QUIET_DAYS * 24 * hour + hour
    while slot < level.shape[1]:
        length = int(rng.integers(hour // 12, 2 * hour))
        hosts = slice(None) if rng.random() < 0.5 else int(rng.integers(HOSTS))
        level[hosts, slot : slot + length] *= rng.choice(EPISODE_RATIOS)
        slot += length + 2 * hour
    return replace(history, level=level)


def _buckets(chunk: Sequence[Series], host: int) -> Array:
    """(scrapes, edges + 1): the cumulative counters."""
    chosen = []
    for each in chunk:
        labels = dict(each.labels)
        if labels["__name__"].endswith("_bucket") and labels["instance"].startswith(f"host{host}:"):
            chosen.append((float(labels["le"]), each.values))
    return np.stack([values for _, values in sorted(chosen, key=lambda pair: pair[0])], axis=1)


def _figures(counters: Array, edges: Array) -> tuple[Floats, Floats]:
    """The median as ``histogram_quantile`` has it, ÷ the baseline's; the share of slow operations."""
    grown = np.diff(counters, axis=0, prepend=0.0)
    count = grown[:, -1]
    at = np.argmax(grown >= 0.5 * count[:, None], axis=1)
    inside = np.minimum(at, len(edges) - 1)
    lower = np.where(inside > 0, edges[inside - 1], 0.0)
    rows = np.arange(len(grown))
    before = np.where(inside > 0, grown[rows, inside - 1], 0.0)
    part = (0.5 * count - before) / np.maximum(grown[rows, inside] - before, 1)
    median = np.where(at < len(edges), lower + (edges[inside] - lower) * part, edges[-1])
    slow = 1 - grown[:, edges.tolist().index(real.BOUND_S)] / count
    return np.log(median / real.BASELINE_P50_S).astype(np.float32)[None], slow.astype(np.float32)[None]


def _modelled(
    config: Mapping[str, Any],
    counts: Sequence[Array],
    edges: Array,
    phases: Array,
    history: model.History,
    offsets_s: Mapping[str, float],
) -> Starts:
    found: Starts = {}
    canary, burn = config["canary"], config["alerts"]["PlumblineCanaryBudgetBurn"]
    tick_s = seconds(config["tick"])
    offset_s = offsets_s["plumbline:canary_expected:ratio"]
    interval_s = seconds(canary["interval"])
    instants_s = np.arange(0, DAYS * model.DAY_S, interval_s)
    held = {
        window: _held(history, instants_s, seconds(window))
        for window in (
            canary["recoveryWindow"], canary["recoveryLongWindow"], canary["recoveryDriftWindow"],
            canary["dayWindow"], burn["ticket"]["long"],
        )
    }  # fmt: skip
    # the scrape that the first tick sees, as the judgement before it did; with as many scrapes left out, hosts have
    # their ticks at the same ones
    begins_s = offset_s + tick_s
    judged_s = begins_s - (begins_s - offsets_s["plumbline:degradation_fast:ratio"]) % interval_s
    firsts = [int((judged_s - phase) // model.SCRAPE_S) - 1 for phase in phases]
    least = min(firsts)
    figures = [_figures(each, edges) for each in counts]
    length = min(now.shape[1] - first for (now, _), first in zip(figures, firsts, strict=True)) + least
    skipped = [first - least for first in firsts]
    now, slow = (
        np.concatenate([each[part][:, skip : skip + length] for each, skip in zip(figures, skipped, strict=True)])
        for part in (0, 1)
    )
    verdicts = judge(config, now, slow, first=least, weekly=config["tick"])
    beyond, near, burning, extreme = [], [], [], []
    for host, (phase, skip) in enumerate(zip(phases, skipped, strict=True)):
        # the scrape and the tick that each instant sees
        seen = ((instants_s - phase) // model.SCRAPE_S).astype(int) - 1 - skip
        of_tick = ((instants_s - begins_s) // tick_s).astype(int)

        def at(flags: Any, index: Any, row: int = host) -> Any:
            return flags[row][np.clip(index, 0, flags.shape[1] - 1)] & (index >= 0)

        beyond.append(at(verdicts.beyond, seen))
        near.append(at(verdicts.near, seen))
        burning.append(at(verdicts.burning, seen))
        windows = (canary["recoveryLongWindow"], canary["recoveryDriftWindow"], canary["dayWindow"])
        high = np.zeros(len(instants_s), bool)
        for flags, window in zip(verdicts.high.values(), windows, strict=True):
            high |= at(flags, of_tick) & ~held[window]
        key = f"host{host}:10047"
        _note(found, (ALERTS[1], "warning", key), instants_s, high)
        burnt = at(verdicts.burnt, seen) & ~held[burn["ticket"]["long"]]
        _note(found, (ALERTS[3], "warning", key), instants_s, burnt)
        extreme.append(at(verdicts.extreme, seen))
    most = agreed(config, np.array(beyond), np.array(near), interval_s) & ~held[canary["recoveryWindow"]]
    _note(found, (ALERTS[2], "critical", ""), instants_s, most)
    pages = catastrophe(config, np.array(extreme), interval_s)
    for host in range(HOSTS):
        key = f"host{host}:10047"
        _note(found, (ALERTS[0], "critical", key), instants_s, pages[host])
        both = burning[host] & (np.sum(burning, axis=0) >= canary["minimumHosts"]["client"])
        _note(found, (ALERTS[3], "critical", f"host{host}:10047"), instants_s, both & ~held[canary["recoveryWindow"]])
    return found


def _held(history: model.History, instants_s: Array, window_s: float) -> Any:
    total = np.cumsum(np.append(0, history.recovering))
    until = np.clip((instants_s // model.SLOT_S).astype(int) + 1, 0, len(history.recovering))
    since = np.maximum(until - 1 - int(window_s) // model.SLOT_S, 0)
    return total[until] > total[since]


def _note(found: Starts, key: tuple[str, str, str], at_s: Array, flags: Any) -> None:
    """The beginning of each event after the quiet days."""
    times = at_s[np.flatnonzero(flags)]
    if len(times):
        starts = times[np.append(True, np.diff(times) > real.ONE_EVENT_S)]
        found[key] = [float(each) for each in starts if each > QUIET_DAYS * model.DAY_S]


def _shipped(firings: Sequence[Firing]) -> Starts:
    found: Starts = {}
    by_key: dict[tuple[str, str, str], list[Firing]] = {}
    for each in firings:
        by_key.setdefault((each.alert, each.severity, each.labels.get("instance", "")), []).append(each)
    for key, those in by_key.items():
        starts = [each.start_s - real.EPOCH_S for each in real.merged(those)]
        found[key] = [each for each in starts if each > QUIET_DAYS * model.DAY_S]
    return found


def compare(name: str, one: tuple[str, Starts], other: tuple[str, Starts], tick_s: float) -> bool:
    """Nothing may be found by one alone. Rules of the slow group may be an evaluation of theirs apart, seldom."""
    (title, starts), (title_there, starts_there) = one, other
    total = prompt = alone = 0
    print(f"{name}: {HOSTS} series over {DAYS:g} days")
    for key in sorted({(alert, severity) for alert, severity, _ in (*starts, *starts_there)}):
        here, there = _of(key, starts), _of(key, starts_there)
        late = []
        for host, start in here:
            near = [each for each in there if each[0] == host and abs(each[1] - start) <= tick_s + WITHIN_S]
            if near:
                there.remove(near[0])
                late.append(near[0][1] - start)
                if abs(late[-1]) > WITHIN_S:
                    at = f"{host or 'cluster'} at day {start / model.DAY_S:.4f}"
                    print(f"    {at}: {title_there} {late[-1]:+.0f} s")
            else:
                print(f"    {title} alone: {host or 'cluster'} at day {start / model.DAY_S:.4f}")
        for host, start in there:
            print(f"    {title_there} alone: {host or 'cluster'} at day {start / model.DAY_S:.4f}")
        same = sum(abs(each) <= WITHIN_S for each in late)
        print(f"  {key[0]}, {key[1]}: {len(here)} by {title}, {len(late)} by both, {same} within {WITHIN_S:g} s")
        total, prompt = total + len(here), prompt + same
        alone += len(here) - len(late) + len(there)
    print(f"  within {WITHIN_S:g} s: {prompt} of {total}; found by one alone: {alone}", flush=True)
    return total > 0 and not alone and prompt >= LEAST_AGREEMENT * total


def _of(key: tuple[str, str], starts: Starts) -> list[tuple[str, float]]:
    return sorted((each[2], start) for each, those in starts.items() if each[:2] == key for start in those)
