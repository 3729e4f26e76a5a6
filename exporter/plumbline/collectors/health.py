"""Disks' health as metrics; a disk that does not answer has no figures, but is still reported."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.core.capabilities import Capability
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import MetricSpec, Sample, counter, declared, gauge, known
from plumbline.sources.disk.diskhealth import DiskHealth, HealthReading, endurance_left_s

_DISK = ("device",)


def _gauge(name: str, text: str, *labels: str) -> MetricSpec:
    return gauge(f"plumbline_disk_{name}", text, (*_DISK, *labels))


def _counter(name: str, text: str) -> MetricSpec:
    return counter(f"plumbline_disk_{name}_total", text, _DISK)


AVAILABLE = _gauge("health_available", "1: the disk answers health queries (also asleep); 0: not, or never did.")
UNAVAILABLE = _gauge(
    "health_unavailable_info",
    "Why the disk's health is unknown, always 1: no-permission, no-smartctl, not-supported, no-answer, malformed,"
    " gone.",
    "reason",
)
LAST_SUCCESS = _gauge("health_last_success_timestamp_seconds", "When the disk last returned figures, Unix time.")
IN_FLIGHT = _gauge("health_in_flight_seconds", "How long the current query has been waiting; 0: none.")
ASLEEP = _gauge("asleep", "1: the disk is in standby and was not woken, so it has no figures now.")
PASSED = _gauge("smart_passed", "SMART's overall verdict of a SATA or SAS disk; 0: it expects to fail.")
WARNING = _gauge(
    "critical_warning",
    "NVMe critical warnings: spare, temperature, reliability, read-only, backup (of volatile memory), memory-region.",
    "warning",
)
WEAR = _gauge("wear_ratio", "Share of the rated endurance used, by the disk's own estimate; may exceed 1.")
SPARE = _gauge("spare_ratio", "Remaining spare blocks.")
SPARE_THRESHOLD = _gauge("spare_threshold_ratio", "Share of spare blocks below which the disk warns.")
MEDIA_ERRORS = _counter("media_errors", "Reads and writes whose data the disk could not correct.")
UNSAFE_SHUTDOWNS = _counter("unsafe_shutdowns", "Power losses without notice.")
POWER_CYCLES = _counter("power_cycles", "Times the disk was powered on.")
POWER_ON = _counter("power_on_seconds", "Time powered on; disks count hours.")
WRITTEN = _counter("host_written_bytes", "Bytes written by hosts in the disk's life. SAS: gigabytes processed.")
READ = _counter("host_read_bytes", "Bytes read by hosts in the disk's life. SAS: gigabytes processed.")
TEMPERATURE = _gauge("temperature_celsius", "Temperature reported by the disk; NVMe: composite.")
LIMIT = _gauge(
    "temperature_limit_celsius",
    "The disk's own limits: warning (NVMe WCTEMP, SATA specified maximum), critical (NVMe CCTEMP, SAS trip).",
    "limit",
)
POWER_STATE = _gauge(
    "power_state_number",
    "NVMe power state in force when it was asked; 0 is full power, higher ones are slower. An idle disk may sleep.",
)
REALLOCATED = _gauge("reallocated_sectors", "Sectors replaced by spare ones; SAS: grown defects.")
PENDING = _gauge("pending_sectors", "Unreadable sectors that wait to be rewritten or replaced.")
UNCORRECTABLE = _gauge("offline_uncorrectable_sectors", "Sectors found unreadable by the disk's own scans.")
INTERFACE_ERRORS = _counter("interface_errors", "CRC errors between disk and host: cable, backplane, expander.")
ENDURANCE_LEFT = _gauge(
    "endurance_left_seconds",
    "Forecast of powered-on time until the rated endurance is used up, at the pace so far. Absent below 1 % wear.",
)

_SECONDS_PER_HOUR = 3600
_PERCENT = 100


def samples(states: HealthReading) -> Iterator[Sample]:
    for state in states:
        labels = (state.device,)
        yield AVAILABLE, labels, 1 if state.available else 0
        if state.reason:
            yield UNAVAILABLE, (state.device, state.reason), 1
        yield from known(labels, (LAST_SUCCESS, state.last_success_at))
        yield IN_FLIGHT, labels, state.in_flight_s
        if state.available:
            yield ASLEEP, labels, 1 if state.asleep else 0
        if state.health is not None:
            yield from _figures(state.device, state.health)


def _figures(device: str, health: DiskHealth) -> Iterator[Sample]:
    for name, on in health.warnings.items():
        yield WARNING, (device, name), 1 if on else 0
    yield from known((device, "warning"), (LIMIT, health.warning_celsius))
    yield from known((device, "critical"), (LIMIT, health.critical_celsius))
    passed = health.smart_passed
    yield from known(
        (device,),
        (PASSED, None if passed is None else int(passed)),
        (WEAR, _ratio(health.wear_percent)),
        (SPARE, _ratio(health.spare_percent)),
        (SPARE_THRESHOLD, _ratio(health.spare_threshold_percent)),
        (MEDIA_ERRORS, health.media_errors),
        (UNSAFE_SHUTDOWNS, health.unsafe_shutdowns),
        (POWER_CYCLES, health.power_cycles),
        (POWER_ON, None if health.power_on_hours is None else health.power_on_hours * _SECONDS_PER_HOUR),
        (WRITTEN, health.written_bytes),
        (READ, health.read_bytes),
        (TEMPERATURE, health.temperature_celsius),
        (POWER_STATE, health.power_state),
        (REALLOCATED, health.reallocated_sectors),
        (PENDING, health.pending_sectors),
        (UNCORRECTABLE, health.offline_uncorrectable_sectors),
        (INTERFACE_ERRORS, health.interface_errors),
        (ENDURANCE_LEFT, endurance_left_s(health)),
    )


def _ratio(percent: int | None) -> float | None:
    return None if percent is None else percent / _PERCENT


COLLECTOR: Collector[Host, HealthReading] = Collector(
    "health",
    declared(globals()),
    lambda host, _skip: host.parts.storage.health,
    samples,
    origin="NVMe: log page 2 by ioctl; SATA and SAS: `smartctl --json`",
    sized_by=("disk: health",),
    capabilities=frozenset({Capability.SYS_ADMIN, Capability.SYS_RAWIO}),
)
