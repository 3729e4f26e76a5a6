"""Whether a directory is on the file system that its probe is meant for. Light modules only: workers import it."""

from __future__ import annotations

from plumbline.core.kernel import TABLE, read_kernel

ADVICE = {
    "mount-dead": "mount it again (umount -l, then mount), and check its server",
    "not-mounted": "mount the file system that is to be measured",
}
"""Reasons of a mount besides those of :mod:`~plumbline.probes.run.guard`, and what an operator can do about it."""
BUFFERED = "name a workload whose id ends in -buffered"  # What to do where O_DIRECT does not work


def is_mounted(mount_id: int) -> bool:
    """Whether a mount exists (still) in this process's own view."""
    start = b"%d " % mount_id
    return any(line.startswith(start) for line in _lines())


def mounted_as(mount_id: int) -> tuple[str, str, bool] | None:
    """Type and mount point of a mount in this process's own view, and whether it shows the root file system, as a bind
    mount does; ``None`` if it does not exist (any more)."""
    return find_mount(_lines(), mount_id)


def find_mount(mountinfo: list[bytes], mount_id: int) -> tuple[str, str, bool] | None:
    """The same in the lines of ``/proc/self/mountinfo`` (proc_pid_mountinfo(5))."""
    mount, root = None, b""
    for line in mountinfo:
        head, _, tail = line.partition(b" - ")
        number, _, device, _, point, *_ = [*head.split(b" ", 5), *[b""] * 5]
        if point == b"/":
            root = device  # of several the last one is on top
        if number == b"%d" % mount_id:
            kind = tail.split(b" ")[0].decode("utf-8", "replace")
            mount = kind, point.decode("utf-8", "replace"), device
    return None if mount is None else (mount[0], mount[1], mount[2] == root)


def wrong_place(filesystem: str, mount_point: str, expected: str | None, *, root: bool) -> str:
    """Why a directory on this mount must not be used; empty if it may: a probe must not fill the root disk because its
    target is not mounted. ``expected``: the type that the configuration names. ``root``: it shows the root file system,
    which systemd's ``ReadWritePaths=`` mounts once more at each of its paths."""
    if expected:
        if filesystem == expected:
            return ""
        return f"is on {filesystem} (mounted on {mount_point}), not on {expected}; mount that first"
    if root:
        return (
            "is on the root file system; mount the file system to be measured,"
            f" or set filesystem: {filesystem} to measure the root"
        )
    return ""


def _lines() -> list[bytes]:
    return read_kernel("/proc/self/mountinfo", TABLE).split(b"\n")
