"""Which whole physical disks the names in a configuration mean on this host."""

from collections.abc import Sequence

from plumbline.probes.run.model import Host
from plumbline.sources.disk.block import BlockDevice

OSD = "osd"  # In the configuration: every disk that holds an OSD's data
STACKED = ("dm-", "md", "bcache")
_MAX_STACK = 16  # more levels than anybody builds


def raw_disks(names: Sequence[str], host: Host) -> tuple[tuple[str, BlockDevice | None], ...]:
    """(Name, what is known about it) of every disk meant, each once, ordered by name. Volumes, multipath and encrypted
    devices stand for the disks below them: only a whole physical disk is read. A disk that the kernel does not show
    keeps its name with ``None``: it may come back."""
    disks = {disk.name: disk for disk in host.disks()}
    devices: list[str] = []
    for name in names:
        if name == OSD:
            devices += [disk for disk in host.osd_disks() if not _without_disk(disk, disks)]
        else:
            devices.append(name.replace("!", "/"))  # ``cciss!c0d0`` is sysfs' spelling of the kernel's ``cciss/c0d0``
    raw = {lowest: disks.get(lowest) for device in devices for lowest in _lowest(device, disks)}
    return tuple(sorted(raw.items()))


def _without_disk(name: str, disks: dict[str, BlockDevice]) -> bool:
    """Whether this is a volume whose disk is gone."""
    return name.startswith(STACKED) and not (name in disks and disks[name].lower)


def _lowest(name: str, disks: dict[str, BlockDevice]) -> list[str]:
    level = [name]
    for _ in range(_MAX_STACK):
        level = [lower for upper in level for lower in ((disks[upper].lower if upper in disks else ()) or (upper,))]
    return level
