"""The checks of disks' health, and from which series they know."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import fields, replace

from plumbline.checks.growth import Count, Growth
from plumbline.checks.health import CHECKS, DiskWithHealth, health_facts
from plumbline.checks.model import Finding, Severity, judge
from plumbline.checks.run import Judge
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.diskhealth import DiskHealth, DiskState, HealthReading, Reason

HEALTH = DiskHealth(
    power_state=0,
    smart_passed=True,
    warnings=dict.fromkeys(("spare", "temperature", "reliability", "read-only", "backup", "memory-region"), False),
    pending_sectors=0,
    offline_uncorrectable_sectors=0,
    spare_percent=100,
    spare_threshold_percent=10,
    wear_percent=30,
    power_on_hours=24 * 365,
    temperature_celsius=40.0,
    warning_celsius=70.0,
    critical_celsius=80.0,
)
SOUND = DiskWithHealth(DiskState("nvme0n1", HEALTH, False, "", "", None, 0.0), "osd.3", Count(4, 0))
OF_HEALTH, OF_STATE = ({field.name for field in fields(each)} for each in (DiskHealth, DiskState))


def but(**changes: Any) -> DiskWithHealth:
    """The sound disk, its state or its figures with these changes."""
    of_disk = {name: changes.pop(name) for name in ("osd", "media_errors") if name in changes}
    of_health = {name: value for name, value in changes.items() if name in OF_HEALTH}
    of_state = {name: value for name, value in changes.items() if name in OF_STATE}
    assert changes.keys() == of_health.keys() | of_state.keys()
    return replace(SOUND, state=replace(SOUND.state, health=replace(HEALTH, **of_health), **of_state), **of_disk)


def found(check: str, **changes: Any) -> Finding | None:
    findings = [each for each in judge(CHECKS, (but(**changes),)) if each.check == check]
    assert len(findings) <= 1
    return findings[0] if findings else None


def bad(check: str, **changes: Any) -> Finding:
    finding = found(check, **changes)
    assert finding is not None
    assert not finding.met
    assert finding.fix is not None
    return finding


def test_a_sound_disk_meets_every_check() -> None:
    findings = judge(CHECKS, (SOUND,))
    assert {each.check for each in findings} == {check.id for check in CHECKS}
    assert [each for each in findings if not each.met] == []


def test_a_disk_that_tells_nothing_gets_no_advice() -> None:
    assert [each.check for each in judge(CHECKS, (DiskWithHealth(replace(SOUND.state, health=None)),))] == [
        "health.not-readable"
    ]
    assert judge(CHECKS, ()) == ()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_says_all_it_has_to(check) -> None:
    assert re.fullmatch(r"health\.[a-z]+(-[a-z]+)*", check.id)
    for text in (check.advice, check.applies, check.why):
        assert text.endswith(".")
    assert check.source
    assert check.fix
    assert Counter(each.id for each in CHECKS)[check.id] == 1


def test_a_disk_behind_a_controller_is_shown_through_it() -> None:
    finding = bad("health.smart-failed", device="bus/0:megaraid,8", warnings={}, smart_passed=False, osd="")
    assert finding.fix.now == "smartctl -x -d megaraid,8 /dev/bus/0"
    assert "which volume it belongs to" in finding.fix.caution


def test_failing() -> None:
    finding = bad("health.smart-failed", device="sda", warnings={}, smart_passed=False)
    assert finding.severity is Severity.CRITICAL
    assert finding.fix.now == "smartctl -x /dev/sda"
    assert "ceph osd ok-to-stop osd.3" in finding.fix.caution
    assert bad("health.smart-failed", warnings={"read-only": True}).actual == "critical warning: read-only"
    for other in ("spare", "temperature"):  # checks of their own
        assert found("health.smart-failed", warnings={other: True}).met


def test_several_osds_and_none() -> None:
    caution = bad("health.smart-failed", smart_passed=False, osd="osd.3,osd.4").fix.caution
    assert "ceph osd out osd.3 osd.4" in caution
    assert "ceph" not in bad("health.smart-failed", smart_passed=False, osd="").fix.caution


def test_media_errors_only_while_they_grow() -> None:
    assert found("health.media-errors", media_errors=Count(900, None)).met
    finding = bad("health.media-errors", device="sdb", media_errors=Count(900, 2))
    assert (finding.actual, finding.fix.now) == (
        "900 errors in the disk's life, 2 of them recently",
        "smartctl -t long /dev/sdb",
    )
    assert bad("health.media-errors", media_errors=Count(900, 2)).fix.now == "smartctl -x /dev/nvme0n1"


def test_pending_sectors() -> None:
    assert bad("health.pending-sectors", device="sdb", pending_sectors=1).actual == "1 sector pending"
    assert (
        bad("health.pending-sectors", device="sdb", pending_sectors=8, offline_uncorrectable_sectors=8).actual
        == "8 sectors pending and 8 sectors unreadable by the disk's own scan"
    )
    assert found("health.pending-sectors", pending_sectors=None, offline_uncorrectable_sectors=None) is None


def test_spare() -> None:
    assert found("health.spare-low", spare_percent=10).met
    assert bad("health.spare-low", spare_percent=9).severity is Severity.CRITICAL
    assert bad("health.spare-low", spare_percent=50, warnings={"spare": True}).actual == "50% left"
    assert found("health.spare-low", spare_threshold_percent=None) is None


def test_worn() -> None:
    assert found("health.worn-out", wear_percent=89).met
    soon = bad("health.worn-out", wear_percent=90, power_on_hours=9 * 365 * 24)
    assert (soon.severity, "about 365 more days" in soon.fix.caution) == (Severity.INFO, True)
    assert bad("health.worn-out", wear_percent=104).severity is Severity.WARNING
    assert found("health.worn-out", wear_percent=None) is None


def test_hot() -> None:
    assert found("health.too-hot", temperature_celsius=69.0).met
    assert bad("health.too-hot", temperature_celsius=70.0).severity is Severity.WARNING
    assert bad("health.too-hot", temperature_celsius=80.0).severity is Severity.CRITICAL
    assert found("health.too-hot", warning_celsius=None, critical_celsius=None) is None


@pytest.mark.parametrize("reason", [*Reason, "something new"])
def test_every_reason_has_a_way_out(reason: str) -> None:
    finding = bad("health.not-readable", reason=reason)
    assert finding.severity is Severity.INFO
    assert finding.actual


def test_how_to_get_it() -> None:
    assert bad("health.not-readable", reason="no-smartctl").fix.now == "apt-get install -y smartmontools"
    assert "drop-ins/disk-health.conf" in bad("health.not-readable", reason="no-permission").fix.now
    silent = bad("health.not-readable", reason="no-answer", last_success_at=5.0)
    assert (silent.severity, silent.fix.now) == (Severity.WARNING, "smartctl -x /dev/nvme0n1")


# --- from readings


def test_facts_are_what_the_disk_says_and_whose_it_is() -> None:
    states = (
        replace(SOUND.state, health=DiskHealth(media_errors=4)),
        DiskState("sda", None, False, "gone", "", 5.0, 0.0),
    )
    growth = Growth()
    growth.look(0.0)
    good, gone = health_facts(Readings.of(HealthReading(states), DevicesReading((), {"nvme0n1": "osd.7"})), growth)
    assert (good.osd, good.media_errors, good.seen_before, good.nvme) == ("osd.7", Count(4), False, True)
    assert (gone.osd, gone.media_errors, gone.seen_before, gone.health) == ("", None, True, DiskHealth())


def test_media_errors_that_grow_between_looks_are_found() -> None:
    judged = Judge()
    for now_s, errors in ((0.0, 4), (60.0, 6)):
        state = DiskState("sda", DiskHealth(media_errors=errors), False, "", "", 5.0, 0.0)
        findings = judged.look(Readings.of(HealthReading((state,))), now_s)
    (finding,) = [each for each in findings if each.check == "health.media-errors"]
    assert (finding.met, finding.actual) == (False, "6 errors in the disk's life, 2 of them recently")
