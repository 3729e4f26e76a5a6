"""The type of the file system that an open file or directory is on.

It reads ``/proc/self``, not the configured root: a descriptor is only valid in this process's own view. Light modules
only, see :mod:`~plumbline.probes.run.guard`.
"""

import os

from plumbline.core.kernel import TABLE, read_kernel

# an overlay mounted over its own upper layer would lead to itself for ever
_MAX_OVERLAYS = 8


def filesystem_of(mountinfo: str, mount_id: int) -> tuple[str, str] | None:
    """Type and super-block options of one mount, from the text of ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)).
    ``36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue``"""
    for line in mountinfo.splitlines():
        head, dash, tail = line.partition(" - ")
        if dash and head.split(" ", 1)[0] == str(mount_id):
            words = tail.split(" ")
            return words[0], words[-1]
    return None


def filesystem_type(fd: int, depth: int = 0) -> str | None:
    """The type of the underlying file system; for overlayfs that of its upper layer, if it is visible. ``None``:
    unknown. ``depth``: number of overlays already passed."""
    try:
        mount_id = mount_of(fd)
        filesystem = filesystem_of(_read("/proc/self/mountinfo"), mount_id) if mount_id is not None else None
    except OSError:
        return None  # no /proc: the type is unknown
    if filesystem and filesystem[0] == "overlay" and depth < _MAX_OVERLAYS:
        upper = [option[9:] for option in filesystem[1].split(",") if option.startswith("upperdir=")]
        try:
            below = os.open(upper[0], os.O_PATH | os.O_CLOEXEC) if upper else -1
        except OSError:
            below = -1  # in a container the upper layer's name belongs to the host
        if below >= 0:
            try:
                return filesystem_type(below, depth + 1)
            finally:
                os.close(below)
    return filesystem[0] if filesystem else None


def mount_of(fd: int) -> int | None:
    """The mount through which an open file was reached (proc_pid_fdinfo(5)); ``None`` if /proc does not say."""
    try:
        facts = _read(f"/proc/self/fdinfo/{fd}").splitlines()
        return next(int(line.split()[1]) for line in facts if line.startswith("mnt_id:"))
    except (OSError, StopIteration, ValueError):
        return None


def _read(path: str) -> str:
    return os.fsdecode(read_kernel(path, TABLE))
