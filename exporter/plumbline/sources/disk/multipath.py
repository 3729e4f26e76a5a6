"""Disks with several paths: dm-multipath and native NVMe multipath, without using either's tools.

https://github.com/torvalds/linux/blob/v6.12/drivers/scsi/scsi_sysfs.c (``sdev_states``)
https://github.com/torvalds/linux/blob/v6.12/drivers/nvme/host/multipath.c (ANA states; hidden paths)
https://github.com/torvalds/linux/blob/v6.12/drivers/nvme/host/sysfs.c (controller states)

::

    /sys/block/dm-2/dm/uuid                                       mpath-3600a098000aa
    /sys/block/dm-2/dm/name                                       mpatha
    /sys/block/dm-2/slaves/sdb/device/state                       running | offline | blocked | transport-offline …
    /sys/class/nvme-subsystem/nvme-subsys1/nvme1n1                the disk; its paths are hidden
    /sys/class/nvme-subsystem/nvme-subsys1/nvme1n1/wwid           eui.0025385b01a1b2c3
    /sys/class/nvme-subsystem/nvme-subsys1/iopolicy               numa | round-robin | queue-depth (since Linux 6.11)
    /sys/class/nvme-subsystem/nvme-subsys1/nvme2/state            live | connecting | resetting | deleting | dead
    /sys/class/nvme-subsystem/nvme-subsys1/nvme2/nvme1c2n1/ana_state   optimized | inaccessible …

A SCSI path failed by multipathd's own checker, while the kernel's device still runs, looks usable here: only
``multipath -ll`` shows this. A local NVMe drive with a single controller is not a multipath disk, unless it had more:
a removed controller takes its paths out of sysfs.
"""

import re
from collections.abc import Container, Iterator
from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.sources.kernel import sysfs

USABLE = frozenset({"running", "live", "optimized", "non-optimized"})
STANDBY = frozenset({"inaccessible"})  # normal for an array's passive side: no I/O goes there
GONE = "gone"  # no word of the kernel's: the path is no longer in sysfs
UNREADABLE = "unknown"  # no word of the kernel's: neither usable nor lost

_HEAD = re.compile(r"nvme(?P<subsystem>[0-9]+)n(?P<namespace>[0-9]+)")
_CONTROLLER = re.compile(r"nvme[0-9]+")


class DiskPath(Struct, frozen=True):
    """One path to a disk."""

    name: str  # ``sdb``, ``nvme1c2n1``
    state: str
    """The kernel's word, or :data:`GONE`. Of an NVMe path: its controller's or, while that is live, its ANA state."""
    transport: str  # NVMe: ``pcie``, ``tcp``, ``fc`` …; ``""``: unknown
    address: str  # NVMe: ``traddr=10.0.0.1,trsvcid=4420``; SCSI: ``1:0:0:2`` (host, channel, target, unit)

    @property
    def usable(self) -> bool:
        """Whether the path can carry I/O now."""
        return self.state in USABLE

    @property
    def lost(self) -> bool:
        """Whether the path is gone or broken. A path that waits on an array's passive side is not."""
        return self.state not in USABLE | STANDBY | {UNREADABLE}


class MultipathDisk(Struct, frozen=True):
    """A disk and all paths to it."""

    device: str
    name: str  # its configured name, ``mpatha``; for NVMe the subsystem's, ``nvme-subsys1``
    paths: tuple[DiskPath, ...]
    identity: str = ""  # the same after a restart, unlike its name: a UUID or WWID
    policy: str = ""  # of NVMe: how the kernel chooses among usable paths

    @property
    def usable(self) -> int:
        """Number of paths that can carry I/O now."""
        return sum(path.usable for path in self.paths)

    @property
    def lost(self) -> tuple[DiskPath, ...]:
        """The paths that are gone or broken."""
        return tuple(path for path in self.paths if path.lost)


def read_multipath(roots: Roots, known: Container[str] = frozenset()) -> tuple[MultipathDisk, ...]:
    """Every multipath disk; empty when there is none. ``known``: identities of disks that had several paths before."""
    return (*_device_mapper(roots.sys / "block"), *_nvme(roots.sys / "class" / "nvme-subsystem", known))


def _device_mapper(block: Path) -> Iterator[MultipathDisk]:
    for device in sysfs.entries(block):
        uuid = sysfs.read_text(block / device / "dm" / "uuid") if device.startswith("dm-") else None
        if uuid is None or not uuid.startswith("mpath-"):
            continue
        slaves = block / device / "slaves"
        paths = tuple(_scsi_path(slaves / slave, slave) for slave in sysfs.entries(slaves))
        yield MultipathDisk(device, sysfs.read_text(block / device / "dm" / "name") or device, paths, uuid)


def _scsi_path(path: Path, name: str) -> DiskPath:
    """Also for NVMe under device-mapper multipath: ``device`` is the controller then."""
    link = sysfs.link_text(path / "device")
    return DiskPath(
        name,
        sysfs.read_text(path / "device" / "state") or UNREADABLE,
        sysfs.read_text(path / "device" / "transport") or "",
        sysfs.read_text(path / "device" / "address") or (Path(link).name if link else ""),
    )


def _nvme(root: Path, known: Container[str]) -> Iterator[MultipathDisk]:
    for subsystem in sysfs.entries(root):
        entries = sysfs.entries(root / subsystem)
        controllers = [entry for entry in entries if _CONTROLLER.fullmatch(entry)]
        for device in entries:
            head = _HEAD.fullmatch(device)
            if not head:
                continue
            paths_of = (_nvme_paths(root / subsystem / controller, head["namespace"]) for controller in controllers)
            paths = tuple(path for of_controller in paths_of for path in of_controller)
            identity = sysfs.read_text(root / subsystem / device / "wwid") or device
            if len(paths) > 1 or any(path.transport != "pcie" for path in paths) or identity in known:
                policy = sysfs.read_text(root / subsystem / "iopolicy") or ""
                yield MultipathDisk(device, subsystem, paths, identity, policy)


def _nvme_paths(controller: Path, namespace: str) -> Iterator[DiskPath]:
    """The controller's hidden paths to this namespace: ``nvme<subsystem>c<controller>n<namespace>``."""
    state = sysfs.read_text(controller / "state") or UNREADABLE
    for name in sysfs.entries(controller):
        if not re.fullmatch(rf"nvme[0-9]+c[0-9]+n{namespace}", name):
            continue
        access = sysfs.read_text(controller / name / "ana_state") if state == "live" else None
        yield DiskPath(
            name,
            access or state,
            sysfs.read_text(controller / "transport") or "",
            sysfs.read_text(controller / "address") or "",
        )
