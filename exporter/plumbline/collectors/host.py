"""What the collectors read: the host as the daemon knows it, and the configuration in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from msgspec import Struct

from plumbline.background.ceph import OsdWatch
from plumbline.background.host import KernelWatch
from plumbline.background.storage import StorageWatch
from plumbline.baseline.book import Book
from plumbline.core.roots import Roots
from plumbline.core.slot import Slot
from plumbline.errors import PlumblineError, Unavailable
from plumbline.metrics.guard import SkipHook
from plumbline.metrics.spec import Sample
from plumbline.sources.disk.diskstats import WholeDisks
from plumbline.sources.kernel.softnet import SoftnetUnwrapper
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.portfacts import LinkFacts

R = TypeVar("R")
T = TypeVar("T")


class Latest(Struct, frozen=True):
    """The latest reading of what is read in the background or asked of another part, by type."""

    sources: Mapping[type, Callable[[], object]]  # each may raise Unavailable, or another PlumblineError

    def __call__(self, kind: type[R]) -> R:
        """The latest reading; :class:`Unavailable` where nothing reads it."""
        source = self.sources.get(kind)
        if source is None:
            raise Unavailable(f"nothing gives a {kind.__name__} here")
        return cast("R", source())


class Parts(Struct, frozen=True):
    """The sources of the collectors. Each answers at once: the scrape waits for nothing."""

    roots: Roots
    network: NetworkReader
    links: LinkFacts
    softnet: SoftnetUnwrapper  # lives as long as the daemon: its counters must not jump at a reload
    kernel: KernelWatch
    storage: StorageWatch
    osds: OsdWatch
    latest: Latest


class Host(Struct, frozen=True):
    """The parts, and the settings for them in the configuration in force."""

    parts: Parts
    book: Book
    disks: WholeDisks  # which disks are reported
    counted: WholeDisks  # disks whose counters are reported: partitions too, where the configuration wants them
    queue_buckets: bool  # whether the time that requests wait is counted in buckets
    baselines: tuple[Sample, ...]  # the book's own figures; constant until the book changes


def slot_value(slot: Slot[T], item: str, skip: SkipHook) -> T | None:
    """:func:`part` of the slot's value."""
    return part(lambda: slot.value, item, skip)


def part(value: Callable[[], T], item: str, skip: SkipHook) -> T | None:
    """The value, ``None`` where there is none; a fault counts as a skipped item."""
    try:
        return value()
    except Unavailable:
        return None
    except PlumblineError:
        skip(item, "unreadable")
        return None
