"""The layer over Ceph's producers, on captured pages: the same figures whoever exports them, in whichever release.

Each setting is one group of promtool's: pages of load-1 and load-2 as series that go on at their own rate. What is
expected is computed here from the two pages, not by the rules.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ceph_pages import (
    CONSTRUCTED,
    LOAD_S,
    RELEASES,
    STATES,
    Page,
    as_exporter,
    as_manager,
    captured,
    constructed,
    growing,
    pages,
    relabelled,
    scraped,
)
from support.programs import need
from support.rules import RULES

OSDS = ("osd.0", "osd.1", "osd.2")
STORE = {
    "commit": "ceph_bluestore_commit_lat",
    "submit": "ceph_bluestore_submit_lat",
    "kv": "ceph_bluestore_kv_sync_lat",
    "device": "ceph_bluestore_state_aio_wait_lat",
}
RUN_S = 900
"""Twice the rules' window and more."""


def mean(name: str, osd: str) -> float:
    """Seconds of one operation between the captures."""
    first, last = captured("load-1"), captured("load-2")
    total, count = (
        last[f"{name}_{suffix}", (("ceph_daemon", osd),)] - first[f"{name}_{suffix}", (("ceph_daemon", osd),)]
        for suffix in ("sum", "count")
    )
    return total / count


def rate(osd: str) -> float:
    first, last = captured("load-1"), captured("load-2")
    key = "ceph_osd_op_w_latency_count", (("ceph_daemon", osd),)
    return (last[key] - first[key]) / LOAD_S


def figures(osd: str) -> dict[str, float]:
    """Expression → what it must be for this OSD."""
    total = mean("ceph_osd_op_w_latency", osd)
    process = mean("ceph_osd_op_w_process_latency", osd)
    prepare = mean("ceph_osd_op_w_prepare_latency", osd)
    parts = {"total": total, "queue": total - process, "prepare": prepare, "commit_wait": process - prepare}
    found = {f'plumbline:osd_latency:mean5m{{operation="write",part="{part}"': value for part, value in parts.items()}
    found |= {f'plumbline:osd_store_latency:mean5m{{part="{part}"': mean(name, osd) for part, name in STORE.items()}
    found['plumbline:osd_operations:rate5m{operation="write"'] = rate(osd)
    return {f'{selector},ceph_daemon="{osd}"}}': value for selector, value in found.items()}


# -- promtool


def near(expr: str, value: float, at_s: int) -> dict[str, Any]:
    """One series, of this value. Floating point: the series are sums of steps."""
    return asked(f"count(abs({expr} - {value!r}) < {abs(value) * 1e-6 + 1e-12!r})", 1, at_s)


def asked(expr: str, value: float, at_s: int, labels: str = "{}") -> dict[str, Any]:
    return {"expr": expr, "eval_time": f"{at_s}s", "exp_samples": [{"labels": labels, "value": value}]}


def nothing(expr: str, at_s: int) -> dict[str, Any]:
    return {"expr": expr, "eval_time": f"{at_s}s", "exp_samples": []}


def group(name: str, interval_s: int, series: Iterable[dict[str, str]], cases: Sequence[dict[str, Any]]) -> Any:
    return {
        "name": name, "interval": f"{interval_s}s", "input_series": list(series), "promql_expr_test": list(cases)
    }  # fmt: skip


def promtool(folder: Path, tests: Sequence[Any]) -> None:
    """Only Ceph's rules: the others have nothing to read here."""
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    rules["groups"] = [each for each in rules["groups"] if each["name"].startswith(("plumbline-osd", "plumbline-ceph"))]
    assert len(rules["groups"]) >= 3
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules), "utf-8")
    file = folder / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "60s", "tests": list(tests)}), "utf-8"
    )
    done = subprocess.run(
        [need("promtool"), "test", "rules", file], capture_output=True, text=True, timeout=300, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[:6000]
    assert "many-to-many" not in said


# -- settings: who exports, which release, which labels, how often


@dataclass(frozen=True, slots=True)
class Setting:
    """Which producers export what, with which labels of the target."""

    release: int
    manager: bool
    exporter: bool
    cluster: str
    interval_s: int

    def pages(self) -> tuple[Page, Page]:
        first, last = (self._page(state) for state in STATES)
        return first, last

    def _page(self, state: str) -> Page:
        with_cluster = {"cluster": self.cluster} if self.cluster else {}
        page: Page = {}
        if self.release == 16:
            page |= scraped(captured(state), **with_cluster, instance="mgr-x:9283", job="ceph")
        else:
            # where only the exporter has the counters, the manager has the state all the same
            manager = (
                as_manager(captured(state), self.release, counters=True)
                if self.manager
                else as_manager(captured(state), self.release, counters=False)
            )
            page |= scraped(manager, **with_cluster, instance="mgr-x:9283", job="rook-ceph-mgr")
        if self.exporter:
            exporter = constructed(self.release, state, "exporter")
            page |= scraped(exporter, **with_cluster, instance="stor01:9926", job="ceph-exporter")
        return page


SETTINGS = [Setting(16, True, False, cluster, interval) for cluster in ("", "north") for interval in (10, 15, 30, 60)]
SETTINGS += [
    Setting(release, *producers, cluster, interval)
    for (release, producers), (cluster, interval) in zip(
        itertools.product(RELEASES, ((True, False), (False, True), (True, True))),
        itertools.cycle((("", 15), ("north", 60), ("north", 10), ("", 30), ("", 60))),
        strict=False,
    )
]


def test_every_setting_gives_the_same_figures(tmp_path):
    tests = []
    for setting in SETTINGS:
        series = growing(*setting.pages(), LOAD_S, setting.interval_s, RUN_S // setting.interval_s)
        cases = [near(expr, value, RUN_S) for osd in OSDS for expr, value in figures(osd).items()]
        # one for each OSD, operation and part: nothing exists twice
        cases += [
            asked('count(plumbline:osd_latency:mean5m{operation="write"})', 15, RUN_S),
            asked("count(plumbline:osd_operations:rate5m)", 9, RUN_S),
            asked('count(plumbline:osd_store_latency:mean5m{part="commit"})', 3, RUN_S),
            asked("count(plumbline:osd:info)", 3, RUN_S),
            asked("sum(plumbline:osd_up:bool)", 3, RUN_S),
            asked(f'count(plumbline:osd:info{{cluster="{setting.cluster}"}})', 3, RUN_S),
        ]
        # nothing was read: no series, not zero
        cases.append(nothing('plumbline:osd_latency:mean5m{operation="read"}', RUN_S))
        tests.append(group(str(setting), setting.interval_s, series, cases))
    assert len(tests) == 20
    promtool(tmp_path, tests)


def test_a_wrong_figure_is_noticed(tmp_path):
    """The comparison itself: half a percent off, and with the two producers added up."""
    setting = Setting(17, True, True, "", 15)
    series = growing(*setting.pages(), LOAD_S, 15, RUN_S // 15)
    expr, value = next(iter(figures("osd.0").items()))
    with pytest.raises(AssertionError):
        promtool(tmp_path, [group("off", 15, series, [near(expr, value * 1.005, RUN_S)])])
    with pytest.raises(AssertionError):
        promtool(tmp_path, [group("twice", 15, series, [near(f"sum({expr}) * 2", value, RUN_S)])])


# -- what changes while one looks


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
    failed_s = per * interval_s
    for at_s in range(failed_s - 60, failed_s + 600, 60):
        cases += [near(expr, value, at_s) for expr, value in figures("osd.0").items() if "osd_operations" not in expr]
        cases += [
            asked('count(plumbline:osd_latency:mean5m{operation="write",part="total"})', 3, at_s),
            asked("count(plumbline:osd:info)", 3, at_s),
            asked("sum(plumbline:osd_up:bool)", 3, at_s),
        ]
        # never more than there is; around the failover less, where each manager holds a part of the window
        cases.append(asked(f"count({RATE} < {rate('osd.0') * 1.001!r})", 1, at_s))
    cases.append(near(RATE, rate("osd.0"), failed_s + 540))
    promtool(tmp_path, [group("failover", interval_s, series, cases)])


COUNTERS = ("ceph_osd_op", "ceph_bluestore")
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
    cases = [
        case
        for at_s in range(RUN_S - 60, RUN_S + 600, 60)
        for case in (
            near(f'{store}{{part="commit",ceph_daemon="osd.0"}}', mean(STORE["commit"], "osd.0"), at_s),
            asked(f'count({store}{{part="commit"}})', 3, at_s),
            asked(f'count({store}{{part="submit"}})', 3, at_s),
        )
    ]  # fmt: skip
    promtool(tmp_path, [group("16 to 17", 15, series, cases)])


def test_an_exporter_that_changes_what_it_calls_an_osd_has_one_figure(tmp_path):
    """17.2.6 to 17.2.7 under one target: "ceph-osd.0" and "osd.0" in one window are one OSD, and no rule fails."""
    target = {"instance": "stor01:9926", "job": "ceph-exporter"}
    early = [scraped(constructed(17, state, "exporter"), **target) for state in STATES]
    assert {dict(labels)["ceph_daemon"] for _, labels in early[0]} == {f"ceph-{osd}" for osd in OSDS}
    later = [scraped(as_exporter(captured(state), 17, "vm"), **target) for state in STATES]
    per = RUN_S // 15
    series = _until(growing(*early, LOAD_S, 15, per), per) + _after(growing(*later, LOAD_S, 15, per), per)
    cases = []
    for at_s in range(RUN_S - 60, RUN_S + 600, 60):
        cases += [near(expr, value, at_s) for expr, value in figures("osd.1").items() if "osd_operations" not in expr]
        cases.append(asked('count(plumbline:osd_latency:mean5m{operation="write",part="total"})', 3, at_s))
    promtool(tmp_path, [group("17.2.6 to 17.2.7", 15, series, cases)])


# -- units


def test_units_are_never_mixed(tmp_path):
    """Whole milliseconds become seconds once, shares stay between 0 and 1; both against the captured page itself."""
    page = captured("degraded")
    commit = page["ceph_osd_commit_latency_ms", (("ceph_daemon", "osd.1"),)]
    used = page["ceph_pool_percent_used", (("pool_id", "1"),)]
    assert commit >= 10
    assert 0 < used < 1
    stored, avail = (page[f"ceph_pool_{name}", (("pool_id", "1"),)] for name in ("stored", "max_avail"))
    assert used == pytest.approx(stored / (stored + avail), rel=0.01), "a share of what it can hold, in no percent"
    cases = [
        near('plumbline:osd_reported_latency:seconds{part="commit",ceph_daemon="osd.1"}', commit / 1000, 60),
        near('plumbline:osd_reported_latency:seconds{part="apply",ceph_daemon="osd.1"}', commit / 1000, 60),
        near('plumbline:pool_used:ratio{pool="bench",pool_id="1"}', used, 60),
    ]
    promtool(tmp_path, [group("units", 15, growing(page, page, LOAD_S, 15, 10), cases)])


def test_an_image_latency_is_in_seconds(tmp_path):
    """Totals of a real cluster's image as Ceph's own announcement printed them under a help that says "msec" (ceph.io,
    "New in Nautilus: RBD Performance Monitoring"): 10 ms and 0.8 ms an operation, if and only if they are nanoseconds.
    """
    totals = {"write": (6886443555662.0, 684652.0), "read": (4371224159814.0, 5175256.0)}
    image = (("pool", "rbd"), ("namespace", ""), ("image", "image0"), ("instance", "mgr-x:9283"))
    first, last = {}, {}
    for operation, pair in totals.items():
        for suffix, value in zip(("sum", "count"), pair, strict=True):
            first[f"ceph_rbd_{operation}_latency_{suffix}", image] = 0.0
            last[f"ceph_rbd_{operation}_latency_{suffix}", image] = value
    cases = [
        near(f'plumbline:rbd_latency:mean5m{{pool="rbd",image="image0",operation="{operation}"}}', seconds, RUN_S)
        for operation, seconds in (("write", 0.010058312187303915), ("read", 0.0008446392139469042))
    ]
    promtool(tmp_path, [group("rbd", 15, growing(first, last, RUN_S, 15, 60), cases)])


# -- disks


def test_an_osd_is_joined_to_its_disk_whoever_says_so(tmp_path):
    """By its own host's daemon; else by the manager, whether the scrape honours its labels or not."""
    page = as_manager(captured("healthy"), 18, counters=False)
    honoured = scraped(page, job="ceph")

    def exported(name: str, labels: dict[str, str]) -> dict[str, str]:
        if "instance" not in labels:
            return {**labels, "instance": "mgr-x:9283"}
        return {**{k: v for k, v in labels.items() if k != "instance"}, "exported_instance": labels["instance"],
                "instance": "mgr-x:9283"}  # fmt: skip

    own = {("plumbline_disk_use_info", (("device", "sdq"), ("use", "osd"), ("user", "osd.1"),
                                        ("instance", "stor01.example:10047"))): 1.0}  # fmt: skip
    several = _with_two_disks(honoured)
    tests = []
    for name, pages_ in (("honoured", honoured), ("exported", relabelled(page, exported))):
        cases = [
            asked('count(plumbline:osd_device:info{hostname="vm",device="vdb",ceph_daemon="osd.0"})', 1, 60),
            asked("count(plumbline:osd_device:info)", 3, 60),
        ]
        tests.append(group(name, 15, growing(pages_, pages_, LOAD_S, 15, 10), cases))
    both = honoured | own
    cases = [
        asked('count(plumbline:osd_device:info{hostname="vm",device="sdq",ceph_daemon="osd.1",'
              'instance="stor01.example:10047"})', 1, 60),
        asked("count(plumbline:osd_device:info)", 3, 60),
    ]  # fmt: skip
    tests.append(group("own", 15, growing(both, both, LOAD_S, 15, 10), cases))
    alone = [asked('count(plumbline:osd_device:info{device="sdq",ceph_daemon="osd.1"})', 1, 60)]
    tests.append(group("own alone", 15, growing(own, own, LOAD_S, 15, 10), alone))
    cases = [asked('count(plumbline:osd_device:info{device=~"dm-."})', 3, 60)]
    tests.append(group("several disks", 15, growing(several, several, LOAD_S, 15, 10), cases))
    promtool(tmp_path, tests)


def _with_two_disks(page: Page) -> Page:
    return relabelled(page, lambda _, labels: {**labels, **({"devices": "nvme0n1,sdc"} if "devices" in labels else {})})


# -- the fixtures


def test_the_constructed_pages_are_what_the_documented_changes_make_of_the_captured():
    for path, text in pages().items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m support.ceph_pages in tests/"
    assert "CONSTRUCTED" in next(iter(pages().values()))
    assert {path.name for path in CONSTRUCTED.iterdir()} == {"ORIGIN.md", *map(str, RELEASES)}
