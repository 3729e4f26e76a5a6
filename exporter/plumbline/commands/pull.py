"""``plumbline disk DEVICE --safe-to-pull``: does anything still need what is on the disk?

The kernel tells who uses it on this host (:mod:`~plumbline.sources.disk.diskusers`). What an OSD on it still holds only
the cluster knows, and Ceph has two commands that say so and change nothing: ``osd safe-to-destroy`` (no placement group
has anything on these OSDs, or may need it) and ``osd ok-to-stop`` (all placement groups stay active without them).
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from plumbline.errors import Unavailable
from plumbline.sources.ceph.ceph_osds import osd_by_mount_point
from plumbline.sources.disk.diskusers import STACKS

_OF_OSDS = ("osd", "osd-db", "osd-wal")
_BETWEEN = STACKS - {"md"}
"""Devices that are built on the disk; what is on top of them is a use of its own, but an array needs its members."""
_RELEASES = {
    "filesystem": "unmount it",
    "swap": "swapoff it",
    "md": "mark the disk as failed and remove it: mdadm ARRAY --fail PART --remove PART",
    "zfs": "zpool offline or zpool detach it",
}


class Answer(Struct, frozen=True, kw_only=True):
    """``osds``: on the disk, with their DB and WAL; ``first``: what to do before it may be pulled, or on pulling it."""

    device: str
    safe: bool
    reason: str
    first: str
    osds: tuple[str, ...]


class Asks(Protocol):
    """A cluster that answers questions."""

    def refuses(self, *words: str) -> str:
        """Why it says no, in Ceph's words; empty: it says yes."""


def judge(device: str, uses: Sequence[tuple[str, str]], *, unreadable: bool, cluster: Asks) -> Answer:
    """The answer for a whole disk with these uses (kind, name); asks ``cluster`` only for OSDs. :class:`Unavailable`
    if whose the disk is, or what the cluster says, is not known."""
    osds = tuple(sorted({name for kind, name in uses if kind in _OF_OSDS}, key=lambda name: (len(name), name)))
    if unreadable or "" in osds:
        raise Unavailable(f"{device}: which OSDs use it is not readable for this user; run this as root")
    by_others = [
        (kind, name)
        for kind, name in uses
        if kind not in (*_OF_OSDS, *_BETWEEN) and not (kind == "filesystem" and osd_by_mount_point(name))
    ]
    if not by_others and not osds:  # nobody is on top of them
        by_others = list(uses)
    if by_others:
        kind, name = by_others[0]
        return _no(device, osds, f"{kind} {name} uses it", _RELEASES.get(kind, f"remove it if nobody needs {name}"))
    if not osds:
        reason = "nothing that the kernel lists uses it"
        first = "look whether a program opened it directly, such as a virtual machine: lsof /dev/" + device
        return Answer(device=device, safe=True, reason=reason, first=first, osds=())
    return _of_osds(device, osds, cluster)


def _of_osds(device: str, osds: tuple[str, ...], cluster: Asks) -> Answer:
    numbers = tuple(osd.removeprefix("osd.") for osd in osds)
    try:
        needed = cluster.refuses("osd", "safe-to-destroy", *numbers)
        if not needed:
            reason = f"no data depends on {', '.join(osds)}"
            return Answer(device=device, safe=True, reason=reason, first="stop what still runs of it", osds=osds)
        harm = cluster.refuses("osd", "ok-to-stop", *numbers)
    except Unavailable as error:
        command = f"ceph osd safe-to-destroy {' '.join(numbers)}"
        raise Unavailable(f"{device}: {', '.join(osds)} on it; {error}: {command}") from None
    leave = f"ceph osd out {' '.join(numbers)}"
    if harm:  # an OSD that is out serves its data until that has moved
        reason = f"placement groups would become inactive ({harm})"
        return _no(device, osds, reason, f"{leave}, let it run, and ask again when its data has moved")
    return _no(device, osds, needed, f"{leave}, and ask again when its data has moved")


def _no(device: str, osds: tuple[str, ...], reason: str, first: str) -> Answer:
    return Answer(device=device, safe=False, reason=reason, first=first, osds=osds)
