"""Queue settings as samples."""

from __future__ import annotations

from plumbline.collectors import queue as metrics
from plumbline.sources.disk.queuesettings import QueueReading, QueueSettings


def test_a_queue_in_base_units() -> None:
    disk = QueueSettings(
        "sda", "bfq", "write through", "write back", "host-aware", 64, 4096, 2, 1, True, 1280, 75000, False
    )
    got = [
        (spec.name.removeprefix("plumbline_disk_"), *labels[1:], value)
        for spec, labels, value in metrics.samples(QueueReading((disk,)))
    ]
    assert got == [
        ("queue_info", "bfq", "write through", "host-aware", 1),
        ("volatile_cache_enabled", 1),
        ("queue_requests", 64),
        ("read_ahead_bytes", 4_194_304),
        ("rq_affinity", 2),
        ("nomerges", 1),
        ("add_random_enabled", 1),
        ("io_max_bytes", 1_310_720),
        ("writeback_throttle_seconds", 0.075),
        ("io_poll_enabled", 0),
    ]


def test_what_a_device_does_not_have_is_absent_and_zero_is_not() -> None:
    assert list(metrics.samples(QueueReading((QueueSettings("md127"),)))) == [(metrics.INFO, ("md127", "", "", ""), 1)]
    off = QueueSettings("sdb", read_ahead_kib=0, rq_affinity=0, writeback_throttle_us=0)
    assert [(spec.name, value) for spec, _, value in metrics.samples(QueueReading((off,)))][1:] == [
        ("plumbline_disk_read_ahead_bytes", 0),
        ("plumbline_disk_rq_affinity", 0),
        ("plumbline_disk_writeback_throttle_seconds", 0),
    ]
