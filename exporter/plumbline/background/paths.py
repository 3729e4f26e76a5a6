"""Lost paths of multipath disks: a path that leaves sysfs stays visible as gone for a week, also across restarts.

A removed SCSI device or NVMe controller leaves nothing behind: the disk would look as if it never had another path.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from plumbline.background.presence import FORGET_AFTER_S
from plumbline.core.roots import Roots
from plumbline.probes.run.state import PathRecord, StateStore
from plumbline.sources.disk.multipath import GONE, DiskPath, MultipathDisk, read_multipath

MOST_GONE = 1000  # Records kept of paths that are gone: volumes that come and go each leave some behind

Key = tuple[str, str]


class PathMemory:
    """Reads the multipath disks, and adds the paths that they had before. For one thread at a time."""

    def __init__(self, store: StateStore, *, wall: Callable[[], float]) -> None:
        self._store, self._wall = store, wall

    def read(self, roots: Roots) -> tuple[MultipathDisk, ...]:
        """Every disk that has several paths, or had within the last week."""
        now = self._wall()
        self._store.follow_clock()
        before = self._store.paths
        disks = read_multipath(roots, _several(before))
        records = remember(before, disks, now)
        if records != before:
            self._store.put_paths(records)
        return tuple(_with_gone(disk, records) for disk in disks)


def remember(before: Iterable[PathRecord], disks: Iterable[MultipathDisk], now: float) -> tuple[PathRecord, ...]:
    """The known paths after a look at ``now`` that found ``disks``. Each path that a disk did not have before replaces
    one that is gone, the longest gone first: it came back under another name, or was set up instead."""
    known = {_key(record.disk, record.name, record.address): record for record in before}
    present: dict[Key, PathRecord] = {}
    new: Counter[str] = Counter()
    for disk in disks:
        for path in disk.paths:
            key = _key(disk.identity, path.name, path.address)
            new[disk.identity] += key not in known
            present[key] = PathRecord(disk.identity, path.name, path.transport, path.address)
    gone = [
        record if record.gone_since is not None else msgspec.structs.replace(record, gone_since=now)
        for key, record in known.items()
        if key not in present
    ]
    gone.sort(key=_gone_since)
    kept = []
    for record in gone:
        if new[record.disk]:
            new[record.disk] -= 1
        elif now - _gone_since(record) <= FORGET_AFTER_S:
            kept.append(record)
    return (*(present[key] for key in sorted(present)), *kept[-MOST_GONE:])


def _with_gone(disk: MultipathDisk, records: Iterable[PathRecord]) -> MultipathDisk:
    gone = (
        DiskPath(record.name, GONE, record.transport, record.address)
        for record in records
        if record.disk == disk.identity and record.gone_since is not None
    )
    return replace(disk, paths=(*disk.paths, *gone))


def _several(records: Iterable[PathRecord]) -> frozenset[str]:
    paths = Counter(record.disk for record in records)
    return frozenset(disk for disk, count in paths.items() if count > 1)


def _key(disk: str, name: str, address: str) -> Key:
    """Names depend on detection order, so the address goes first."""
    return disk, address or name


def _gone_since(record: PathRecord) -> float:
    return record.gone_since or 0.0
