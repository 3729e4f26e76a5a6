"""Linux software RAID, from sysfs.

https://docs.kernel.org/admin-guide/md.html (every attribute, and the meaning of mismatches)
https://github.com/torvalds/linux/blob/v6.12/drivers/md/md.c (the file formats)

::

    /sys/block/md0/md/level                raid5; empty for a container of external metadata
    /sys/block/md0/md/metadata_version     1.2, external:imsm (a container), external:/md127/0 (an array in it)
    /sys/block/md0/md/array_state          clear | inactive | readonly | read-auto | clean | active | broken | …
    /sys/block/md0/md/raid_disks           4; "5 (4)" while it is being reshaped
    /sys/block/md0/md/degraded             members missing; absent for raid0 and linear, which have no redundancy
    /sys/block/md0/md/sync_action          idle | resync | recover | check | repair | reshape | frozen
    /sys/block/md0/md/sync_completed       none | delayed | 1234 / 5678, in sectors
    /sys/block/md0/md/sync_speed           none | KiB/s
    /sys/block/md0/md/mismatch_cnt         sectors that did not match in the last check
    /sys/block/md0/md/dev-sdb1/state       in_sync,write_mostly | faulty | spare | journal …
    /sys/block/md0/md/dev-sdb1/slot        its place, none (a spare) or journal

Reading a suspended array may block, so a scrape does not read it.
"""

from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

CONTAINER = "container"  # level of external metadata (Intel's and SNIA's formats): it holds disks, not data

_SURVIVES = {"raid4": 1, "raid5": 1, "raid6": 2}
_NUMBER = r"[0-9]{1,18}"


class MdMember(Struct, frozen=True):
    """A disk or partition of an array."""

    device: str
    state: str  # the kernel's words: ``in_sync``, ``faulty``, ``spare``, ``in_sync,write_mostly`` …
    slot: str  # the member's position: a number, ``none`` for a spare, ``journal``
    errors: int | None  # corrected read errors, approximately; stored with the array, so restarts do not reset it

    @property
    def faulty(self) -> bool:
        """Whether the array has failed this member."""
        return "faulty" in self.state.split(",")


class MdArray(Struct, frozen=True):
    """One array. ``None``: not reported by this level or this kernel."""

    device: str
    level: str
    state: str
    disks: int | None  # members of the complete array
    degraded_disks: int | None
    redundant_disks: int | None  # members that may fail without loss of data, whichever they are
    sync_action: str
    sync_done_sectors: int | None
    sync_total_sectors: int | None  # ``None``: nothing in progress, or waiting for another array on the same disks
    sync_speed_kib_per_second: int | None
    mismatch_sectors: int | None
    members: tuple[MdMember, ...]

    @property
    def sync_ratio(self) -> float | None:
        """Progress of the running sync action, 0 to 1."""
        if self.sync_done_sectors is None or not self.sync_total_sectors:
            return None
        return self.sync_done_sectors / self.sync_total_sectors


class MdReading(Struct, frozen=True):
    """All arrays, and the skipped ones with reasons."""

    arrays: tuple[MdArray, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def parse_disks(text: str, *, source: str) -> int:
    """``4`` → 4; ``5 (4)``, while the array grows from four to five → 5. :class:`ParseError` otherwise."""
    return int(sysfs.matched(rf"({_NUMBER})(?: \({_NUMBER}\))?", text, "a number of disks", source)[1])


def parse_progress(text: str, *, source: str) -> tuple[int, int] | None:
    """``1234 / 5678`` → both; ``None`` for ``none``, ``delayed`` and a total of 0."""
    if text in ("none", "delayed"):
        return None
    match = sysfs.matched(rf"({_NUMBER}) / ({_NUMBER})", text, "none, delayed or done / total", source)
    done, total = int(match[1]), int(match[2])
    return (min(done, total), total) if total else None


def redundancy(level: str, disks: int | None, layout: int | None) -> int | None:
    """How many members may fail without loss, whichever they are; ``None``: unknown. raid10's layout has the number of
    near copies in its lowest byte, of far copies in the next (md.c)."""
    if level in ("raid0", "linear"):
        return 0
    if level == "raid1":
        return None if disks is None else max(disks - 1, 0)
    if level == "raid10":
        return None if layout is None else max((layout & 0xFF) * (layout >> 8 & 0xFF) - 1, 0)
    return _SURVIVES.get(level)


def read_md(roots: Roots) -> MdReading:
    """Every array; empty when there is none. An array with malformed attributes is skipped."""
    block = roots.sys / "block"
    arrays: list[MdArray] = []
    skipped: list[tuple[str, str]] = []
    for device in sysfs.entries(block):
        path = block / device / "md"
        state = sysfs.read_text(path / "array_state") if device.startswith("md") else None
        if state is None:
            continue  # not an array, or stopped meanwhile
        try:
            arrays.append(_read_array(path, device, state))
        except ParseError:
            skipped.append((device, "malformed"))
    return MdReading(tuple(arrays), tuple(skipped))


def _read_array(path: Path, device: str, state: str) -> MdArray:
    disks = sysfs.read_parsed(path / "raid_disks", parse_disks)
    progress = sysfs.read_parsed(path / "sync_completed", parse_progress)
    speed = sysfs.read_text(path / "sync_speed")
    level = _level(path)
    return MdArray(
        device=device,
        level=level,
        state=state,
        disks=disks or None,  # 0: not known yet, as for an array that did not start
        degraded_disks=sysfs.read_number(path / "degraded"),
        redundant_disks=redundancy(level, disks, sysfs.read_number(path / "layout") if level == "raid10" else None),
        sync_action=sysfs.read_text(path / "sync_action") or "",
        sync_done_sectors=progress[0] if progress else None,
        sync_total_sectors=progress[1] if progress else None,
        sync_speed_kib_per_second=(
            None if speed in (None, "none") else sysfs.parse_number(speed, source=str(path / "sync_speed"))
        ),
        mismatch_sectors=sysfs.read_number(path / "mismatch_cnt"),
        members=tuple(_members(path)),
    )


def _level(path: Path) -> str:
    """``external:imsm`` is a container; an array inside one refers to it: ``external:/md127/0``, ``-`` when frozen."""
    version = sysfs.read_text(path / "metadata_version") or ""
    kind, _, rest = version.partition(":")
    if kind == "external" and rest and rest[0] not in "/-":
        return CONTAINER
    return sysfs.read_text(path / "level") or ""


def _members(path: Path) -> list[MdMember]:
    members = []
    for entry in sysfs.entries(path):
        state = sysfs.read_text(path / entry / "state") if entry.startswith("dev-") else None
        if state is None:
            continue  # not a member, or being removed
        slot, errors = sysfs.read_text(path / entry / "slot") or "", sysfs.read_number(path / entry / "errors")
        members.append(MdMember(entry.removeprefix("dev-"), state, slot, errors))
    return members
