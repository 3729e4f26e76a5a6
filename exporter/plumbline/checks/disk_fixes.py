"""How a disk's setting is made now, and made to stay, on Debian 12.

What stays is a udev rule that knows the disk by its serial number: ``sda`` may be another disk after the next start.
Its file is read after ``60-persistent-storage.rules``, which finds the serial numbers out.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from plumbline.checks.fixes import glob_free
from plumbline.checks.model import Fix, Keep

if TYPE_CHECKING:  # the package of the disks' checks imports this module
    from plumbline.checks.disk.facts import Disk

UDEV_FILE = "/etc/udev/rules.d/90-storage-disks.rules"

DEVICE_CACHE = "device/scsi_disk/*/cache_type"
"""Writing here tells the disk, and then asks it; ``queue/write_cache`` tells the kernel alone."""


def queue(disk: Disk, setting: str, value: str | int, *, caution: str = "") -> Fix:
    """``echo <value> > /sys/block/<disk>/queue/<setting>``, and the rule that does so whenever the disk appears."""
    return Fix(_echo(disk, setting, value), _rule(disk, f"queue/{setting}", value), caution)


def flush_again(disk: Disk, *, caution: str) -> Fix:
    """Have the kernel send flushes. Nothing keeps it: at the next start the kernel asks the disk by itself."""
    return Fix(_echo(disk, "write_cache", "write back"), None, caution)


def device_cache_off(disk: Disk, *, caution: str) -> Fix:
    """Have the disk itself switch its volatile write cache off. Through ``tee``: sh expands no ``*`` after ``>``."""
    path = f"{shlex.quote(_directory(disk))}/{DEVICE_CACHE}"
    return Fix(f"echo 'write through' | tee {path}", _rule(disk, DEVICE_CACHE, "write through"), caution)


def _echo(disk: Disk, setting: str, value: str | int) -> str:
    path = shlex.quote(f"{_directory(disk)}/queue/{setting}")
    return f"echo {shlex.quote(str(value))} > {path}"


def _directory(disk: Disk) -> str:
    return f"/sys/block/{disk.device.replace('/', '!')}"


def _rule(disk: Disk, attribute: str, value: str | int) -> Keep:
    lines = (
        f'ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", {match}, ATTR{{{attribute}}}="{value}"'
        for match in _matches(disk)
    )
    return Keep(UDEV_FILE, "\n".join(lines))


def _matches(disk: Disk) -> tuple[str, ...]:
    """How udev knows the disk. SAS disks have their serial number in a property of its own (``ID_SERIAL_SHORT`` is
    their WWN), SATA disks behind the same controller have not: there a rule for each."""
    if not disk.block.serial:
        return (f'KERNEL=="{_pattern(disk.device.replace("/", "!"))}"',)
    serial = _pattern(disk.block.serial)
    if disk.block.transport in ("sas", "scsi"):
        return (f'ENV{{ID_SCSI_SERIAL}}=="{serial}"', f'ENV{{ID_SERIAL_SHORT}}=="{serial}"')
    return (f'ENV{{ID_SERIAL_SHORT}}=="{serial}"',)


def _pattern(text: str) -> str:
    """A udev pattern for this text alone; any one character for blanks, where udev writes an underscore."""
    return "".join(each if each.isprintable() and each != " " else "?" for each in glob_free(text))
