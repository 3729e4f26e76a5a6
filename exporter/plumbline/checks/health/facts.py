"""What the health checks need to know about a disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plumbline.checks.growth import Count, Growth
from plumbline.checks.readings import Readings
from plumbline.sources.disk.diskhealth import DiskHealth, DiskState

_SILENT = DiskHealth()


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk, as it reports itself."""

    state: DiskState
    osd: str = ""
    """OSDs on it, ``osd.3`` or ``osd.3,osd.4``."""
    media_errors: Count | None = None

    @property
    def device(self) -> str:
        """The kernel's name."""
        return self.state.device

    @property
    def health(self) -> DiskHealth:
        """Its figures; empty for a disk that sleeps or does not answer."""
        return self.state.health or _SILENT

    @property
    def seen_before(self) -> bool:
        """Whether it has reported figures since the daemon started."""
        return self.state.last_success_at is not None

    @property
    def nvme(self) -> bool:
        """Whether it is NVMe, by its name."""
        return self.device.startswith("nvme")


Disks = tuple[Disk, ...]


def health_facts(readings: Readings, growth: Growth) -> Disks:
    """The facts of all disks that can be asked."""
    return tuple(_disks(readings, growth))


def _disks(readings: Readings, growth: Growth) -> Iterator[Disk]:
    for state in readings.health:
        errors = state.health.media_errors if state.health else None
        count = growth.count("disk media errors", errors, state.device)
        yield Disk(state, readings.osds.get(state.device, ""), count)
