"""A disk's own health report, from either source: NVMe's log page (``nvme_smart``) or smartctl (``smartctl``)."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from plumbline.errors import Unavailable

DROP_IN = "systemd/drop-ins/disk-health.conf (docs/container.md in a container)"  # permits the daemon to query disks


class Reason(StrEnum):
    """Why there is no report, as a label."""

    NO_PERMISSION = "no-permission"
    NO_PROGRAM = "no-smartctl"
    NOT_SUPPORTED = "not-supported"
    NO_ANSWER = "no-answer"
    MALFORMED = "malformed"
    GONE = "gone"


class NoHealth(Unavailable):
    """One disk's health is unavailable: the message says what to do."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class DiskHealth(Struct, frozen=True):
    """One disk's own figures; ``None``: not reported. No figure here is computed from others."""

    smart_passed: bool | None = None  # SMART's overall verdict. NVMe has none, only ``warnings``.
    warnings: Mapping[str, bool] = field(default_factory=dict)  # NVMe's critical warnings by name, all of them
    wear_percent: int | None = None  # percentage of the rated endurance used; may exceed 100 (NVMe and ATA stop at 255)
    spare_percent: int | None = None
    spare_threshold_percent: int | None = None
    media_errors: int | None = None  # uncorrectable data errors
    unsafe_shutdowns: int | None = None
    power_cycles: int | None = None
    power_on_hours: int | None = None
    written_bytes: int | None = None
    read_bytes: int | None = None
    temperature_celsius: float | None = None
    warning_celsius: float | None = None  # too warm from here on (NVMe WCTEMP; ATA: maximum operating temperature)
    critical_celsius: float | None = None  # it may stop from here on (NVMe CCTEMP; SCSI: the trip point)
    reallocated_sectors: int | None = None
    pending_sectors: int | None = None
    offline_uncorrectable_sectors: int | None = None
    power_state: int | None = None  # NVMe: the state in force; 0 is full power
    interface_errors: int | None = None  # CRC errors between disk and host: cable, backplane, expander


def controller_disk(device: str) -> tuple[str, str]:
    """Node and type, as smartctl takes them, of a disk behind a RAID controller, from its ``device`` label
    (``bus/0:megaraid,8``). The type is empty for any other disk."""
    node, _, behind = device.partition(":")
    return f"/dev/{node}", behind


def endurance_left_s(health: DiskHealth) -> float | None:
    """Powered-on seconds left at the average wear so far: t / w - t for the share w after t seconds; 0 for a disk
    beyond that. ``None`` below 1 %: disks estimate wear in whole percents, so even there it may be wrong by half."""
    if health.wear_percent is None or health.wear_percent < 1 or health.power_on_hours is None:
        return None
    wear = health.wear_percent / 100
    return max(0.0, health.power_on_hours * 3600 * (1 - wear) / wear)


class Asleep:
    """The disk is in standby and was not woken."""


Answer = DiskHealth | Asleep


class DiskState(Struct, frozen=True):
    """The current knowledge of one disk's health. ``health`` is fresh or ``None``: old figures are not kept."""

    device: str
    health: DiskHealth | None
    asleep: bool
    reason: str  # a :class:`Reason`; empty while the disk answers
    message: str
    last_success_at: float | None  # Unix time of the last figures, in seconds
    in_flight_s: float

    @property
    def available(self) -> bool:
        """Whether the disk answers, with figures or that it is asleep."""
        return not self.reason


class HealthReading(tuple[DiskState, ...]):
    """Every disk that is queried."""
