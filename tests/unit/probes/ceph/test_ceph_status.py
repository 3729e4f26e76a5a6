"""From Ceph's own words to gates: recorded states of a real cluster, and those that were hard to make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.model import GatesConfig
from plumbline.errors import ParseError
from plumbline.probes.ceph.ceph_status import (
    Check,
    ClusterStatus,
    closed,
    maintenance_flags,
    parse_status,
    raised_checks,
    wants_detail,
)

FIXTURES = Path(__file__).parents[3] / "fixtures" / "ceph-16.2"


def load(name: str, folder: Path = FIXTURES) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


def raised(name: str, message: str, severity: int = 1, **more: Any) -> ClusterStatus:
    return ClusterStatus((Check(name, severity, message, **more),), {"active+clean": 8})


def test_a_healthy_cluster() -> None:
    status = parse_status(load("status"))
    assert status.pg_states == {"active+clean": 41}
    assert closed(status, GatesConfig(health="ok")) == {}


@pytest.mark.parametrize("release", ["18.2", "20.2"])
def test_a_healthy_cluster_of_a_newer_release(release: str) -> None:
    folder = FIXTURES.parent / f"ceph-{release}"
    told = load("status", folder)
    status = parse_status(told, load("health-detail", folder))
    assert status == ClusterStatus((), {"active+clean": 17})
    assert not wants_detail(told)
    assert closed(status, GatesConfig(health="ok")) == {}


def test_an_osd_down() -> None:
    status = parse_status(load("status-osd-down"))
    assert closed(status, GatesConfig()) == {"recovery": "11 PGs degraded, 27 PGs undersized"}
    assert closed(status, GatesConfig(recovery=True)) == {}
    by_health = closed(status, GatesConfig(health="ok", recovery=True))
    assert by_health.keys() == {"health"}
    assert "OSD_DOWN: 1 osds down; OSD_HOST_DOWN: 1 host (1 osds) down" in by_health["health"]


def test_recovery_under_way() -> None:
    shut = closed(parse_status(load("status-recovery")), GatesConfig())
    assert list(shut) == ["recovery"]
    assert shut["recovery"] == (
        "9 PGs degraded, 8 PGs recovering, 5 PGs recovery_wait, 9 PGs remapped, 9 PGs undersized"
    )


def test_objects_alone_tell_of_recovery_too() -> None:
    assert closed(ClusterStatus((), {}, misplaced_objects=7), GatesConfig()) == {"recovery": "7 objects misplaced"}
    assert closed(ClusterStatus((), {}, degraded_objects=7), GatesConfig()) == {"recovery": "7 objects degraded"}


@pytest.mark.parametrize("state", ["active+clean+scrubbing+deep", "active+clean+snaptrim", "active+clean", "peering"])
def test_states_that_move_no_data(state: str) -> None:
    assert closed(ClusterStatus((), {state: 3}), GatesConfig()) == {}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("noout flag(s) set", "noout is set, which means maintenance"),
        ("noout,noscrub,nodeep-scrub flag(s) set", "noout is set, which means maintenance"),
        ("pauserd,pausewr flag(s) set", "pauserd, pausewr is set, which means maintenance"),
        ("noscrub,nodeep-scrub flag(s) set", ""),
    ],
)
def test_flags(message: str, expected: str) -> None:
    for muted in (False, True):
        shut = closed(raised("OSDMAP_FLAGS", message, muted=muted), GatesConfig(health="ok"))
        assert shut == ({"maintenance": expected} if expected else {})


def test_flags_of_single_osds() -> None:
    shut = closed(
        raised("OSD_FLAGS", "1 OSDs or CRUSH {nodes, device-classes} have {NOUP,NOOUT} flags set"), GatesConfig()
    )
    assert list(shut) == ["maintenance"]


def test_flags_by_host_and_of_the_cluster() -> None:
    checks = (
        Check("OSDMAP_FLAGS", 1, "noout,noscrub flag(s) set"),
        Check("OSD_FLAGS", 1, "2 OSDs or CRUSH {nodes, device-classes} have {NOUP,NODOWN,NOIN,NOOUT} flags set",
              detail=("host stor02 has flags noin,noout", "osd.13 has flags noup")),
        Check("HOST_IN_MAINTENANCE", 1, "1 host is in maintenance mode", detail=("stor03 is in maintenance",)),
        Check("OSD_DOWN", 1, "1 osds down", detail=("osd.1 (root=default,host=stor02) is down",)),
    )  # fmt: skip
    assert maintenance_flags(checks) == (
        ("", "noout"), ("stor02", "noin"), ("stor02", "noout"), ("stor03", "maintenance"),
    )  # fmt: skip


def test_detail_is_asked_where_hosts_may_be_in_maintenance() -> None:
    def status(name: str) -> Any:
        return {"health": {"checks": {name: {}}}}

    assert wants_detail(status("OSD_FLAGS"))
    assert wants_detail(status("HOST_IN_MAINTENANCE"))
    assert not wants_detail(status("OSDMAP_FLAGS"))


@pytest.mark.parametrize("name", ["OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL"])
def test_full_osds_are_full_muted_or_not(name: str) -> None:
    for muted in (False, True):
        shut = closed(raised(name, "1 nearfull osd(s)", muted=muted), GatesConfig(health="any"))
        assert shut == {"full": f"{name}: 1 nearfull osd(s)"}


@pytest.mark.parametrize(("pools", "full"), [(("small",), True), (("other", "small2"), False), ((), False)])
def test_a_full_pool_closes_it_if_it_is_ours(pools: tuple[str, ...], full: bool) -> None:
    """The words are those of Ceph 16.2.15."""
    detail = load("health-detail-osd-back-pool-full")
    assert "POOL_FULL" in detail["checks"]
    status = {"health": detail, "pgmap": {}}
    assert wants_detail(status)
    assert ("full" in closed(parse_status(status, detail), GatesConfig(), pools=pools)) is full


@pytest.mark.parametrize(
    ("worst", "severity", "muted", "shut"),
    [
        ("ok", 1, False, True),
        ("warn", 1, False, False),
        ("warn", 2, False, True),
        ("warn", 2, True, False),
        ("any", 2, False, False),
    ],
)
def test_health(worst: Any, severity: int, muted: bool, shut: bool) -> None:
    found = closed(raised("MON_DOWN", "1/3 mons down", severity, muted=muted), GatesConfig(health=worst))
    assert found == ({"health": "MON_DOWN: 1/3 mons down"} if shut else {})


def test_checks_that_say_nothing_of_load_or_data_are_not_counted() -> None:
    """The checks of a cluster on its way to aes256k keys, as Ceph 20.2.4 raises them."""
    detail = json.loads((FIXTURES.parent / "ceph-20.2-aes-keys" / "health-detail.json").read_text())
    status = parse_status({"health": detail, "pgmap": {}})
    assert {check.name for check in status.checks} <= set(GatesConfig().ignored_checks)
    assert any(check.severity == 2 for check in status.checks)
    assert closed(status, GatesConfig(health="ok")) == {}
    counted = closed(status, GatesConfig(ignored_checks=("AUTH_INSECURE_SERVICE_TICKETS",)))
    assert counted["health"].startswith("AUTH_INSECURE_SERVICE_KEY_TYPE: ")
    others = (*status.checks, Check("PG_DAMAGED", 2, "1 pg inconsistent"))
    assert closed(ClusterStatus(others, {}), GatesConfig()) == {"health": "PG_DAMAGED: 1 pg inconsistent"}
    full = (*status.checks, Check("OSD_FULL", 2, "1 full osd(s)"))
    assert "full" in closed(ClusterStatus(full, {}), GatesConfig(ignored_checks=("OSD_FULL",)))


def test_how_pools_are_laid_out_is_no_trouble() -> None:
    assert (
        closed(raised("POOL_APP_NOT_ENABLED", "1 pool(s) do not have an application"), GatesConfig(health="ok")) == {}
    )


def test_the_nearest_to_a_cause_comes_first() -> None:
    checks = (Check("OSDMAP_FLAGS", 1, "noout flag(s) set"), Check("OSD_FULL", 2, "1 full osd(s)"))
    both = ClusterStatus(checks, {"active+degraded": 1})
    assert list(closed(both, GatesConfig())) == ["maintenance", "full", "recovery", "health"]


@pytest.mark.parametrize(
    "status", [None, [], {}, {"health": None, "pgmap": {}}, {"health": {"checks": {"A": {}}}, "pgmap": {}}, "status"]
)
def test_what_is_no_status(status: Any) -> None:
    with pytest.raises(ParseError):
        parse_status(status)
    assert not wants_detail(status)


def test_raised_checks_have_their_numbers_and_no_muted_one() -> None:
    checks = {
        "PG_AVAILABILITY": {"severity": "HEALTH_WARN", "summary": {"message": "52 pgs inactive", "count": 52}},
        "OSD_FULL": {"severity": "HEALTH_ERR", "summary": {"message": "1 full osd(s)"}},
        "OSD_DOWN": {"severity": "HEALTH_WARN", "summary": {"message": "2 osds down", "count": 2}, "muted": True},
        "MON_DOWN": {"severity": "HEALTH_WARN", "summary": {"message": "1/3 mons down", "count": 0}},
    }
    status = parse_status({"health": {"checks": checks}, "pgmap": {}})
    assert raised_checks(status.checks) == (
        ("MON_DOWN", "HEALTH_WARN", 1),
        ("OSD_FULL", "HEALTH_ERR", 1),
        ("PG_AVAILABILITY", "HEALTH_WARN", 52),
    )
