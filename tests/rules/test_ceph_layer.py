"""The layer over Ceph's producers, on captured pages: the same figures whoever exports them, in whichever release.

Each setting is one group of promtool's: two pages of each producer as series that go on at their own rate. What is
expected is computed here from these pages, not by the rules.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from support.ceph_layer import asked, group, near, promtool
from support.ceph_pages import (
    COUNTERS,
    LOAD_S,
    RELEASES,
    STATES,
    Page,
    as_exporter,
    as_manager,
    captured,
    from_zero,
    growing,
    scraped,
    served,
)

STORE = {
    "commit": ("txc_commit", "commit"),
    "submit": ("txc_submit", "submit"),
    "kv": ("kv_sync",),
    "device": ("state_aio_wait",),
    "read": ("read",),
}
"""Part → names in ``ceph_bluestore_…_lat``, newest first."""
OPERATIONS = {"read": "r", "write": "w", "read-modify-write": "rw"}
RUN_S = 900
"""Twice the rules' window and more."""
Pair = tuple[Page, Page]
"""One producer's page at two moments."""


def loaded(change: Callable[[Page], Page] = lambda page: page) -> Pair:
    """16.2's two pages, changed."""
    first, last = (change(captured(state)) for state in STATES)
    return first, last


def mean(pair: Pair, name: str, osd: str) -> float | None:
    """Seconds of one operation between the two pages; ``None``: there was none."""
    first, last = pair
    keys = [(f"{name}_{suffix}", (("ceph_daemon", osd),)) for suffix in ("sum", "count")]
    if keys[1] not in last:
        return None
    total, count = (last[key] - first[key] for key in keys)
    return total / count if count > 0 else None


def rate(pair: Pair, operation: str, osd: str) -> float | None:
    """Operations a second; ``None``: the producer has no such counter."""
    first, last = pair
    key = f"ceph_osd_op_{OPERATIONS[operation]}_latency_count", (("ceph_daemon", osd),)
    return (last[key] - first[key]) / LOAD_S if key in last else None


def figures(pair: Pair, osd: str) -> dict[str, float]:
    """Expression → what it must be for this OSD."""
    found: dict[str, float | None] = {}
    for operation, short in OPERATIONS.items():
        total, process, prepare = (
            mean(pair, f"ceph_osd_op_{short}_{part}latency", osd) for part in ("", "process_", "prepare_")
        )
        found[f'plumbline:osd_operations:rate5m{{operation="{operation}"'] = rate(pair, operation, osd)
        if total is None or process is None or prepare is None:
            continue
        parts = {"total": total, "process": process, "queue": max(0.0, total - process), "prepare": prepare}
        parts["commit_wait"] = max(0.0, process - prepare)
        for part, value in parts.items():
            found[f'plumbline:osd_latency:mean5m{{operation="{operation}",part="{part}"'] = value
    for part, names in STORE.items():
        means = (mean(pair, f"ceph_bluestore_{name}_lat", osd) for name in names)
        found[f'plumbline:osd_store_latency:mean5m{{part="{part}"'] = next((m for m in means if m is not None), None)
    return {f'{selector},ceph_daemon="{osd}"}}': value for selector, value in found.items() if value is not None}


# -- settings: who exports, which release, which labels, how often


@dataclass(frozen=True, slots=True)
class Setting:
    """Which producers export what, with which labels of the target."""

    release: int
    manager: bool
    exporter: bool
    cluster: str
    interval_s: int

    def producers(self) -> list[Pair]:
        """What each serves; where only the exporter has the counters, the manager has the state all the same."""
        manager: Pair
        exporter: Pair
        if self.release == 16:
            return [self._of_manager(loaded())]
        if self.release == 18:
            state, counters = (served(18, f"mgr-metrics{suffix}") for suffix in ("", "-counters"))
            manager = (from_zero(counters), counters) if self.manager else (state, state)
            exported = as_exporter(counters, 18, "stor18")
            exporter = (from_zero(exported), exported)
        elif self.release == 20:
            state, counters = (served(20, f"mgr-metrics{suffix}") for suffix in ("", "-counters"))
            manager = (from_zero(counters), counters) if self.manager else (state, state)
            exporter = (served(20, "exporter-metrics"), served(20, "exporter-metrics-load"))
        else:
            manager = loaded(lambda page: as_manager(page, self.release, counters=self.manager))
            exporter = loaded(lambda page: as_exporter(page, self.release, "vm", early=self.release == 17))
        return [self._of_manager(manager), *([self._scraped(exporter, *EXPORTERS_TARGET)] if self.exporter else [])]

    def _of_manager(self, pair: Pair) -> Pair:
        return self._scraped(pair, "mgr-x:9283", "ceph" if self.release == 16 else "rook-ceph-mgr")

    def _scraped(self, pair: Pair, instance: str, job: str) -> Pair:
        target = {"instance": instance, "job": job} | ({"cluster": self.cluster} if self.cluster else {})
        # a label of the page itself stays: the scrape honours it
        first, last = (scraped(page, **target) for page in pair)
        return first, last


EXPORTERS_TARGET = ("stor01:9926", "ceph-exporter")
SETTINGS = [Setting(16, True, False, cluster, interval) for cluster in ("", "north") for interval in (10, 15, 30, 60)]
SETTINGS += [
    Setting(release, *producers, cluster, interval)
    for (release, producers), (cluster, interval) in zip(
        itertools.product(RELEASES, ((True, False), (False, True), (True, True))),
        itertools.cycle((("", 15), ("north", 60), ("north", 10), ("", 30), ("", 60))),
        strict=False,
    )
]


def plain(pair: Pair) -> Pair:
    """Counters by the OSD alone, as it is called in the end."""

    def named(page: Page) -> Page:
        found: Page = {}
        for (name, labels), value in page.items():
            if name.startswith(COUNTERS):
                found[name, (("ceph_daemon", dict(labels)["ceph_daemon"].removeprefix("ceph-")),)] = value
        return found

    first, last = (named(page) for page in pair)
    return first, last


def expected(producers: Iterable[Pair], osds: Iterable[str]) -> dict[str, float]:
    """Of several producers of one figure the largest: each figure is one producer's own."""
    found: dict[str, float] = {}
    for pair in map(plain, producers):
        for osd in osds:
            for expr, value in figures(pair, osd).items():
                found[expr] = max(value, found.get(expr, 0.0))
    return found


def test_every_setting_gives_the_same_figures(tmp_path):
    tests = []
    for setting in SETTINGS:
        producers = setting.producers()
        samples = RUN_S // setting.interval_s
        series = [each for pair in producers for each in growing(*pair, LOAD_S, setting.interval_s, samples)]
        osds = sorted(dict(labels)["ceph_daemon"] for name, labels in producers[0][1] if name == "ceph_osd_up")
        assert len(osds) == (6 if setting.release == 20 else 3)
        figure = expected(producers, osds)
        assert f'plumbline:osd_latency:mean5m{{operation="write",part="total",ceph_daemon="{osds[0]}"}}' in figure
        cases = [near(expr, value, RUN_S) for expr, value in figure.items()]
        # and no other: nothing exists twice, and what was not counted is no series, not zero
        counts = Counter(expr.partition("{")[0] for expr in figure)
        assert len(counts) == 3
        cases += [asked(f"count({name})", count, RUN_S) for name, count in counts.items()]
        cases += [
            asked("count(plumbline:osd:info)", len(osds), RUN_S),
            asked("sum(plumbline:osd_up:bool)", len(osds), RUN_S),
            asked(f'count(plumbline:osd:info{{cluster="{setting.cluster}"}})', len(osds), RUN_S),
        ]
        tests.append(group(str(setting), setting.interval_s, series, cases))
    assert len(tests) == 20
    promtool(tmp_path, tests)


def test_a_wrong_figure_is_noticed(tmp_path):
    """The comparison itself: half a percent off, and with the two producers added up."""
    producers = Setting(20, True, True, "", 15).producers()
    series = [each for pair in producers for each in growing(*pair, LOAD_S, 15, RUN_S // 15)]
    expr, value = next(iter(expected(producers, ["osd.0"]).items()))
    promtool(tmp_path, [group("right", 15, series, [near(expr, value, RUN_S)])])
    with pytest.raises(AssertionError):
        promtool(tmp_path, [group("off", 15, series, [near(expr, value * 1.005, RUN_S)])])
    with pytest.raises(AssertionError):
        promtool(tmp_path, [group("twice", 15, series, [near(f"sum({expr}) * 2", value, RUN_S)])])


# -- what changes while one looks


def means(osd: str) -> dict[str, float]:
    """Of 16.2 under load."""
    return {expr: value for expr, value in figures(loaded(), osd).items() if "osd_operations" not in expr}


def _until(page_series: list[dict[str, str]], samples: int) -> list[dict[str, str]]:
    """The series end here, as when a target stops to expose them: stale at once."""
    return [{**each, "values": f"{_cut(each['values'], samples)} stale"} for each in page_series]


def _after(page_series: list[dict[str, str]], samples: int) -> list[dict[str, str]]:
    """The series begin this much later."""
    return [{**each, "values": f"_x{samples} {each['values']}"} for each in page_series]


def _cut(values: str, samples: int) -> str:
    return values.rsplit("x", 1)[0] + f"x{samples - 1}"


@pytest.mark.parametrize("interval_s", [10, 15, 30, 60])
@pytest.mark.parametrize("same_instance", [True, False], ids=["cephadm", "own-instance"])
def test_a_failover_changes_no_mean_and_doubles_nothing(tmp_path, interval_s, same_instance):
    """The captured pages in their order: before; the other manager's without counters; the same with them."""
    before, early, after = (captured(f"failover-{state}") for state in ("before", "early", "after"))
    new = "mgr-y:9283" if same_instance else "mgr-x:9283"
    first, last = captured("load-1"), captured("load-2")
    # the state of the OSDs from the captures of the failover, their counters at the rate of the captures under load
    state = {key: value for key, value in before.items() if (key not in first) or not key[0].startswith(COUNTERS)}
    assert not [name for name, _ in early if name.startswith(COUNTERS)], "the early page has no counters"
    assert {name for name, _ in after} == {name for name, _ in before}
    counters = {key: value for key, value in first.items() if key[0].startswith(COUNTERS)}
    ends = {key: value for key, value in last.items() if key[0].startswith(COUNTERS)}

    per = RUN_S // interval_s
    gap = max(1, 40 // interval_s)
    old = {"instance": "mgr-y:9283", "job": "ceph"}
    target = {"instance": new, "job": "ceph"}
    beyond = {key: value + (ends[key] - value) / LOAD_S * (RUN_S + 40) for key, value in counters.items()}
    beyond_end = {key: value + ends[key] - counters[key] for key, value in beyond.items()}
    series = []
    if same_instance:
        running = growing(scraped(counters, **old), scraped(ends, **old), LOAD_S, interval_s, 2 * per)
        for each in running:
            start, step = each["values"].split("x")[0], each["values"]
            series.append({**each, "values": f"{_cut(step, per)} _x{gap} " + _resumed(start, per + gap, per)})
        series += growing(scraped(state, **old), scraped(state, **old), LOAD_S, interval_s, 2 * per)
    else:
        series += _until(growing(scraped(counters, **old), scraped(ends, **old), LOAD_S, interval_s, per), per)
        series += _until(growing(scraped(state, **old), scraped(state, **old), LOAD_S, interval_s, per), per)
        series += _after(
            growing(scraped(beyond, **target), scraped(beyond_end, **target), LOAD_S, interval_s, per), per + gap
        )
        series += _after(growing(scraped(state, **target), scraped(state, **target), LOAD_S, interval_s, per), per)
    cases = []
    writes = rate((first, last), "write", "osd.0")
    assert writes
    failed_s = per * interval_s
    for at_s in range(failed_s - 60, failed_s + 600, 60):
        cases += [near(expr, value, at_s) for expr, value in means("osd.0").items()]
        cases += [
            asked('count(plumbline:osd_latency:mean5m{operation="write",part="total"})', 3, at_s),
            asked("count(plumbline:osd:info)", 3, at_s),
            asked("sum(plumbline:osd_up:bool)", 3, at_s),
        ]
        # never more than there is; around the failover less, where each manager holds a part of the window
        cases.append(asked(f"count({RATE} < {writes * 1.001!r})", 1, at_s))
    cases.append(near(RATE, writes, failed_s + 540))
    promtool(tmp_path, [group("failover", interval_s, series, cases)])


RATE = 'plumbline:osd_operations:rate5m{operation="write",ceph_daemon="osd.0"}'


def _resumed(start: str, skipped: int, samples: int) -> str:
    """Go on as if it had never stopped: the counters are the OSD's, not the manager's."""
    head, sign, step = start.rpartition("+") if "+" in start[1:] else start.rpartition("-")
    value = float(head) + float(sign + step) * skipped
    return f"{value!r}{sign}{step}x{samples}"


def test_an_osd_being_upgraded_has_one_figure_in_every_part(tmp_path):
    """16 to 17 under one target: old names end, the OSD restarts from zero under new ones; both are in the window."""
    first, last = captured("load-1"), captured("load-2")
    old = {key: value for key, value in first.items() if key[0].startswith(COUNTERS)}
    target = {"instance": "mgr-x:9283", "job": "ceph"}
    new_first, new_last = (as_exporter(page, 18, "vm") for page in (first, last))
    gone = {key for key in old if key not in new_first}
    assert gone, "some names change"
    per = RUN_S // 15
    old_first = {key: first[key] for key in gone}
    old_last = {key: last[key] for key in gone}
    fresh = {key: 0.0 for key in new_first if key not in old}
    fresh_last = {key: new_last[key] - new_first[key] for key in fresh}
    kept_first = {key: first[key] for key in old if key not in gone and key in new_first}
    kept_last = {key: last[key] for key in kept_first}
    series = _until(growing(scraped(old_first, **target), scraped(old_last, **target), LOAD_S, 15, per), per)
    series += _after(growing(scraped(fresh, **target), scraped(fresh_last, **target), LOAD_S, 15, per), per + 2)
    series += growing(scraped(kept_first, **target), scraped(kept_last, **target), LOAD_S, 15, 2 * per)
    store = "plumbline:osd_store_latency:mean5m"
    commit = mean((first, last), "ceph_bluestore_commit_lat", "osd.0")
    assert commit
    cases = [
        case
        for at_s in range(RUN_S - 60, RUN_S + 600, 60)
        for case in (
            near(f'{store}{{part="commit",ceph_daemon="osd.0"}}', commit, at_s),
            asked(f'count({store}{{part="commit"}})', 3, at_s),
            asked(f'count({store}{{part="submit"}})', 3, at_s),
        )
    ]  # fmt: skip
    promtool(tmp_path, [group("16 to 17", 15, series, cases)])


def test_an_exporter_that_changes_what_it_calls_an_osd_has_one_figure(tmp_path):
    """17.2.6 to 17.2.7 under one target: "ceph-osd.0" and "osd.0" in one window are one OSD, and no rule fails."""
    target = {"instance": "stor01:9926", "job": "ceph-exporter"}
    early = loaded(lambda page: scraped(as_exporter(page, 17, "vm", early=True), **target))
    assert {dict(labels)["ceph_daemon"] for _, labels in early[0]} == {f"ceph-osd.{number}" for number in range(3)}
    later = loaded(lambda page: scraped(as_exporter(page, 17, "vm"), **target))
    per = RUN_S // 15
    series = _until(growing(*early, LOAD_S, 15, per), per) + _after(growing(*later, LOAD_S, 15, per), per)
    cases = []
    for at_s in range(RUN_S - 60, RUN_S + 600, 60):
        cases += [near(expr, value, at_s) for expr, value in means("osd.1").items()]
        cases.append(asked('count(plumbline:osd_latency:mean5m{operation="write",part="total"})', 3, at_s))
    promtool(tmp_path, [group("17.2.6 to 17.2.7", 15, series, cases)])
