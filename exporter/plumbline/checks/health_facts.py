"""What the health checks ask about a host's disks: pure data, every part of which may be unknown (``None``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plumbline.checks.facts import Count


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk by its own words. A disk that does not answer, or sleeps, has no figures."""

    device: str
    available: bool = True
    reason: str = ""
    """Why it is not available, as the metric says it."""
    seen_before: bool = False
    """It has given figures since the daemon started."""
    osd: str = ""
    """Ceph's OSDs on it, ``osd.3`` or ``osd.3,osd.4``."""
    smart_passed: bool | None = None
    warnings: Mapping[str, bool] = field(default_factory=dict)
    """NVMe's critical warnings by name."""
    media_errors: Count | None = None
    pending_sectors: int | None = None
    offline_uncorrectable_sectors: int | None = None
    spare_ratio: float | None = None
    spare_threshold_ratio: float | None = None
    wear_ratio: float | None = None
    endurance_left_s: float | None = None
    temperature_celsius: float | None = None
    warning_celsius: float | None = None
    critical_celsius: float | None = None

    @property
    def nvme(self) -> bool:
        """By its name."""
        return self.device.startswith("nvme")


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """What is known of all disks after ``window_s`` seconds of looking (``None``: one look)."""

    window_s: float | None = None
    disks: tuple[Disk, ...] = ()
