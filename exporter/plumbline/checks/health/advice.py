"""What to do about a disk: look first, then take it out of service without losing data."""

from __future__ import annotations

import shlex

from plumbline.checks.health.facts import Disk
from plumbline.checks.model import Fix


def look(disk: Disk, caution: str) -> Fix:
    """Show everything the disk reports. This changes nothing; ``caution`` says what follows from it."""
    return Fix(f"smartctl -x {_node(disk)}", caution=f"This only shows. {caution} {replacement(disk)}".strip())


def long_test(disk: Disk, caution: str) -> Fix:
    """Have a SATA or SAS disk read all of itself; of NVMe only newer ones can, and smartctl since 7.4."""
    if disk.nvme:
        return look(disk, caution)
    test = (
        f"The test takes hours and lets I/O go first; afterwards smartctl -l selftest {_node(disk)} tells the result."
    )
    return Fix(f"smartctl -t long {_node(disk)}", caution=f"{test} {caution} {replacement(disk)}".strip())


def replacement(disk: Disk) -> str:
    """How to take the disk out of service."""
    osds = [osd for osd in disk.osd.split(",") if osd.startswith("osd.")]
    if not osds:
        return "Before it is replaced: who uses it? lsblk shows."
    words = " ".join(shlex.quote(osd) for osd in osds)
    return (
        f"{disk.osd} is on it: ceph osd out {words} moves the data away while it can still be read; "
        f"ceph osd ok-to-stop {words} says when it may be stopped, ceph osd safe-to-destroy {words} when it may go."
    )


def _node(disk: Disk) -> str:
    return shlex.quote(f"/dev/{disk.device}")
