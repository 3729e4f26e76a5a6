"""Failing disks: their own verdict, data they could not correct, sectors they could not read."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks.health import advice
from plumbline.checks.health.facts import Disk, Disks
from plumbline.checks.model import Check, Severity, Verdict
from plumbline.checks.text import counted, listed, plural

_NOT_A_FAILURE = frozenset({"spare", "temperature"})  # these have checks of their own


def _smart_failed(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        bad = [name for name, on in disk.health.warnings.items() if on and name not in _NOT_A_FAILURE]
        if disk.health.smart_passed is None and not disk.health.warnings:
            continue
        should = "no critical warning" if disk.health.warnings else "passed"
        if disk.health.smart_passed is False or bad:
            is_ = f"critical warning: {listed(bad)}" if bad else "failed: the disk expects to fail"
            yield Verdict(disk.device, is_, should, advice.look(disk, "Replace the disk."))
        else:
            yield Verdict(disk.device, should, should)


def _media_errors(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        errors = disk.media_errors
        if errors is None:
            continue
        should = "none more"
        if errors.grows:
            yield Verdict(
                disk.device,
                _errors(disk),
                should,
                advice.long_test(disk, "More of them every day means: replace it."),
            )
        else:
            yield Verdict(disk.device, _errors(disk), should)


def _errors(disk: Disk) -> str:
    assert disk.media_errors is not None
    return counted(disk.media_errors, "error").replace("since boot", "in the disk's life")


def _pending(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        pending, found = disk.health.pending_sectors, disk.health.offline_uncorrectable_sectors
        if pending is None and found is None:
            continue
        if pending or found:
            is_ = " and ".join(
                text
                for count, text in (
                    (pending, f"{plural(pending or 0, 'sector')} pending"),
                    (found, f"{plural(found or 0, 'sector')} unreadable by the disk's own scan"),
                )
                if count
            )
            caution = "A sector that is written again is no longer pending: Ceph repairs the object that a scrub finds."
            yield Verdict(disk.device, is_, "none", advice.long_test(disk, caution))
        else:
            yield Verdict(disk.device, "none", "none")


FAILED = Check(
    "health.smart-failed",
    "Replace a disk that says it fails.",
    "SATA and SAS disks with a SMART verdict; NVMe by its critical warnings other than spare and temperature, which "
    "have checks of their own.",
    "The disk itself expects to fail, is read-only, or can no longer keep what it acknowledged.",
    "smartctl(8) -H; NVM Express base specification 1.4, 5.14.1.2 (critical warning)",
    Severity.CRITICAL,
    _smart_failed,
    "smartctl -x /dev/<device>",
)
MEDIA_ERRORS = Check(
    "health.media-errors",
    "Look into a disk that loses data.",
    "Disks that count errors they could not correct (NVMe: media and data integrity errors; SATA: reported "
    "uncorrectable; SAS: total uncorrected errors). Not met while the count grows.",
    "Each one is data that a client asked for and that the disk could not give; more tend to follow.",
    "NVM Express base specification 1.4, 5.14.1.2; ACS-4, device statistics, page 04h; smartctl(8) -l error",
    Severity.WARNING,
    _media_errors,
    "smartctl -t long /dev/<device>",
)
PENDING = Check(
    "health.pending-sectors",
    "Have no sector waiting that the disk could not read.",
    "SATA disks that count pending or uncorrectable sectors.",
    "What stands there is lost on this disk, and every attempt to read it holds up all other I/O for seconds.",
    "smartctl(8) -A (attributes 197, 198), -t long",
    Severity.WARNING,
    _pending,
    "smartctl -t long /dev/<device>",
)

CHECKS = (FAILED, MEDIA_ERRORS, PENDING)
