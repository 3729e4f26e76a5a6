"""What is known of a host's arrays and paths, as far as the checks ask. ``None``: not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """A disk of a software RAID."""

    device: str
    state: str
    """The kernel's words, with commas."""
    slot: str

    @property
    def faulty(self) -> bool:
        """Whether the array has given it up."""
        return "faulty" in self.state.split(",")


@dataclass(frozen=True, slots=True)
class Raid:
    """A software RAID, or a container of disks."""

    device: str
    level: str
    state: str
    disks: int | None = None
    degraded_disks: int | None = None
    redundant_disks: int | None = None
    """Members that may be missing without loss, whichever they are."""
    action: str = ""
    """resync, recover, check … or idle."""
    progress_ratio: float | None = None
    mismatch_sectors: int | None = None
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class VdevErrors:
    """A device of a pool that has counted errors."""

    vdev: str
    counts: Mapping[str, int]
    """By read, write, checksum; those that are not 0."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A ZFS pool. ``errors`` and ``unhealthy`` are ``None`` where zpool status could not be asked."""

    name: str
    state: str
    data_errors: int | None = None
    errors: tuple[VdevErrors, ...] | None = None
    unhealthy: tuple[str, ...] | None = None
    """Devices that are neither ONLINE nor a spare that is fit; the innermost ones."""


@dataclass(frozen=True, slots=True)
class Path:
    """A way to a disk."""

    name: str
    state: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Multipath:
    """A disk with several paths."""

    device: str
    name: str
    """``mpatha``, or ``nvme-subsys1``."""
    usable: int
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """All of it."""

    raids: tuple[Raid, ...] = ()
    pools: tuple[Pool, ...] = ()
    multipaths: tuple[Multipath, ...] = ()
