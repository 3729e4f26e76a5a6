"""From series to what the health checks ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from plumbline.checks.health_facts import Disk, HealthFacts
from plumbline.seriesview import SeriesView


def health_facts(view: SeriesView, window_s: float | None) -> HealthFacts:
    """All that is known after ``window_s`` seconds of looking (``None``: one look)."""
    return HealthFacts(window_s, tuple(_disks(view)))


def _disks(view: SeriesView) -> Iterator[Disk]:
    osds = {row["device"]: row.get("osd", "") for row, _ in view.rows("plumbline_disk_info")}
    reasons = {row["device"]: row["reason"] for row, _ in view.rows("plumbline_disk_health_unavailable_info")}
    warnings: dict[str, dict[str, bool]] = defaultdict(dict)
    for (device, name), on in view.series("plumbline_disk_critical_warning").items():
        warnings[device][name] = bool(on)
    limits = view.series("plumbline_disk_temperature_limit_celsius")
    seen = view.series("plumbline_disk_health_last_success_timestamp_seconds")

    def figure(name: str, device: str) -> float | None:
        return view.series(f"plumbline_disk_{name}").get((device,))

    def whole(name: str, device: str) -> int | None:
        value = figure(name, device)
        return None if value is None else int(value)

    for (device,), available in view.series("plumbline_disk_health_available").items():
        passed = figure("smart_passed", device)
        yield Disk(
            device,
            available=bool(available),
            reason=reasons.get(device, ""),
            seen_before=(device,) in seen,
            osd=osds.get(device, ""),
            smart_passed=None if passed is None else bool(passed),
            warnings=warnings.get(device, {}),
            media_errors=view.count("plumbline_disk_media_errors_total", device),
            pending_sectors=whole("pending_sectors", device),
            offline_uncorrectable_sectors=whole("offline_uncorrectable_sectors", device),
            spare_ratio=figure("spare_ratio", device),
            spare_threshold_ratio=figure("spare_threshold_ratio", device),
            wear_ratio=figure("wear_ratio", device),
            endurance_left_s=figure("endurance_left_seconds", device),
            temperature_celsius=figure("temperature_celsius", device),
            warning_celsius=limits.get((device, "warning")),
            critical_celsius=limits.get((device, "critical")),
        )
