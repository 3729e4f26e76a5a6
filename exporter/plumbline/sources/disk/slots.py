"""Which slot a disk is in, and the light that marks it.

An enclosure that speaks SES (the module ``ses``; drivers/misc/enclosure.c) has a folder for each of its slots, and the
disk in one has a link to it, named after the slot::

    /sys/block/sda/device/enclosure_device:Slot 03 → ../../../../target0:0:12/0:0:12:0/enclosure/0:0:12:0/Slot 03
    /sys/class/enclosure/0:0:12:0/id               0x500304801f0abf7f
    …/Slot 03/locate                               0 or 1, and may be written
    …/Slot 03/fault, status, slot

A slot for NVMe that can be hot-plugged has one as well (drivers/pci/hotplug/pci_hotplug_core.c): its address is the
function's without the last part, and the light of ``attention`` is on for 1, blinks for 2::

    /sys/bus/pci/slots/7/address                   0000:3b:00
    /sys/bus/pci/slots/7/attention                 0
    /sys/block/nvme0n1/device/address              0000:3b:00.0
"""

from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.sources.kernel import sysfs

_LINK = "enclosure_device:"
_OFF, _ON = "0", "1"


class Slot(Struct, frozen=True):
    """``light`` is the file that switches it; ``None``: the slot has none."""

    name: str
    light: Path | None

    @property
    def lit(self) -> bool | None:
        """Whether it is on or blinks; ``None``: unknown."""
        state = None if self.light is None else sysfs.read_text(self.light)
        return None if state is None or not state.isdecimal() else state != _OFF


def read_slot(roots: Roots, device: str) -> Slot | None:
    """The slot of a whole disk; ``None`` where the kernel knows none."""
    folder = roots.sys / "block" / device.replace("/", "!") / "device"
    for name in sysfs.entries(folder):
        if name.startswith(_LINK):
            place = (folder / name).resolve()
            enclosure = sysfs.read_text(place.parent / "id") or place.parent.name
            return Slot(f"{name.removeprefix(_LINK)} of enclosure {enclosure}", _file(place / "locate"))
    function = sysfs.read_text(folder / "address") or ""
    slots = roots.sys / "bus" / "pci" / "slots"
    for name in sysfs.entries(slots):
        address = sysfs.read_text(slots / name / "address")
        if address and function.rpartition(".")[0] == address:
            return Slot(f"PCI slot {name}", _file(slots / name / "attention"))
    return None


def switch(slot: Slot, device: str, *, on: bool) -> None:
    """Switch its light and read it back; :class:`PlumblineError` where it has none, or does not follow."""
    if slot.light is None:
        raise PlumblineError(f"{device}: {slot.name} has no light that can be switched")
    try:
        slot.light.write_text(_ON if on else _OFF)
    except OSError as error:
        advice = "; run this as root" if isinstance(error, PermissionError) else ""
        raise PlumblineError(f"{device}: {slot.light}: {error.strerror}{advice}") from None
    if slot.lit is not on:
        raise PlumblineError(f"{device}: {slot.light} was written and still says otherwise: the enclosure ignores it")


def _file(path: Path) -> Path | None:
    return path if path.is_file() else None
