"""A raw disk, opened so that it can be read and never written.

The name is the kernel's. Before opening, and again on the open descriptor, the node under ``/dev`` must be a block
device with the number that sysfs gives for that disk: a symbolic link, a replaced node, a file or a partition under the
name is refused. The descriptor is read-only, which the kernel enforces on every system call that uses it (``write``
gives EBADF); this is verified, too (``F_GETFL``). No other descriptor of a disk is ever opened.

The canary's worker imports this: light modules only, see :mod:`~plumbline.probes.run.guard`. Everything here may block
with the disk.
"""

import errno
import fcntl
import os
import stat

from plumbline.core.kernel import read_kernel
from plumbline.errors import ProbeRefused

READ_ONLY = os.O_RDONLY | os.O_DIRECT | os.O_NOFOLLOW | os.O_CLOEXEC  # The only flags a disk is opened with

BLKGETSIZE64 = 0x80081272  # _IOR(0x12, 114, size_t), include/uapi/linux/fs.h
BLKSSZGET = 0x1268  # _IO(0x12, 104): the logical block

ADVICE = {
    "device-gone": "the probe continues by itself when the disk is back",
    "io-error": "see the kernel's log for the disk",
    "no-direct-io": "name a workload whose block size is a multiple of the disk's",
    "not-a-disk": "name a whole disk as /sys/block does",
    "not-the-disk": "check what has this name in /dev",
    "permission": "add the drop-in raw-devices.conf to the service (systemd/README.md; docs/container.md)",
    "symlink": "check what has this name in /dev",
    "too-small": "name a workload with a smaller block, or another disk",
}
"""Every reason for which a disk is refused (a label value), and what an operator can do about it."""

_BY_ERRNO = {
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.EINVAL: "no-direct-io",
    errno.ELOOP: "symlink",
    errno.ENODEV: "device-gone",
    errno.ENOMEDIUM: "device-gone",
    errno.ENXIO: "device-gone",
}


class RawDevice:
    """An open disk. ``number`` is the kernel's, as sysfs writes it (``8:16``)."""

    __slots__ = ("fd", "number", "size_bytes", "where")

    def __init__(self, where: str, fd: int, number: str, size_bytes: int) -> None:
        self.where, self.fd, self.number, self.size_bytes = where, fd, number, size_bytes

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def open_device(name: str, *, dev: str, sys: str, block_bytes: int) -> RawDevice:
    """Open the whole disk ``name`` below ``dev`` (``/dev``) for reads of ``block_bytes`` with O_DIRECT. Raises
    :class:`ProbeRefused` with a reason of :data:`ADVICE`."""
    parts = name.replace("!", "/").split("/")
    where = "/".join((dev, *parts))
    if any(part in {"", ".", ".."} for part in parts):
        raise refused("not-a-disk", where, "is not the name of a disk")
    number = number_of(name, where=where, sys=sys)
    try:
        # checked before opening, because opening something else may have side effects. Not through pathlib
        _check_node(os.stat(where, follow_symlinks=False), number, where)  # noqa: PTH116
        fd = os.open(where, READ_ONLY)
    except FileNotFoundError as error:
        raise refused("permission", where, "is hidden: the kernel has the disk, but /dev has no node for it") from error
    except OSError as error:
        raise refused_by(error, where) from error
    try:
        _check_node(os.fstat(fd), number, where)
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        if flags & os.O_ACCMODE != os.O_RDONLY or not flags & os.O_DIRECT:
            raise refused("not-the-disk", where, f"was opened with other flags than requested: {flags:#o}")
        size_bytes = int.from_bytes(fcntl.ioctl(fd, BLKGETSIZE64, bytes(8)), "little")
        logical = int.from_bytes(fcntl.ioctl(fd, BLKSSZGET, bytes(4)), "little")
        if size_bytes < block_bytes:
            raise refused("too-small", where, f"holds {size_bytes} bytes, a block has {block_bytes}")
        if logical and block_bytes % logical:
            raise refused(
                "no-direct-io", where, f"{block_bytes} bytes are not a multiple of the disk's block of {logical}"
            )
    except OSError as error:
        os.close(fd)
        raise refused_by(error, where) from error
    except BaseException:
        os.close(fd)
        raise
    return RawDevice(where, fd, number, size_bytes)


def number_of(name: str, *, where: str, sys: str) -> str:
    """The device number of the whole disk ``name`` in sysfs: ``8:16``."""
    entry = name.replace("/", "!")
    try:
        return read_kernel(f"{sys}/block/{entry}/dev").decode("ascii", "replace").strip()
    except OSError as error:
        if os.path.exists(f"{sys}/class/block/{entry}/partition"):  # noqa: PTH110
            raise refused("not-a-disk", where, "is a partition") from error
        raise refused("device-gone", where, "the kernel has no such disk") from error


def check_still_there(device: RawDevice, name: str, *, sys: str) -> None:
    """After a failure: check that the kernel still has the open disk under this name. Accesses no disk."""
    if number_of(name, where=device.where, sys=sys) != device.number:
        raise refused("device-gone", device.where, "another disk has this name now")


def refused(reason: str, where: str, what: str) -> ProbeRefused:
    return ProbeRefused(reason, f"{where}: {what}; {ADVICE[reason]}")


def refused_by(error: OSError, where: str) -> ProbeRefused:
    reason = _BY_ERRNO.get(error.errno or 0, "io-error")
    return refused(reason, where, "is a symbolic link" if reason == "symlink" else error.strerror or str(error))


def _check_node(status: os.stat_result, number: str, where: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise refused("symlink", where, "is a symbolic link")
    if not stat.S_ISBLK(status.st_mode):
        raise refused("not-the-disk", where, "is not a block device")
    node = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    if node != number:
        raise refused("not-the-disk", where, f"is device {node}; the kernel's disk of this name is {number}")
