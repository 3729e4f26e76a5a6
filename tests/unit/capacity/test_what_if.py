"""What-if without a Prometheus: changes of small clusters in round numbers, and what can not be asked."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.capacity import changes, scenarios, words
from plumbline.capacity.facts import facts_of, queries
from plumbline.capacity.figures import class_figures, pool_figures
from plumbline.capacity.model import DataOsd, DataPool, Facts, Load, scopes
from plumbline.capacity.purchases import purchases
from plumbline.capacity.retention import FORECAST_S, forecast_note, period_note
from plumbline.errors import ConfigError, PlumblineError
from plumbline.sources.prometheus.api import Track, parse_retention

DAY = 86400


def osds(
    hosts: int, *, each: int = 1, used: float = 400.0, device_class: str = "hdd", racks: int = 0
) -> tuple[DataOsd, ...]:
    return tuple(
        DataOsd(
            f"osd.{device_class}.{host}.{disk}", device_class, "default",
            (("rack", f"r{host % racks}"),) if racks else (),
            f"h{host}", 1000.0, used, 90.0,
        )
        for host in range(hosts)
        for disk in range(each)
    )  # fmt: skip


def cluster(*pools: DataPool, of: tuple[DataOsd, ...] = (), **loads: Load) -> Facts:
    return Facts("north", of or osds(4), pools or (VMS,), 0.9, 0.95, loads or {"hdd": LOAD})


VMS = DataPool("vms", "host", "default", "hdd", 3, 3.0, 1.0, stored=500.0, reads=100.0, writes=50.0, pgs=120.0)
LOAD = Load(
    {"3d": 100 / DAY, "14d": -1.0}, asked=250.0, osd_iops=125.0, measured_by="osd-bench", recovery=4.0, recovered_by=4
)


def hdd(facts: Facts):
    return class_figures(facts, "hdd")


def test_more_hosts_take_their_share_by_size() -> None:
    found = hdd(changes.with_hosts(cluster(), "hdd", 4))
    assert (found.osds, found.hosts, found.size, found.used, found.fullest) == (8, 8, 8000, 1600, 0.2)
    assert found.iops_used == 0.25
    assert found.pgs == 45
    # 200 of the fullest host, by twice the OSDs that recovered 4 B/s
    assert found.rebuild_s == pytest.approx(25)


def test_a_new_host_may_be_larger_and_goes_to_the_smallest_rack() -> None:
    facts = changes.with_hosts(cluster(of=osds(5, racks=2)), "hdd", 1, disks=2, size=2500.0)
    new = facts.osds[-2:]
    assert {(osd.domain("rack"), osd.size, osd.used) for osd in new} == {("r1", 2500.0, 500.0)}
    assert sum(osd.used for osd in facts.osds) == pytest.approx(2000)


def test_more_disks_go_where_least_is() -> None:
    uneven = (*osds(3, each=2), *osds(4)[3:])
    facts = changes.with_disks(cluster(of=uneven), "hdd", 1)
    assert facts.osds[-1].host == "h3"
    assert facts.osds[-1].used == pytest.approx(2800 / 8)


def test_a_second_addition_has_names_of_its_own() -> None:
    facts = changes.with_hosts(changes.with_hosts(cluster(), "hdd", 1), "hdd", 1)
    assert len({osd.host for osd in facts.osds}) == 6


def test_a_retired_class_moves_with_growth_and_operations() -> None:
    both = (*osds(4), *osds(4, used=100.0, device_class="ssd"))
    ssd = replace(LOAD, growth={"3d": 1.0, "30d": 1.0}, asked=50.0)
    facts = changes.retired(cluster(of=both, hdd=LOAD, ssd=ssd), "hdd", "ssd")
    found = class_figures(facts, "ssd")
    assert (facts.classes, found.used, found.fullest) == (("ssd",), 2000, 0.5)
    assert facts.load("ssd").asked == 300
    # of the other slopes one of the two is unknown
    assert facts.load("ssd").growth == {"3d": pytest.approx(1 + 100 / DAY)}
    assert facts.pools[0].device_class == "ssd"


def test_growth_times_two_halves_the_days() -> None:
    assert hdd(cluster()).days_to_full == {"3d": pytest.approx(1600 * (0.95 / 0.4 - 1) / 100)}
    assert hdd(changes.grown(cluster(), 2)).days_to_full["3d"] == pytest.approx(hdd(cluster()).days_to_full["3d"] / 2)


def test_another_profile_changes_bytes_operations_and_growth() -> None:
    pool = replace(VMS, growth={"3d": 10 / DAY})
    facts = changes.with_profile(cluster(pool, of=osds(7)), "vms", data=4, parity=2)
    found, held = hdd(facts), pool_figures(facts, facts.pools[0])
    assert found.used == pytest.approx(2800 - 500 * 1.5)
    # 100 reads of four OSDs and 50 writes of six, of 100 and of three before
    assert facts.load("hdd").asked == pytest.approx(250 * (400 + 300) / (100 + 150))
    assert facts.load("hdd").growth == {"3d": pytest.approx((100 - 15) / DAY)}
    assert (held.copies, held.domains, held.placed, held.heals) == (6, 7, True, True)
    assert words.profile(facts.pools[0]) == "4+2"


def test_a_host_that_may_be_copied_elsewhere() -> None:
    facts = changes.lost(cluster(), changes.chosen(cluster(), "host", "h1"))
    found = hdd(facts)
    assert (found.osds, found.used) == (3, pytest.approx(1600))
    assert found.fullest == pytest.approx(0.4 * 4 / 3)
    # 400 by three OSDs of the four that recovered 4 B/s
    assert found.loss is not None
    assert (found.loss.unrestored, found.loss.restore_s) == (0, pytest.approx(400 / 3))


def test_three_hosts_and_three_copies_restore_a_disk_inside_its_host_and_a_host_never() -> None:
    facts = cluster(of=osds(3, each=4))
    assert scopes(facts, "default", "hdd") == {"host"}
    disk = changes.lost(facts, ["osd.hdd.0.0"])
    assert {osd.host: osd.used for osd in disk.osds} == {"h0": pytest.approx(400 * 4 / 3), "h1": 400, "h2": 400}
    host = hdd(changes.lost(facts, changes.chosen(facts, "host")))
    assert host.loss is not None
    assert (host.used, host.loss.unrestored) == (3200, 1600)


def test_three_racks_and_three_copies_restore_a_host_inside_its_rack() -> None:
    facts = cluster(replace(VMS, failure_domain="rack"), of=osds(6, racks=3))
    left = changes.lost(facts, changes.chosen(facts, "host", "h0")).osds
    assert {osd.host: osd.used for osd in left} == {"h1": 400, "h2": 400, "h3": 800, "h4": 400, "h5": 400}


def test_one_copy_is_lost() -> None:
    facts = cluster(replace(VMS, copies=1, raw_ratio=1.0))
    found = hdd(changes.lost(facts, ["osd.hdd.0.0"]))
    assert found.loss is not None
    assert found.loss.unrestored == 400


def test_a_database_takes_its_osds() -> None:
    shared = tuple(replace(osd, db="h0/sdx") if osd.host == "h0" else osd for osd in osds(4, each=2))
    assert changes.chosen(cluster(of=shared), "db") == ("osd.hdd.0.0", "osd.hdd.0.1")


def test_quotas_and_limits() -> None:
    pool = replace(VMS, quota_bytes=1000.0, objects=90.0, quota_objects=100.0, growth={"3d": 10 / DAY})
    found = pool_figures(cluster(pool), pool)
    assert (found.quota, found.days_to_quota) == (0.9, {"3d": pytest.approx(50)})
    many = tuple(replace(osd, pgs=240.0) for osd in osds(4))
    facts = changes.lost(cluster(of=many), ["osd.hdd.0.0"])
    assert any(
        "320 placement groups on an OSD, more than mon_max_pg_per_osd (250)" in note
        for note in words.notes(facts, ["hdd"])
    )


def test_a_host_that_is_too_big_is_said() -> None:
    big = (*osds(4), *(replace(osd, daemon=f"b{n}", host="big") for n, osd in enumerate(osds(4))))
    (note,) = [each for each in words.notes(cluster(of=big), ["hdd"]) if "host big has 50.00 %" in each]
    assert "at most one of 3 copies" in note


def test_a_class_that_is_empty_is_not_full_and_loses_nothing() -> None:
    found = hdd(changes.lost(cluster(of=osds(4, used=0.0)), ["osd.hdd.0.0"]))
    assert (found.left, found.days_to_full) == (None, {})
    assert words.days(found.days_to_full, LOAD) == words.UNKNOWN
    assert found.loss is not None
    assert words.restored(found.loss) == "0 s"


def test_a_pool_of_any_class_grows_on_each_by_what_is_there() -> None:
    both = (*osds(4), *osds(4, used=100.0, device_class="ssd"))
    pool = replace(VMS, device_class="", growth={"3d": 10 / DAY})
    facts = changes.with_profile(cluster(pool, of=both, hdd=LOAD, ssd=LOAD), "vms", data=2)
    # ten a day are written once less: eight of them on hdd, which has four fifths of the data
    assert facts.load("hdd").growth == {"3d": pytest.approx((100 - 8) / DAY)}
    assert facts.load("ssd").growth == {"3d": pytest.approx((100 - 2) / DAY)}
    assert facts.load("hdd").asked == LOAD.asked


def test_an_osd_of_which_nothing_is_known_is_no_cluster() -> None:
    answers: dict[str, tuple[Track, ...]] = {query.key: () for query in queries(0, "north")}
    answers["size"] = (Track({"cluster": "north", "ceph_daemon": "osd.0"}, ((0, 1000.0),)),)
    assert facts_of(answers) == {}


def test_a_thousand_hosts_take_seconds() -> None:
    """Once for each lost host all others were looked at: minutes."""
    large = cluster(of=osds(1000, each=12, racks=20), hdd=replace(LOAD, growth={"3d": 1e12}))
    began = time.process_time()
    assert purchases(large)[0].hosts is None
    assert hdd(changes.lost(large, changes.chosen(large, "rack"))).loss is not None
    assert time.process_time() - began < 60, "of a CPU, whatever else runs"


def test_unknown_stays_unknown() -> None:
    bare = Facts("", (DataOsd("osd.0", "", "", (), "a", 1000.0, 500.0),), (), 0.9, 0.95)
    found = class_figures(bare, "")
    assert (found.host_loss, found.iops_used, found.rebuild_s, found.pgs) == (None, None, None, None)
    rows = {name: now for name, now, _ in words.class_rows(bare, bare, "")}
    assert rows["Fullest OSD after the worst loss"] == rows["Full in"] == "unknown"


def test_facts_of_the_pages_that_are_there() -> None:
    answers: dict[str, tuple[Track, ...]] = {query.key: () for query in queries(0, "north")}
    place = {"cluster": "north", "ceph_daemon": "osd.0", "device_class": "hdd", "root": "default", "host": "a"}
    answers |= {
        key: (Track(place, ((0, value),)),) for key, value in (("size", 1000.0), ("used", 500.0), ("osd_pgs", 88.0))
    }
    use = {"cluster": "north", "instance": "a:10047", "device": "sdx", "use": "osd-db", "user": "osd.0"}
    answers["db"] = (Track(use, ((0, 1.0),)),)
    measured = {"cluster": "north", "device_class": "hdd", "measured_by": "mclock"}
    answers["measured"] = (Track(measured, ((0, 315.0),)),)
    (facts,) = facts_of(answers).values()
    assert facts.osds == (DataOsd("osd.0", "hdd", "default", (), "a", 1000.0, 500.0, 88.0, "a/sdx"),)
    assert (facts.load("hdd").measured_by, facts.load("hdd").osd_iops, facts.backfillfull) == ("mclock", 315, 0.9)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (scenarios.hosts, "hdd"), (scenarios.hosts, "hdd=0"), (scenarios.hosts, "hdd=2x12TB"),
        (scenarios.hosts, "hdd=2x16x0TB"),
        (scenarios.disks, "hdd=2x5000PB"), (scenarios.disks, "=2"), (scenarios.retire, "hdd"), (scenarios.growth, "-1"),
        (scenarios.growth, "nan"), (scenarios.growth, "1001"), (scenarios.growth, "hdd=" + 400 * "9"),
        (scenarios.pool, "vms"), (scenarios.pool, "vms=0"), (scenarios.pool, "vms=4+0"), (scenarios.pool, "vms=3@"),
        (scenarios.lose, "osd"), (scenarios.lose, "a pdu"), (scenarios.hosts, "hdd=99999"),
    ],
)  # fmt: skip
def test_flags_that_are_wrong(parse, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--[a-z-]+ = "):
        parse(text)


@pytest.mark.parametrize(
    ("scenario", "complaint"),
    [
        (scenarios.hosts("nvme=1"), "no OSD of the class 'nvme'; there are: hdd"),
        (scenarios.retire("hdd=hdd"), "can't take its own data"),
        (scenarios.pool("x=2"), "no pool 'x'; there are: vms"),
        (scenarios.lose("host=x"), "no host 'x'; there are: h0, h1, h2, h3"),
        (scenarios.lose("rack"), "no rack of an OSD is known"),
        (scenarios.lose("room=east"), "no bucket of type 'room' is above an OSD; there are: host, rack, db, osd"),
        (scenarios.pool("vms=3@row"), "no bucket of type 'row' is above an OSD; there are: osd, host"),
        (scenarios.lose("osd=osd.hdd.0.0,osd.hdd.1.0,osd.hdd.2.0,osd.hdd.3.0"), "no OSD would be left"),
    ],
)
def test_what_the_cluster_does_not_have(scenario: scenarios.Scenario, complaint: str) -> None:
    with pytest.raises(PlumblineError, match=complaint):
        scenario.of(cluster())


@pytest.mark.parametrize(
    ("text", "seconds"), [("15d", 15 * DAY), ("1h30m or 10GiB", 5400), ("10GiB", None), ("", None), ("1y", 365 * DAY)]
)
def test_retention(text: str, seconds: float | None) -> None:
    data = b'{"status":"success","data":{"storageRetention":"%s","goroutineCount":48}}' % text.encode()
    assert parse_retention(data, source="x") == seconds


def test_the_longest_forecast_needs_the_history_that_the_rules_ask_for() -> None:
    config = Path(__file__).parents[3] / "alerts" / "config" / "capacity.libsonnet"
    histories = re.findall(r"slope: '\d+d', history: '(\d+)d'", config.read_text("utf-8"))
    assert max(map(int, histories)) * DAY == FORECAST_S


def test_a_short_retention_is_said_with_the_setting() -> None:
    assert "keeps 15 d: " in forecast_note(15 * DAY)
    assert "--storage.tsdb.retention.time=35d" in forecast_note(15 * DAY)
    assert forecast_note(20 * DAY) == forecast_note(None) == ""
    assert "--storage.tsdb.retention.time=106d" in period_note(15 * DAY, start_s=0, now_s=92 * DAY)
    assert period_note(100 * DAY, start_s=0, now_s=92 * DAY) == period_note(None, start_s=0, now_s=92 * DAY) == ""


def test_what_to_buy_is_the_fewest_hosts_for_a_year() -> None:
    """Four OSDs of 1,000, 400 used of each, 100 more a day. With n more the room until one is at
    95 % is (4 + n) × 950 − 1,600, which is 36,500 from n = 37 on. The loss of a host leaves one less below 90 %:
    (3 + n) × 900 − 1,600 ≥ 36,500 from n = 40 on."""
    (bought,) = purchases(cluster())
    assert (bought.device_class, bought.hosts, bought.disks, bought.size) == ("hdd", 40, 40, 40_000.0)
    assert bought.why == ("full in 22 days", "such a loss is unsafe in 11 days")


def test_nothing_is_bought_where_nothing_grows_and_a_loss_is_safe() -> None:
    still = Load({"14d": -1.0}, asked=None, osd_iops=None, measured_by="", recovery=None, recovered_by=None)
    (bought,) = purchases(cluster(hdd=still))
    assert (bought.hosts, bought.why, bought.unknown) == (0, (), ())


def test_where_growth_is_unknown_only_the_loss_counts_and_that_is_said() -> None:
    unknown = Load({}, asked=None, osd_iops=None, measured_by="", recovery=None, recovered_by=None)
    (bought,) = purchases(cluster(of=osds(4, used=700.0), hdd=unknown))
    assert bought.hosts == 1  # 2,800 on four of five: 70 %
    assert bought.unknown == ("growth is unknown: only the loss of a host counts",)


def test_what_no_number_of_hosts_cures_is_said() -> None:
    (bought,) = purchases(
        cluster(hdd=Load({"3d": 1e6}, asked=None, osd_iops=None, measured_by="", recovery=None, recovered_by=None))
    )
    assert bought.hosts is None


@pytest.mark.parametrize(
    ("asked", "hosts", "needed"),
    [
        (lambda facts: changes.with_profile(facts, "vms", data=5, parity=3), 6, "8 hosts, there are 6"),
        (lambda facts: changes.with_profile(facts, "vms", data=3, domain="rack"), 6, "3 racks, there are 2"),
        (lambda facts: changes.retired(facts, "hdd", "ssd"), 6, "3 hosts, there are 2"),
    ],
)
def test_a_pool_without_a_place_for_its_copies_has_no_figures(asked, hosts: int, needed: str) -> None:
    both = osds(hosts, racks=2) + osds(2, device_class="ssd")
    facts = cluster(VMS, of=both, hdd=LOAD, ssd=LOAD)
    with pytest.raises(PlumblineError, match=f"pool 'vms' cannot be placed: .* need {needed}; add "):
        asked(facts)


def test_a_profile_that_just_fits_is_calculated() -> None:
    facts = changes.with_profile(cluster(of=osds(8)), "vms", data=5, parity=3)
    assert pool_figures(facts, facts.pools[0]).placed is True


def test_a_pool_that_is_badly_placed_today_may_stay_so() -> None:
    facts = changes.with_profile(cluster(VMS, replace(VMS, name="old", copies=9), of=osds(4)), "vms", data=2)
    assert [pool_figures(facts, pool).placed for pool in facts.pools] == [True, False]
