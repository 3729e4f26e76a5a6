"""The OSDs of this host, queried in the background: the scrape shows their latest answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plumbline.core.scheduler import Job
from plumbline.core.slot import Slot
from plumbline.sources.ceph.osds import TIMEOUT_S, OsdReading, OsdStore, osds_here, read_osds, read_stores

OSDS, OSDS_EVERY_S = "osds", 15.0
"""For histograms, heartbeats and blocked operations: a usual scrape interval."""
OSD_STORES, OSD_STORES_EVERY_S = "osd stores", 300.0
"""Fragmentation walks the OSD's free list and holds its lock meanwhile; settings only change when an admin does it."""


class OsdWatch:
    """Both slots and the jobs that fill them. ``patterns`` returns the active globs of admin sockets."""

    def __init__(self, patterns: Callable[[], Sequence[str]], *, timeout_s: float = TIMEOUT_S) -> None:
        self._patterns, self._timeout_s = patterns, timeout_s
        self.osds = Slot[tuple[OsdReading, ...]](
            self._read_osds, what="the OSDs' admin sockets", stale_after_s=4 * OSDS_EVERY_S
        )
        self.stores = Slot[tuple[OsdStore, ...]](
            self._read_stores, what="the OSDs' stores", stale_after_s=4 * OSD_STORES_EVERY_S
        )

    def jobs(self) -> list[Job]:
        """Two jobs; each limits its own run time."""
        return [
            Job(OSDS, OSDS_EVERY_S, 0.0, self.osds.refresh),
            Job(OSD_STORES, OSD_STORES_EVERY_S, 0.0, self.stores.refresh),
        ]

    def _read_osds(self) -> tuple[OsdReading, ...]:
        return read_osds(osds_here(self._patterns()), timeout_s=self._timeout_s)

    def _read_stores(self) -> tuple[OsdStore, ...]:
        return read_stores(osds_here(self._patterns()), timeout_s=self._timeout_s)
