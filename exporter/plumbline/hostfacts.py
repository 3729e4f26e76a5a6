"""The slow tier: facts of the host that rarely change, read by jobs beside the scrape."""

from __future__ import annotations

import logging
import threading

from plumbline.errors import PlumblineError, Unavailable
from plumbline.roots import Roots
from plumbline.scheduler import Job
from plumbline.sources.block import BlockDevice, read_block_devices
from plumbline.sources.network import NetworkReader

log = logging.getLogger(__name__)

FACTS_EVERY_S = 300.0
"""Facts that rarely change (rings, drivers, disk models) are read again this often, besides on kernel events."""
NETWORK_FACTS, DISK_FACTS = "network facts", "disk facts"


class HostFacts:
    """What was read last, and the jobs that read it.

    Network and disks are read apart, so that a disk that hangs leaves the network's facts fresh.
    """

    def __init__(self, network: NetworkReader, roots: Roots) -> None:
        self._network, self._roots = network, roots
        self._devices: tuple[BlockDevice, ...] | PlumblineError = Unavailable("the disks have not answered yet")
        self._read_once = (threading.Event(), threading.Event())

    def jobs(self) -> list[Job]:
        """To be run at once and every few minutes, and kicked by their names on kernel events."""
        return [
            Job(NETWORK_FACTS, FACTS_EVERY_S, 0.0, self._read_network),
            Job(DISK_FACTS, FACTS_EVERY_S, 0.0, self._read_disks),
        ]

    @property
    def read_once(self) -> bool:
        """Whether everything has been read, or could not be."""
        return all(each.is_set() for each in self._read_once)

    def _read_network(self, _cancel: threading.Event) -> None:
        try:
            self._network.refresh()
        except PlumblineError as error:
            log.warning("%s: %s", NETWORK_FACTS, error)
        self._read_once[0].set()

    def _read_disks(self, _cancel: threading.Event) -> None:
        try:
            self._devices = read_block_devices(
                self._roots, on_skip=lambda item, reason: log.debug("%s: %s left out: %s", DISK_FACTS, item, reason)
            )
        except PlumblineError as error:  # said by the collector, unless there are older facts
            log.debug("%s: %s", DISK_FACTS, error)
            if isinstance(self._devices, PlumblineError):
                self._devices = error
        self._read_once[1].set()

    @property
    def devices(self) -> tuple[BlockDevice, ...]:
        """All disks as last read; before that why there are none."""
        if isinstance(self._devices, PlumblineError):
            raise self._devices.with_traceback(None)  # raised once a scrape: it must not collect tracebacks
        return self._devices
