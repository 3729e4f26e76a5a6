"""Disks that wear out or run hot."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks.health import advice
from plumbline.checks.health.facts import Disk, Disks
from plumbline.checks.model import Check, Severity, Verdict
from plumbline.sources.disk.diskhealth import endurance_left_s

_SOON_PERCENT = 90  # of the rated endurance: from here on it is time to order a new disk
_DAY_S = 86400.0


def _spare(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        spare, threshold = disk.health.spare_percent, disk.health.spare_threshold_percent
        if spare is None or threshold is None:
            continue
        is_, should = f"{spare}% left", f"at least {threshold}%"
        if spare < threshold or disk.health.warnings.get("spare"):
            yield Verdict(disk.device, is_, should, advice.look(disk, "Replace the disk."))
        else:
            yield Verdict(disk.device, is_, should)


def _worn(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        worn = disk.health.wear_percent
        if worn is None:
            continue
        is_, should = f"{worn}% used", f"below {_SOON_PERCENT}%"
        if worn < _SOON_PERCENT:
            yield Verdict(disk.device, is_, should)
            continue
        over = worn >= 100
        caution = "" if over else f"At its pace so far it lasts {_days(disk)}. "
        yield Verdict(
            disk.device,
            is_,
            should,
            advice.look(disk, f"{caution}Plan its replacement; disks of one delivery wear out together."),
            Severity.WARNING if over else Severity.INFO,
        )


def _days(disk: Disk) -> str:
    left_s = endurance_left_s(disk.health)
    return "nobody knows how long" if left_s is None else f"about {left_s / _DAY_S:,.0f} days more"


def _hot(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        heat = disk.health.temperature_celsius
        limits = [limit for limit in (disk.health.warning_celsius, disk.health.critical_celsius) if limit is not None]
        if heat is None or not limits:
            continue
        is_, should = f"{heat:g} °C", f"below {min(limits):g} °C, the disk's own limit"
        if heat < min(limits):
            yield Verdict(disk.device, is_, should)
            continue
        critical = disk.health.critical_celsius is not None and heat >= disk.health.critical_celsius
        yield Verdict(
            disk.device,
            is_,
            should,
            advice.look(disk, "Is the air flowing? Fans, filters, blanks in empty slots, neighbours as hot?"),
            Severity.CRITICAL if critical else Severity.WARNING,
        )


SPARE_LOW = Check(
    "health.spare-low",
    "Replace a disk whose spare blocks run out.",
    "NVMe disks, by their own threshold.",
    "When they are used up, the disk turns read-only.",
    "NVM Express base specification 1.4, 5.14.1.2 (available spare, available spare threshold)",
    Severity.CRITICAL,
    _spare,
    "smartctl -x /dev/<device>",
)
WORN_OUT = Check(
    "health.worn-out",
    "Replace a disk before its rated endurance is used up.",
    "Disks that estimate the share used: NVMe; SATA and SAS by the endurance indicator, some SATA by an attribute. "
    "From 90 % on an information, at 100 % a warning.",
    "Beyond it the maker answers for nothing: neither for errors nor for how long data stay without power.",
    "NVM Express base specification 1.4, 5.14.1.2 (percentage used); ACS-4, device statistics, page 07h",
    Severity.WARNING,
    _worn,
    "smartctl -x /dev/<device>",
)
TOO_HOT = Check(
    "health.too-hot",
    "Keep a disk below its own temperature limits.",
    "Disks that tell both a temperature and a limit: NVMe's warning and critical composite temperature, SATA's "
    "specified maximum, SAS's trip temperature.",
    "A hot NVMe disk throttles itself: all of its operations become slow; at the critical limit it may shut down.",
    "NVM Express base specification 1.4, identify controller (WCTEMP, CCTEMP); ACS-4, device statistics, page 05h",
    Severity.WARNING,
    _hot,
    "smartctl -x /dev/<device>",
)

CHECKS = (SPARE_LOW, WORN_OUT, TOO_HOT)
