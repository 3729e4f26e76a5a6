"""What the checks of arrays and paths need: the readings, with ZFS pools merged from the module and the tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plumbline.checks.readings import Readings
from plumbline.sources.arrays import Arrays
from plumbline.sources.disk.md import MdArray
from plumbline.sources.disk.multipath import MultipathDisk
from plumbline.sources.disk.zpool_status import PoolStatus, Vdev


@dataclass(frozen=True, slots=True)
class Pool:
    """A ZFS pool. ``errors`` and ``unhealthy`` are ``None`` where zpool status could not be read."""

    name: str
    state: str
    data_errors: int | None = None
    errors: tuple[Vdev, ...] | None = None
    """Innermost devices that have counted errors."""
    unhealthy: tuple[str, ...] | None = None
    """Innermost devices that are neither ONLINE nor a usable spare."""


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """The facts of one host."""

    raids: tuple[MdArray, ...] = ()
    pools: tuple[Pool, ...] = ()
    multipaths: tuple[MultipathDisk, ...] = ()


def array_facts(readings: Readings) -> ArrayFacts:
    """Collect the facts of one host."""
    arrays = readings.arrays
    return ArrayFacts(arrays.md.arrays if arrays.md else (), tuple(_pools(arrays)), arrays.multipath or ())


def _pools(arrays: Arrays) -> Iterator[Pool]:
    statuses = {status.name: status for status in arrays.zpools or ()}
    for name, now in arrays.zfs.pools.items() if arrays.zfs else ():
        status = statuses.get(name)
        state = now or (status.state if status else "")
        if state:
            yield _pool(name, state, status)


def _pool(name: str, state: str, status: PoolStatus | None) -> Pool:
    if status is None or all(vdev.healthy is None for vdev in status.vdevs):
        return Pool(name, state, status.data_errors if status else None)
    errors = _innermost(vdev for vdev in status.vdevs if any(vdev.errors.values()))
    unhealthy = _innermost(vdev for vdev in status.vdevs if vdev.healthy is False)
    return Pool(name, state, status.data_errors, tuple(errors), tuple(vdev.path for vdev in unhealthy))


def _innermost(vdevs: Iterable[Vdev]) -> Iterator[Vdev]:
    """Without groups whose members are more specific. Names may contain slashes (files), so compare up to a slash."""
    every = list(vdevs)
    for vdev in every:
        if not any(other.path.startswith(f"{vdev.path}/") for other in every):
            yield vdev
