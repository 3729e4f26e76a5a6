"""The slow tier: facts of the host that rarely change, read by jobs outside the scrape."""

from __future__ import annotations

import logging

from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import Slot
from plumbline.errors import PlumblineError
from plumbline.sources.disk.block import BlockDevice, read_block_devices
from plumbline.sources.net.network import NetworkReader

log = logging.getLogger(__name__)

FACTS_EVERY_S = 300.0
"""How often facts that rarely change (rings, drivers, disk models) are read again, apart from kernel events."""
NETWORK_FACTS, DISK_FACTS = "network facts", "disk facts"


class HostFacts:
    """The latest facts, and the jobs that read them.

    Network and disks are read by separate jobs, so that a disk that hangs does not delay the network's facts.
    """

    def __init__(self, network: NetworkReader, roots: Roots) -> None:
        self._network, self._roots = network, roots
        self._ports = Slot[None](self._read_network, what="network ports")
        self._disks = Slot[tuple[BlockDevice, ...]](self._read_disks, what="the disks")

    def jobs(self) -> list[Job]:
        """Jobs that run at once and every few minutes; kernel events kick them by name."""
        return [
            Job(NETWORK_FACTS, FACTS_EVERY_S, 0.0, self._ports.refresh),
            Job(DISK_FACTS, FACTS_EVERY_S, 0.0, self._disks.refresh),
        ]

    @property
    def read_once(self) -> bool:
        """Whether everything has been read, or has failed."""
        return self._ports.tried and self._disks.tried

    @property
    def devices(self) -> tuple[BlockDevice, ...]:
        """All disks as last read; before the first reading, raises why there is none."""
        return self._disks.value if self._disks.last is None else self._disks.last

    def _read_network(self) -> None:
        try:
            self._network.refresh()
        except PlumblineError as error:
            log.warning("%s: %s", NETWORK_FACTS, error)

    def _read_disks(self) -> tuple[BlockDevice, ...]:
        return read_block_devices(
            self._roots, on_skip=lambda item, reason: log.debug("%s: %s left out: %s", DISK_FACTS, item, reason)
        )
