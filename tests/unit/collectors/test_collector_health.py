"""Disks' health as samples."""

from __future__ import annotations

import pytest

from plumbline.collectors import health as metrics
from plumbline.sources.disk.diskhealth import DiskHealth, DiskState, endurance_left_s
from plumbline.sources.disk.nvme_smart import Limits, parse_health
from support.nvme import USED, smart_page


def plain(*states: DiskState) -> list[tuple[object, ...]]:
    return [
        (spec.name.removeprefix("plumbline_disk_"), *labels, value) for spec, labels, value in metrics.samples(states)
    ]


def test_an_nvme_disk_in_base_units() -> None:
    health = parse_health(smart_page(USED | {"critical_warning": 1}), Limits(343, 353), source="")
    assert plain(DiskState("nvme0n1", health, False, "", "", 1.7e9, 0.0)) == [
        ("health_available", "nvme0n1", 1),
        ("health_last_success_timestamp_seconds", "nvme0n1", 1.7e9),
        ("health_in_flight_seconds", "nvme0n1", 0.0),
        ("asleep", "nvme0n1", 0),
        ("critical_warning", "nvme0n1", "spare", 1),
        ("critical_warning", "nvme0n1", "temperature", 0),
        ("critical_warning", "nvme0n1", "reliability", 0),
        ("critical_warning", "nvme0n1", "read-only", 0),
        ("critical_warning", "nvme0n1", "backup", 0),
        ("critical_warning", "nvme0n1", "memory-region", 0),
        ("temperature_limit_celsius", "nvme0n1", "warning", 70),
        ("temperature_limit_celsius", "nvme0n1", "critical", 80),
        ("wear_ratio", "nvme0n1", 1.04),
        ("spare_ratio", "nvme0n1", 0.97),
        ("spare_threshold_ratio", "nvme0n1", 0.1),
        ("media_errors_total", "nvme0n1", 2),
        ("unsafe_shutdowns_total", "nvme0n1", 5),
        ("power_cycles_total", "nvme0n1", 12),
        ("power_on_seconds_total", "nvme0n1", 26000 * 3600),
        ("host_written_bytes_total", "nvme0n1", 3 * 512_000),
        ("host_read_bytes_total", "nvme0n1", 2**40 * 512_000),
        ("temperature_celsius", "nvme0n1", 38),
        ("endurance_left_seconds", "nvme0n1", 0.0),
    ]


def test_a_disk_that_does_not_answer_has_no_figures_but_a_last_seen() -> None:
    assert plain(DiskState("sda", None, False, "no-answer", "…", 1.6e9, 77.5)) == [
        ("health_available", "sda", 0),
        ("health_unavailable_info", "sda", "no-answer", 1),
        ("health_last_success_timestamp_seconds", "sda", 1.6e9),
        ("health_in_flight_seconds", "sda", 77.5),
    ]


def test_a_sleeping_disk_is_available() -> None:
    assert plain(DiskState("sda", None, True, "", "", None, 0.0)) == [
        ("health_available", "sda", 1),
        ("health_in_flight_seconds", "sda", 0.0),
        ("asleep", "sda", 1),
    ]


@pytest.mark.parametrize(
    ("wear_percent", "hours", "left_s"),
    [
        (None, 8760, None),
        (10, None, None),
        (0, 8760, None),
        (1, 100, 99 * 100 * 3600),
        (25, 20000, 60000 * 3600),
        (100, 20000, 0.0),
        (255, 20000, 0.0),
        (50, 0, 0.0),
    ],
)
def test_endurance_left(wear_percent: int | None, hours: int | None, left_s: float | None) -> None:
    got = endurance_left_s(DiskHealth(wear_percent=wear_percent, power_on_hours=hours))
    assert got == (None if left_s is None else pytest.approx(left_s))


def test_only_what_is_known_is_said() -> None:
    health = DiskHealth(smart_passed=False, pending_sectors=0)
    assert [row for row in plain(DiskState("sda", health, False, "", "", 1.0, 0.0)) if row[0] not in
            ("health_available", "health_last_success_timestamp_seconds", "health_in_flight_seconds", "asleep")] == [
        ("smart_passed", "sda", 0),
        ("pending_sectors", "sda", 0),
    ]  # fmt: skip
