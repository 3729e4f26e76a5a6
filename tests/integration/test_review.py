"""``plumbline report`` on a real Prometheus that remembers an eventful quarter; see ``support.history``."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.history_store import Series, Store
from plumbline.commands import reporting
from plumbline.core.words import DAY_S
from plumbline.report.gather import gather
from plumbline.report.model import Change, Review
from plumbline.report.period import parse_period
from plumbline.sources.prometheus.queries import Server
from support import history
from support.daemon import COMMAND
from support.history import FIRST_DAY, LAST_DAY, History, at
from support.programs import need

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
PERIOD = parse_period(first=FIRST_DAY, last=LAST_DAY, days=None, now_s=at("2024-10-02"))


@pytest.fixture(scope="module")
def told() -> History:
    return History()


@pytest.fixture(scope="module")
def store(told: History) -> Iterator[Store]:
    need("prometheus")
    with Store() as started:
        for piece in told.pieces():
            started.write(Series(*each) for each in piece)
        yield started


@pytest.fixture(scope="module")
def review(store: Store) -> Review:
    server = Server(store.url, timeout_s=300)
    return gather(server, PERIOD, cluster=None, made_s=at("2024-10-02 06:00"), version="1.2.3")


def report(store: Store, *flags: str) -> subprocess.CompletedProcess[str]:
    argv = [*COMMAND, "report", "--prometheus", store.url, "--timeout", "300s", *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)


def test_attainment_to_the_minute(review: Review, told: History) -> None:
    """Counted here from the samples themselves: the minutes of the period at which there was one."""
    counted = told.alive.copy()
    counted[-1] = False  # the midnight after the last day
    for row in review.attainment:
        flags = [beyond & counted for (_, layer, _), beyond in told.beyond.items() if layer == row.layer]
        assert row.figures == len(flags)
        assert row.judged_s == 60 * len(flags) * counted.sum()
        assert row.beyond_s == 60 * sum(each.sum() for each in flags)
        assert row.out_of_line_s == 60 * np.logical_or.reduce(flags).sum()
        assert row.observed_s == 60 * counted.sum()
    assert [row.layer for row in review.attainment] == ["network", "disk"]


def test_nothing_is_claimed_of_the_week_without_data(review: Review) -> None:
    (cluster,) = review.coverage
    (gap,) = cluster.gaps
    assert abs(gap.start_s - history.DEAD_FROM) <= 300
    assert gap.end_s == history.DEAD_TO
    assert cluster.observed_s == PERIOD.length_s - gap.length_s
    silent = set(range(history.DEAD_FROM, history.DEAD_TO, DAY_S))
    drawn = [row.days for row in review.attainment]
    drawn += [each.days for each in review.changes] + [each.used for each in review.classes]
    for days in drawn:
        assert not silent & {day for day, _ in days}


def _changes(review: Review, *words: str) -> list[Change]:
    return [each for each in review.changes if all(word in f"{each.host} {each.what}" for word in words)]


def test_the_slow_disk_is_dated_to_the_hour(review: Review) -> None:
    for words in (("stor02", "canary-sdc"), ("stor02", "disk sdc", "write"), ("osd.3",)):
        (change,) = _changes(review, *words)
        assert abs(change.at_s - history.STEP_AT) <= 3600, words
        assert not change.gradual
        assert change.until_s >= PERIOD.end_s
    (change,) = _changes(review, "canary-sdc")
    assert change.factor == pytest.approx(history.STEP, rel=0.05)


def test_what_else_changed_and_what_did_not(review: Review) -> None:
    (drift,) = _changes(review, "stor03", "rtt")
    assert drift.gradual
    assert drift.factor == pytest.approx(1.5, rel=0.1)
    (yardstick,) = _changes(review, "stor01", "rtt")
    assert yardstick.rerecorded
    assert abs(yardstick.at_s - history.RERECORDED_AT) <= 3600
    # the others have a daily and a weekly cycle and a week without data, and none of that is a change
    known = {"canary-sdc", "disk sdc", "osd.3", "probe rtt"}
    assert [each.what for each in review.changes if not any(word in each.what for word in known)] == []
    assert not _changes(review, "stor02", "rtt")
    assert review.changes_looked_at == 3 * 3 + 3 * 2 * 2 + 3 * 2


def test_alerts_with_their_times(review: Review) -> None:
    found = {each.alert: each for each in review.firings}
    assert set(found) == {"PlumblineCanaryLatencyHigh", "PlumblineDiskLatencyOutlier", "PlumblineOsdSlowDisk"}
    page = found["PlumblineCanaryLatencyHigh"]
    assert (page.severity, page.times, page.total_s, page.longest_s) == ("critical", 2, 21.5 * 3600, 20 * 3600)
    outlier = found["PlumblineDiskLatencyOutlier"]
    # 5 h 40 min, then from 15 August to the gap, then from its end to the last day
    assert outlier.times == 3
    to_gap = history.DEAD_FROM - at("2024-08-15 07:00")
    from_gap = at(LAST_DAY) - history.DEAD_TO
    assert outlier.total_s == 5 * 3600 + 40 * 60 + to_gap + from_gap
    assert outlier.still == 0
    (disk,), (osd,) = review.disks, review.osds
    assert (disk.part, osd.part, osd.total_s) == ("sdc", "osd.3", 2 * DAY_S)
    assert disk.worst is not None
    assert disk.worst.ratio == pytest.approx(history.STEP, rel=0.1)


def test_findings(review: Review) -> None:
    outcomes = {(each.check, each.host): each.outcome for each in review.findings}
    hosts = [f"stor0{number}.example:10047" for number in (1, 2, 3)]
    assert outcomes == {
        **{(history.CHECKS[0], host): "throughout" for host in hosts},
        (history.CHECKS[1], hosts[0]): "closed",
        **{(history.CHECKS[2], host): "opened" for host in hosts},
    }


def test_capacity_through_the_failover(review: Review) -> None:
    (hdd,) = review.classes
    assert hdd.used[0][1] == pytest.approx(0.60, abs=0.005)
    assert hdd.used[-1][1] == pytest.approx(0.74, abs=0.005)
    assert dict(hdd.days_to_full) == {"3d": 61, "14d": 94, "30d": 82}
    first_unsafe = next(day for day, value in hdd.host_loss if value > 1)
    assert abs(first_unsafe - history.UNSAFE_FROM) <= DAY_S
    (pool,) = review.pools
    assert (pool.pool, pool.self_healing) == ("vms", False)
    assert review.absent == ("plumbline:capacity_time_to_host_loss_unsafe:days",)
    # the failover moved every series of Ceph to another instance: no upgrade, no loss
    (upgrade,) = review.upgrades
    assert (upgrade.version, upgrade.before, upgrade.running, upgrade.of) == ("16.2.11", ("16.2.10",), 6, 6)
    assert 0 <= upgrade.first_s - history.UPGRADE_FROM <= 8 * 3600
    assert upgrade.complete_s is not None
    assert 0 <= upgrade.complete_s - history.UPGRADE_TO <= 6 * 3600


def test_wear_and_baselines(review: Review) -> None:
    assert [each.host for each in review.wear] == [f"stor0{n}.example:10047" for n in (3, 2, 1)]
    assert review.wear[0].model == "INTEL SSDPE2KX010T8"
    (recorded,) = review.recorded
    assert (recorded.host, recorded.layer, recorded.at_s) == ("stor01.example:10047", "network", history.RERECORDED_AT)


def test_the_page_says_what_matters(store: Store, tmp_path: Path) -> None:
    page, text = tmp_path / "review.html", tmp_path / "review.md"
    for file in (page, text):
        done = report(store, "--from", FIRST_DAY, "--to", LAST_DAY, "--output", str(file))
        assert (done.returncode, done.stderr) == (0, ""), done
    said = text.read_text()
    matters = said.partition("## What matters")[2].partition("\n## ")[0]
    assert "disk sdc" in matters
    assert "14 August 2024" in matters
    assert "full in 61 to 94 days" in matters
    assert "Losing the largest host is unsafe" in matters
    assert "observed for 92.22 % of the period" in said
    html = page.read_text()
    assert not re.search(r"<script|(src|href)=\"(?!#|data:,)|url\(|@import", html)
    assert "14 August 2024" in html


def test_a_part_of_the_quarter_ends_within_a_day(store: Store) -> None:
    """The period may end now: the last day is cut off, and is counted to its last minute."""
    period = parse_period(first="2024-08-10", last="2024-08-14", days=None, now_s=at("2024-08-14 18:30") + 30)
    assert period.end_s == at("2024-08-14 18:30")
    found = gather(Server(store.url, 300), period, cluster="north", made_s=time.time(), version="1")
    (disks,) = [row for row in found.attainment if row.layer == "disk"]
    assert disks.observed_s == period.length_s
    assert disks.out_of_line_s == period.end_s - history.STEP_AT
    assert [each.still for each in found.firings if each.alert == "PlumblineDiskLatencyOutlier"] == [1]


def test_one_clear_line_on_errors(store: Store, tmp_path: Path) -> None:
    there = tmp_path / "there.html"
    there.write_text("x")
    for flags, said in (
        (
            ("--from", "2023-01-01", "--to", "2023-01-31"),
            "no Plumbline data from 2023-01-01 00:00 to 2023-02-01 00:00",
        ),
        (
            ("--from", FIRST_DAY, "--to", LAST_DAY, "--cluster", "south"),
            "no cluster 'south' in the period; there are: north",
        ),
        (("--from", "2999-01-01"), "--from = '2999-01-01': is in the future"),
        (("--from", "yesterday"), "--from = 'yesterday': not a date; write it as 2026-08-01"),
        (("--output", str(there)), "exists already"),
        (("--output", str(tmp_path / "no" / "r.html")), "does not exist; create it first"),
    ):
        given = flags if "--output" in flags else (*flags, "--format", "markdown")
        done = report(store, *given)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert said in done.stderr
        assert done.stderr.startswith("plumbline: ")
        assert done.stderr.count("\n") == 1
    assert reporting.form_of(there, None) == "html"
