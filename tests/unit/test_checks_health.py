"""The checks of disks' health, and from which series they know."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from plumbline.catalogue import Kind, MetricSpec
from plumbline.checks.facts import Count
from plumbline.checks.health import CHECKS, judge
from plumbline.checks.health_facts import Disk, HealthFacts
from plumbline.checks.model import Finding, Severity
from plumbline.collectors import health as metrics
from plumbline.healthfacts import health_facts
from plumbline.judging import Judge
from plumbline.seriesview import SeriesView
from plumbline.snapshot import Family, Snapshot
from plumbline.sources.diskhealth import REASONS, DiskHealth, DiskState

SOUND = Disk(
    "nvme0n1",
    osd="osd.3",
    smart_passed=True,
    warnings=dict.fromkeys(("spare", "temperature", "reliability", "read-only", "backup", "memory-region"), False),
    media_errors=Count(4, 0),
    pending_sectors=0,
    offline_uncorrectable_sectors=0,
    spare_ratio=1.0,
    spare_threshold_ratio=0.1,
    wear_ratio=0.3,
    endurance_left_s=86400.0 * 365,
    temperature_celsius=40.0,
    warning_celsius=70.0,
    critical_celsius=80.0,
)


def found(check: str, **changes: object) -> Finding | None:
    from dataclasses import replace

    findings = [each for each in judge(HealthFacts(60.0, (replace(SOUND, **changes),))) if each.check == check]
    assert len(findings) <= 1
    return findings[0] if findings else None


def bad(check: str, **changes: object) -> Finding:
    finding = found(check, **changes)
    assert finding is not None
    assert not finding.met
    assert finding.fix is not None
    return finding


def test_a_sound_disk_meets_every_check() -> None:
    findings = judge(HealthFacts(60.0, (SOUND,)))
    assert {each.check for each in findings} == {check.id for check in CHECKS}
    assert [each for each in findings if not each.met] == []


def test_a_disk_that_tells_nothing_gets_no_advice() -> None:
    assert [each.check for each in judge(HealthFacts(60.0, (Disk("sda"),)))] == ["health.not-readable"]
    assert judge(HealthFacts()) == ()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_says_all_it_has_to(check) -> None:
    assert re.fullmatch(r"health\.[a-z]+(-[a-z]+)*", check.id)
    for text in (check.advice, check.applies, check.why):
        assert text.endswith(".")
    assert check.source
    assert check.fix
    assert Counter(each.id for each in CHECKS)[check.id] == 1


def test_failing() -> None:
    finding = bad("health.smart-failed", device="sda", warnings={}, smart_passed=False)
    assert finding.severity is Severity.CRITICAL
    assert finding.fix.now == "smartctl -x /dev/sda"
    assert "ceph osd ok-to-stop osd.3" in finding.fix.caution
    assert bad("health.smart-failed", warnings={"read-only": True}).is_ == "critical warning: read-only"
    for other in ("spare", "temperature"):  # checks of their own
        assert found("health.smart-failed", warnings={other: True}).met


def test_several_osds_and_none() -> None:
    caution = bad("health.smart-failed", smart_passed=False, osd="osd.3,osd.4").fix.caution
    assert "ceph osd out osd.3 osd.4" in caution
    assert "ceph" not in bad("health.smart-failed", smart_passed=False, osd="").fix.caution


def test_media_errors_only_while_they_grow() -> None:
    assert found("health.media-errors", media_errors=Count(900, None)).met
    finding = bad("health.media-errors", device="sdb", media_errors=Count(900, 2))
    assert (finding.is_, finding.fix.now) == (
        "900 errors in the disk's life, 2 of them lately",
        "smartctl -t long /dev/sdb",
    )
    assert bad("health.media-errors", media_errors=Count(900, 2)).fix.now == "smartctl -x /dev/nvme0n1"


def test_pending_sectors() -> None:
    assert bad("health.pending-sectors", device="sdb", pending_sectors=1).is_ == "1 sector pending"
    assert (
        bad("health.pending-sectors", device="sdb", pending_sectors=8, offline_uncorrectable_sectors=8).is_
        == "8 sectors pending and 8 sectors unreadable by the disk's own scan"
    )
    assert found("health.pending-sectors", pending_sectors=None, offline_uncorrectable_sectors=None) is None


def test_spare() -> None:
    assert found("health.spare-low", spare_ratio=0.1).met
    assert bad("health.spare-low", spare_ratio=0.09).severity is Severity.CRITICAL
    assert bad("health.spare-low", spare_ratio=0.5, warnings={"spare": True}).is_ == "50% left"
    assert found("health.spare-low", spare_threshold_ratio=None) is None


def test_worn() -> None:
    assert found("health.worn-out", wear_ratio=0.89).met
    soon = bad("health.worn-out", wear_ratio=0.9)
    assert (soon.severity, "about 365 days more" in soon.fix.caution) == (Severity.INFO, True)
    assert bad("health.worn-out", wear_ratio=1.04).severity is Severity.WARNING
    assert found("health.worn-out", wear_ratio=None) is None


def test_hot() -> None:
    assert found("health.too-hot", temperature_celsius=69.0).met
    assert bad("health.too-hot", temperature_celsius=70.0).severity is Severity.WARNING
    assert bad("health.too-hot", temperature_celsius=80.0).severity is Severity.CRITICAL
    assert found("health.too-hot", warning_celsius=None, critical_celsius=None) is None


@pytest.mark.parametrize("reason", [*REASONS, "something new", ""])
def test_every_reason_has_a_way_out(reason: str) -> None:
    finding = bad("health.not-readable", available=False, reason=reason)
    assert finding.severity is Severity.INFO
    assert finding.is_


def test_how_to_get_it() -> None:
    assert bad("health.not-readable", available=False, reason="no-smartctl").fix.now == "apt-get install smartmontools"
    assert "drop-ins/disk-health.conf" in bad("health.not-readable", available=False, reason="no-permission").fix.now
    silent = bad("health.not-readable", available=False, reason="no-answer", seen_before=True)
    assert (silent.severity, silent.fix.now) == (Severity.WARNING, "smartctl -x /dev/nvme0n1")


# --- from series


def snapshot(*states: DiskState) -> Snapshot:
    rows: dict[MetricSpec, list[tuple[tuple[str, ...], float]]] = {}
    for spec, labels, value in metrics.samples(states):
        rows.setdefault(spec, []).append((labels, value))
    info = MetricSpec("plumbline_disk_info", Kind.GAUGE, "x", ("device", "osd"))
    rows[info] = [((state.device, "osd.7"), 1) for state in states]
    families = [Family(spec, tuple(r[0] for r in found), [r[1] for r in found]) for spec, found in rows.items()]
    return Snapshot(tuple(sorted(families, key=lambda family: family.spec.name)), ())


def test_facts_are_what_the_collector_says() -> None:
    health = DiskHealth(True, {"spare": False}, 30, 99, 10, 4, temperature_celsius=41, warning_celsius=70)
    view = SeriesView(
        snapshot(
            DiskState("nvme0n1", health, False, "", "", 5.0, 0.0), DiskState("sda", None, False, "gone", "", 5.0, 0.0)
        )
    )
    good, gone = health_facts(view, 60.0).disks
    assert (good.smart_passed, good.warnings, good.wear_ratio, good.spare_ratio) == (True, {"spare": False}, 0.3, 0.99)
    assert (good.media_errors, good.temperature_celsius, good.warning_celsius, good.critical_celsius) == (
        Count(4, None),
        41,
        70,
        None,
    )
    assert (good.osd, good.available, good.pending_sectors) == ("osd.7", True, None)
    assert (gone.available, gone.reason, gone.seen_before, gone.smart_passed) == (False, "gone", True, None)


def test_media_errors_that_grow_between_looks_are_found() -> None:
    judged = Judge()
    for now_s, errors in ((0.0, 4), (60.0, 6)):
        state = DiskState("sda", DiskHealth(media_errors=errors), False, "", "", 5.0, 0.0)
        findings = judged.look(snapshot(state), now_s)
    (finding,) = [each for each in findings if each.check == "health.media-errors"]
    assert (finding.met, finding.is_) == (False, "6 errors in the disk's life, 2 of them lately")
