"""Disks whose health can't be read, and how to make it readable."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks.health import advice
from plumbline.checks.health.facts import Disk, Disks
from plumbline.checks.model import Check, Fix, Severity, Verdict

INSTALL = "apt-get install smartmontools"
DROP_IN_DIRECTORY = "/etc/systemd/system/plumbline.service.d"
PERMIT = (
    f"install -D -m 644 systemd/drop-ins/disk-health.conf {DROP_IN_DIRECTORY}/disk-health.conf && "
    "systemctl daemon-reload && systemctl restart plumbline"
)

_SHOULD = "its health is known"


def _not_readable(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        if disk.state.available:
            yield Verdict(disk.device, "answers", _SHOULD)
        else:
            silent = disk.seen_before and disk.state.reason in ("no-answer", "gone")
            severity = Severity.WARNING if silent else Severity.INFO
            yield Verdict(disk.device, _is(disk), _SHOULD, _fix(disk), severity)


def _is(disk: Disk) -> str:
    reasons = {
        "no-permission": "the daemon is not allowed to ask it",
        "no-smartctl": "smartctl is not installed",
        "not-supported": "the disk, or the controller before it, has no answer to the question",
        "no-answer": "it does not answer",
        "malformed": "it answers something that can't be read; the daemon's log has it",
        "gone": "it can't be opened: it is gone, or hidden from the daemon",
    }
    return reasons.get(disk.state.reason, disk.state.reason or "it does not answer")


def _fix(disk: Disk) -> Fix:
    if disk.state.reason == "no-smartctl":
        return Fix(INSTALL)
    if disk.state.reason == "no-permission" or (disk.state.reason == "gone" and not disk.seen_before):
        return Fix(
            PERMIT,
            caution="From Plumbline's source tree. It widens what the daemon may do: systemd/README.md says how far. "
            "Without systemd: run it as root.",
        )
    if disk.state.reason == "not-supported":
        return Fix(
            "smartctl --scan-open",
            caution="This only shows. Disks behind a RAID controller are listed with -d megaraid,N or the like; "
            "Plumbline does not ask those.",
        )
    return advice.look(disk, "dmesg tells what the kernel makes of it. A disk that does not answer this holds up I/O.")


NOT_READABLE = Check(
    "health.not-readable",
    "Let every disk be asked for its health.",
    "SATA, SAS and NVMe disks. Virtual and software devices have no health of their own. A disk that has stopped "
    "answering is a warning.",
    "A disk that wears out, fails or runs hot is known beforehand only by its own words.",
    "smartctl(8); drivers/nvme/host/ioctl.c (nvme_cmd_allowed); systemd/README.md",
    Severity.INFO,
    _not_readable,
    INSTALL,
)

CHECKS = (NOT_READABLE,)
