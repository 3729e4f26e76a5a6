"""The host's disks, and the disk below a path: ``/sys/block`` and ``/sys/dev/block``.

Kernel: Documentation/ABI/stable/sysfs-block. Slow tier: a dozen files per disk, and reading the ``serial`` of a virtio
disk sends an I/O request to the hypervisor, so it hangs when the disk hangs.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.disk import identity
from plumbline.sources.disk.udevdb import read_block_properties
from plumbline.sources.kernel.mounts import mount_of
from plumbline.sources.kernel.sysfs import entries, link_text, read_bytes, read_number, read_text

_SECTOR_BYTES = 512  # unit of /sys/block/*/size, whatever the disk's own sector size
_MAX_STACK = 16  # the kernel allows no loops in stacked devices; this guards against a faulty copy of sysfs


class BlockDevice(Struct, frozen=True):
    """One whole disk as the kernel and udev describe it; ``None``: unknown. ``rotational`` is the kernel's flag
    unchanged. ``device_class`` is the kind of medium: ``nvme``, ``ssd``, ``hdd``, ``virtual`` (paravirtual and emulated
    disks, where the flag is meaningless), or ``None`` (loop, zram, rbd, a stack of different disks)."""

    name: str  # the kernel's name, as in /proc/diskstats
    major: int
    minor: int
    size_bytes: int
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    rotational: bool | None = None
    transport: str | None = None
    device_class: str | None = None
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    scheduler: str | None = None  # the one in force
    queue_requests: int | None = None  # nr_requests
    queue_depth: int | None = None  # commands that a SCSI disk accepts at once
    zoned: str | None = None  # ``host-managed`` or ``host-aware``
    lower: tuple[str, ...] = ()  # whole disks that a dm, md or bcache device is made of


_Below: TypeAlias = Callable[[BlockDevice], Iterable[BlockDevice]]


class BlockDevices(tuple[BlockDevice, ...]):
    """All whole disks."""


class DevicesReading(NamedTuple):
    """The reported disks, and those with OSDs' data: disk → the OSDs, ``osd.3,osd.4``."""

    devices: tuple[BlockDevice, ...] = ()
    osds: Mapping[str, str] = {}


def read_block_devices(
    roots: Roots, *, on_skip: Callable[[str, str], None], keep: Callable[[str], bool] | None = None
) -> BlockDevices:
    """All whole disks (no partitions, nothing hidden) whose name ``keep`` accepts, by name; :class:`Unavailable`
    without sysfs. ``on_skip(name, reason)`` gets a disk that ``vanished`` meanwhile or has ``malformed`` numbers."""
    directory = roots.sys / "block"
    devices: dict[str, BlockDevice] = {}
    for entry in required_entries(directory):
        name = entry.replace("!", "/")
        if (keep is not None and not keep(name)) or is_hidden(directory / entry):
            continue
        try:
            devices[name] = read_block_device(name, roots)
        except FileNotFoundError:
            on_skip(name, "vanished")
        except ParseError:
            on_skip(name, "malformed")

    def listed_below(device: BlockDevice) -> Iterable[BlockDevice]:
        return [devices[name] for name in device.lower if name in devices]

    return BlockDevices(
        replace(device, device_class=_physical(device, listed_below).device_class) if device.lower else device
        for device in devices.values()
    )


def list_real_disks(roots: Roots) -> tuple[str, ...]:
    """Names of the disks that the kernel does not make from others, without querying any of them; empty without sysfs.
    Not among them: what is ``removable`` (sticks, cards, discs; a disk in a hot-plug bay is not)."""
    directory = roots.sys / "block"
    return tuple(
        name.replace("!", "/")
        for name in entries(directory)
        if not identity.is_software(link_text(directory / name) or "/virtual/block/")
        and not is_hidden(directory / name)
        and read_text(directory / name / "removable") != "1"
    )


def list_built_in_disks(roots: Roots, facts: Iterable[BlockDevice] = ()) -> tuple[str, ...]:
    """Those of :func:`list_real_disks` that do not come and go by design: no volumes that a hypervisor, a cloud or a
    storage network attaches and detaches. ``facts``: what is known of the disks so far."""
    volumes = {disk.name for disk in facts if identity.is_volume(disk.device_class, disk.model)}
    directory = roots.sys / "block"
    paths = {name: directory / name.replace("/", "!") for name in list_real_disks(roots)}
    built_in = (name for name, path in paths.items() if not identity.is_attached(link_text(path) or "", path))
    return tuple(name for name in built_in if name not in volumes)


def required_entries(directory: Path) -> list[str]:
    """Sorted names in a directory of sysfs; :class:`Unavailable` without sysfs."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except OSError as error:
        raise Unavailable(f"{directory}: {error.strerror}; is sysfs mounted there?") from error


def is_hidden(directory: Path) -> bool:
    """Whether the ``/sys/block`` entry is a path below an NVMe disk with native multipath (``nvme1c1n1``, Linux 4.15):
    it has no device node, and its I/O belongs to the disk (``nvme1n1``)."""
    return read_text(directory / "hidden") == "1"


def read_block_device(name: str, roots: Roots) -> BlockDevice:
    """Facts about one whole disk; ``FileNotFoundError`` when it is gone, :class:`ParseError` on impossible numbers. A
    stacked device has no class here: that requires the disks below it."""
    directory = roots.sys / "block" / name.replace("/", "!")
    link = link_text(directory)
    number = read_text(directory / "dev")
    if link is None or number is None:
        raise FileNotFoundError(directory)
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", number)
    if not match:
        raise ParseError(str(directory / "dev"), f"not major:minor: {number[:40]!r}")
    major, minor = int(match[1]), int(match[2])
    properties = read_block_properties(roots, major, minor)
    transport = identity.transport_of(link, name)
    model = identity.read_model(directory, properties)
    rotational = {"0": False, "1": True}.get(read_text(directory / "queue/rotational") or "")
    software = identity.is_software(link)
    vendor = None if software else read_text(directory / "device/vendor")
    device = BlockDevice(
        name=name,
        major=major,
        minor=minor,
        size_bytes=0,
        model=model,
        serial=identity.read_serial(directory, properties),
        firmware=identity.read_firmware(directory, properties),
        rotational=rotational,
        transport=transport,
        device_class=None if software else identity.device_class_of(transport, rotational, vendor, model),
        logical_block_bytes=read_number(directory / "queue/logical_block_size"),
        physical_block_bytes=read_number(directory / "queue/physical_block_size"),
        scheduler=_scheduler(directory),
        queue_requests=read_number(directory / "queue/nr_requests"),
        queue_depth=None if software else read_number(directory / "device/queue_depth"),
        zoned=identity.read_zoned(directory),
        lower=_lower_names(directory),
    )
    sectors = read_number(directory / "size")
    if sectors is None:  # read last: a disk that vanished meanwhile must not be taken for one without a model
        raise FileNotFoundError(directory)
    return replace(device, size_bytes=sectors * _SECTOR_BYTES)


def device_below(path: Path, roots: Roots) -> BlockDevice | None:
    """The disk that I/O to ``path`` ends on, through partitions, dm, md, bcache and loop files; ``None`` where there is
    none (tmpfs, NFS, FUSE, ZFS). Over several disks of one class it is the first of them; over others the stacked
    device itself, with ``device_class`` ``None``. A multi-device btrfs counts as the device its mount names, an overlay
    as its upper directory, a path that does not exist yet as its nearest existing ancestor. :class:`Unavailable` when
    the path or sysfs can't be read. Hangs on a dead NFS server or disk, so a scrape must not call this."""
    path = path.absolute()
    while True:
        try:
            return _below_existing(path, roots, 0)
        except FileNotFoundError:
            if path.parent == path:
                return None
            path = path.parent
        except OSError as error:
            raise Unavailable(f"{path}: {error.strerror}; the disk below it is unknown") from error


def _below_existing(path: Path, roots: Roots, depth: int) -> BlockDevice | None:
    number = path.stat().st_dev
    device = _disk_at(number, roots, depth)
    if device is not None or depth > _MAX_STACK:
        return device
    mount = mount_of(path, roots)
    if mount is None:
        return None
    if mount.filesystem in ("btrfs", "bcachefs"):  # st_dev is anonymous, one per subvolume
        return _disk_of_node(mount.source.split(":")[0], roots, depth)
    upper = mount.option("upperdir") if mount.filesystem == "overlay" else None
    # overlay escapes comma and colon itself, inside mountinfo's escapes
    return _below_if_exists(re.sub(r"\\(.)", r"\1", upper), roots, depth + 1) if upper else None


def _below_if_exists(path: str, roots: Roots, depth: int) -> BlockDevice | None:
    """Without falling back to an ancestor: inside a container, an upper directory or backing file is a host path."""
    try:
        return _below_existing(Path(path), roots, depth)
    except (OSError, Unavailable):
        return None


def _disk_of_node(source: str, roots: Roots, depth: int) -> BlockDevice | None:
    """The disk of a mount's source such as ``/dev/sdb1`` or ``/dev/mapper/vg-data``, by its device node."""
    if not source.startswith("/dev/"):
        return None
    try:
        facts = (roots.dev / source.removeprefix("/dev/")).stat()
    except OSError:
        return None
    return _disk_at(facts.st_rdev, roots, depth) if stat.S_ISBLK(facts.st_mode) else None


def _disk_at(number: int, roots: Roots, depth: int) -> BlockDevice | None:
    """The physical disk below a block device number; ``None`` where sysfs doesn't know the number."""
    name = _whole_disk(roots.sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}")
    if name is None:
        return None

    def below(device: BlockDevice) -> Iterable[BlockDevice]:
        if device.transport == "loop":
            backing = read_bytes(roots.sys / "block" / device.name / "loop/backing_file")
            disk_below = _below_if_exists(os.fsdecode(backing.rstrip(b"\n")), roots, depth + 1) if backing else None
            return [disk_below] if disk_below else []
        return [read_block_device(lower, roots) for lower in device.lower]

    try:
        return _physical(read_block_device(name, roots), below)
    except (FileNotFoundError, ParseError):
        return None


def _physical(device: BlockDevice, below: _Below, depth: int = 0) -> BlockDevice:
    """The first disk below if all have the same known class; otherwise the device itself."""
    lowest = [_physical(lower, below, depth + 1) for lower in below(device)] if depth < _MAX_STACK else []
    classes = {lower.device_class for lower in lowest}
    return lowest[0] if len(classes) == 1 and None not in classes else device


def _lower_names(directory: Path) -> tuple[str, ...]:
    names = (_whole_disk(directory / "slaves" / entry) for entry in entries(directory / "slaves"))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _whole_disk(entry: Path) -> str | None:
    """The disk of a sysfs link to a disk or a partition; ``None`` when the link is gone."""
    parts = (link_text(entry) or "").split("/")
    if len(parts) < 2:
        return None
    return parts[-2 if (entry / "partition").exists() else -1].replace("!", "/")


def _scheduler(directory: Path) -> str | None:
    """``none [mq-deadline] kyber`` → ``mq-deadline``; a queue without a choice contains ``none``."""
    text = read_text(directory / "queue/scheduler")
    match = re.search(r"\[([^\]]+)\]", text or "")
    return match[1] if match else text
