"""How to change a disk's setting, now and permanently, on Debian 12.

The permanent part is a udev rule that matches the disk by its serial number: ``sda`` may be another disk after a
reboot. Its file is read after ``60-persistent-storage.rules``, which finds the serial numbers.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from plumbline.checks.fixes import glob_free
from plumbline.checks.model import Fix, Keep

if TYPE_CHECKING:  # the package of disk checks imports this module
    from plumbline.checks.disk.facts import Disk

UDEV_FILE = "/etc/udev/rules.d/90-storage-disks.rules"

DEVICE_CACHE = "device/scsi_disk/*/cache_type"
"""Writing here sets the disk and reads it back; ``queue/write_cache`` sets only the kernel's view."""


def queue(disk: Disk, setting: str, value: str | int, *, caution: str = "") -> Fix:
    """``echo <value> > /sys/block/<disk>/queue/<setting>``, and the rule that does so whenever the disk appears."""
    return Fix(_echo(disk, setting, value), _rule(disk, f"queue/{setting}", value), caution)


def flush_again(disk: Disk, *, caution: str) -> Fix:
    """Make the kernel send flushes. Not permanent: at the next boot the kernel asks the disk itself."""
    return Fix(_echo(disk, "write_cache", "write back"), None, caution)


def device_cache_off(disk: Disk, *, caution: str) -> Fix:
    """Make the disk switch off its volatile write cache. Uses ``tee``: sh expands no ``*`` after ``>``."""
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
    """How udev matches the disk. SAS disks have their serial number in a separate property (``ID_SERIAL_SHORT`` is
    their WWN), SATA disks behind the same controller don't: so there is a rule for each."""
    if not disk.block.serial:
        return (f'KERNEL=="{_pattern(disk.device.replace("/", "!"))}"',)
    serial = _pattern(disk.block.serial)
    if disk.block.transport in ("sas", "scsi"):
        return (f'ENV{{ID_SCSI_SERIAL}}=="{serial}"', f'ENV{{ID_SERIAL_SHORT}}=="{serial}"')
    return (f'ENV{{ID_SERIAL_SHORT}}=="{serial}"',)


def _pattern(text: str) -> str:
    """A udev pattern for this text alone; blanks match any one character, as udev writes an underscore there."""
    return "".join(each if each.isprintable() and each != " " else "?" for each in glob_free(text))
