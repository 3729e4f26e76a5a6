"""What is read of the disk layer outside the scrape: each part in a slot of its own, by a job of its own.

A disk that hangs holds back the one job that asked it; the others go on, and the scrape shows how old a slot is.
"""

from __future__ import annotations

import logging

from plumbline.latest import Latest
from plumbline.roots import Roots
from plumbline.scheduler import Job
from plumbline.sources.pcidevices import PciReading, read_pci

log = logging.getLogger(__name__)

PCIE, PCIE_EVERY_S = "pcie", 60.0
"""Error counters want freshness, each pass costs the devices some hundred register reads; rules look back over five
minutes and more, so that several passes lie within their window."""


class StorageWatch:
    """The latest reading of each part. Every slot is replaced whole, so anybody may look."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._unread_pci: frozenset[str] = frozenset()
        self.pcie = Latest[PciReading](self._read_pci, what="PCI devices", stale_after_s=4 * PCIE_EVERY_S)

    def jobs(self) -> list[Job]:
        """What keeps the slots filled; each job is bounded by itself."""
        return [
            Job(PCIE, PCIE_EVERY_S, 0.0, self.pcie.refresh),
        ]

    def _read_pci(self) -> PciReading:
        reading = read_pci(self._roots)
        unread = frozenset(each.missing for each in reading.functions if each.missing)
        if unread != self._unread_pci:
            self._unread_pci = unread
            log.debug("%s: %s", PCIE, "; ".join(sorted(unread)) or "everything can be read")
        return reading
