"""What a disk says of its own health, whoever asked it: NVMe's log page (``nvme_smart``) or smartctl (``smartctl``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plumbline.errors import Unavailable

DROP_IN = "systemd/drop-ins/disk-health.conf"
"""What gives the daemon the right to ask."""

NO_PERMISSION, NO_PROGRAM, NOT_SUPPORTED, NO_ANSWER, MALFORMED, GONE = REASONS = (
    "no-permission",
    "no-smartctl",
    "not-supported",
    "no-answer",
    "malformed",
    "gone",
)
"""Why there is nothing, as a label; the message of :class:`NoHealth` says it for people."""


class NoHealth(Unavailable):
    """One disk's health could not be had: ``reason`` is one of :data:`REASONS`, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class DiskHealth:
    """One disk's own figures; ``None``: it does not tell. Nothing here is computed from other figures."""

    smart_passed: bool | None = None
    """SMART's overall verdict. NVMe has none, only ``warnings``."""
    warnings: Mapping[str, bool] = field(default_factory=dict)
    """NVMe's critical warnings by name, all of them."""
    wear_percent: int | None = None
    """Of the rated endurance used; may exceed 100 (NVMe and ATA stop at 255)."""
    spare_percent: int | None = None
    spare_threshold_percent: int | None = None
    media_errors: int | None = None
    """Data that could not be corrected."""
    unsafe_shutdowns: int | None = None
    power_cycles: int | None = None
    power_on_hours: int | None = None
    written_bytes: int | None = None
    read_bytes: int | None = None
    temperature_celsius: float | None = None
    warning_celsius: float | None = None
    """The disk is warmer than it should be from here on (NVMe WCTEMP; ATA: specified maximum operating)."""
    critical_celsius: float | None = None
    """It may stop from here on (NVMe CCTEMP; SCSI: reference temperature, where it trips)."""
    reallocated_sectors: int | None = None
    pending_sectors: int | None = None
    offline_uncorrectable_sectors: int | None = None
    interface_errors: int | None = None
    """CRC errors between disk and host: cable, backplane, expander."""


def endurance_left_s(health: DiskHealth) -> float | None:
    """What is left if the disk wears as fast as on average so far; ``None`` below 1 %, where the estimate is coarse.

    A disk worn to the share w in t powered-on seconds wears out after t / w, of which t / w - t = t × (1 - w) / w are
    left; 0 for one that is beyond. Disks estimate wear in whole percents, so at 1 % it may be wrong by half.
    """
    if health.wear_percent is None or health.wear_percent < 1 or health.power_on_hours is None:
        return None
    wear = health.wear_percent / 100
    return max(0.0, health.power_on_hours * 3600 * (1 - wear) / wear)


class Asleep:
    """The disk is in standby and was left there."""


Answer = DiskHealth | Asleep


@dataclass(frozen=True, slots=True)
class DiskState:
    """What is known of one disk's health now. ``health`` is fresh or ``None``: old figures are not kept."""

    device: str
    health: DiskHealth | None
    asleep: bool
    reason: str
    """Of :data:`REASONS`; empty while the disk answers."""
    message: str
    last_success_at: float | None
    """Unix seconds of the last figures."""
    in_flight_s: float

    @property
    def available(self) -> bool:
        """It answers: with figures, or that it sleeps."""
        return not self.reason
