"""Whether a directory is on the file system that its probe is meant for. Light modules only: workers import it."""

from __future__ import annotations

from plumbline.core.kernel import TABLE, read_kernel

ADVICE = {
    "mount-dead": "mount it again (umount -l, then mount), and check its server",
    "not-mounted": "mount the file system that is to be measured",
}
"""Reasons of a mount besides those of :mod:`~plumbline.probes.guard`, and what an operator can do about it."""
BUFFERED = "name a workload whose id ends in -buffered"  # What to do where O_DIRECT does not work


def mounted_as(mount_id: int) -> tuple[str, str] | None:
    """Type and mount point of a mount in this process's own view; ``None`` if it does not exist (any more)."""
    return find_mount(read_kernel("/proc/self/mountinfo", TABLE), mount_id)


def find_mount(mountinfo: bytes, mount_id: int) -> tuple[str, str] | None:
    """The same in the text of ``/proc/self/mountinfo`` (proc_pid_mountinfo(5))."""
    start = b"%d " % mount_id
    for line in mountinfo.split(b"\n"):
        if line.startswith(start):
            head, _, tail = line.partition(b" - ")
            point = head.split(b" ")[4:5]
            return tail.split(b" ")[0].decode("utf-8", "replace"), b"".join(point).decode("utf-8", "replace")
    return None


def wrong_place(filesystem: str, mount_point: str, expected: str | None) -> str:
    """Why a directory on this mount must not be used; empty if it may: a probe must not fill the root disk because its
    target is not mounted. ``expected``: the type that the configuration names."""
    if expected:
        if filesystem == expected:
            return ""
        return f"is on {filesystem} (mounted on {mount_point}), not on {expected}; mount that first"
    if mount_point == "/":
        return (
            "is on the root file system; mount the file system to be measured,"
            f" or set filesystem: {filesystem} to measure the root"
        )
    return ""
