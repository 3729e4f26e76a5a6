"""Disks with several paths: is every path usable?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from plumbline.checks.array.facts import ArrayFacts
from plumbline.checks.model import Check, Fix, Severity, Verdict
from plumbline.checks.text import listed
from plumbline.sources.disk.multipath import STANDBY, USABLE, DiskPath, MultipathDisk

_FIT = USABLE | STANDBY
_UNREADABLE = "unknown"


def _lost(facts: ArrayFacts) -> Iterator[Verdict]:
    for disk in facts.multipaths:
        unreadable = sum(path.state == _UNREADABLE for path in disk.paths)
        lost = [path for path in disk.paths if path.state not in _FIT and path.state != _UNREADABLE]
        if unreadable and not lost:
            continue  # an unreadable state means neither usable nor lost
        several = len(disk.paths) > 1
        should = f"all {len(disk.paths)} paths fit" if several else "two paths or more"
        if disk.usable and not lost:
            yield Verdict(disk.device, should, should) if several else _alone(disk, should)
            continue
        is_ = f"{disk.usable} of {len(disk.paths)} usable"
        if lost:
            is_ += f"; {listed(map(_said, lost))}"
        if unreadable:
            is_ += f"; {unreadable} with an unreadable state"
        none_left = not disk.usable and not unreadable
        yield Verdict(
            disk.device,
            is_,
            should,
            _shown(disk),
            Severity.CRITICAL if none_left else Severity.WARNING,
            "No path is left: I/O waits or fails." if none_left else "",
        )


def _alone(disk: MultipathDisk, should: str) -> Verdict:
    """A path whose device was removed is no longer there to show as lost.

    NVMe over fabrics commonly has one portal; device-mapper makes a map of two paths or more.
    """
    severity = Severity.INFO if disk.device.startswith("nvme") else Severity.WARNING
    return Verdict(
        disk.device, "1 path", should, _shown(disk), severity, "Either the others are gone, or none was set up."
    )


def _said(path: DiskPath) -> str:
    return f"{path.name} {path.state}{f' ({path.address})' if path.address else ''}"


def _shown(disk: MultipathDisk) -> Fix:
    caution = "This only shows; what mends it is at the cable, the port, the switch or the array's controller."
    if disk.device.startswith("nvme"):
        return Fix(f"nvme list-subsys {shlex.quote(f'/dev/{disk.device}')}", caution=caution)
    return Fix(f"multipath -ll {shlex.quote(disk.name)}", caution=caution)


LOST = Check(
    "array.path-lost",
    "Have every path to a disk fit for use.",
    "Disks of dm-multipath and of NVMe's own multipath. An array's passive side (ANA inaccessible) is fit; one path"
    " alone is not enough.",
    "With one path left the next cable takes the disk away, and until then it has half the bandwidth.",
    "multipath(8); nvme-list-subsys(1); Documentation/admin-guide/nvme-multipath.rst",
    Severity.WARNING,
    _lost,
    "multipath -ll <name>",
)

CHECKS = (LOST,)
