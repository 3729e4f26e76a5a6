"""What a minute of durable writes says of a disk, on made courses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from plumbline.checks.disk import Disk
from plumbline.checks.disk_flush import FLASH_MOST, ROTATING_MOST, DurableWrites, course, disk_flush_facts, flush
from plumbline.checks.model import Finding
from plumbline.checks.run import Judge
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.queuesettings import QueueReading
from support.disk_facts import HDD, LOOP, NVME, SSD, STACK, VIRTUAL, but

BACK = {"write_cache": "write back"}


def steady(rate: float, seconds: int = 60) -> list[float]:
    """A second in six is slow, as when the disk is shared."""
    return [rate * (0.1 if second % 6 == 5 else 1) for second in range(seconds)]


def judged(disk: Disk, rates: Sequence[float]) -> Finding | None:
    run = course(rates)
    assert run is not None
    findings = list(flush.findings(((disk, run),)))
    assert len(findings) <= 1
    return findings[0] if findings else None


def test_a_steady_rate_does_not_fall_through_single_slow_seconds() -> None:
    run = course(steady(1000))
    assert run is not None
    assert run.fell_after_s is None
    assert run.text == "1,000 durable writes/s (middle half 1,000 to 1,000)"


@pytest.mark.parametrize("after", [7, 25, 38])
def test_the_moment_at_which_a_cache_is_full(after: int) -> None:
    run = course(steady(20_000)[:after] + steady(600)[after:])
    assert run is not None
    assert run.fell_after_s == pytest.approx(after, abs=1)  # the second before may be a slow one
    assert run.text.startswith("20,000 durable writes/s, falls to 600 (middle half 600 to 600) after ")


def test_a_slow_start_and_a_wide_spread_are_no_fall() -> None:
    assert course(steady(100)[:20] + steady(900)[20:]).fell_after_s is None
    wide = [1000.0, 100.0] * 10
    assert course([*wide, *wide, *([100.0, 1000.0] * 9), 100.0, 100.0]).fell_after_s is None


def test_less_than_half_a_minute_is_too_short() -> None:
    assert course(steady(1000, 29)) is None
    assert course(steady(1000, 30)) is not None


def test_an_ssd_with_a_volatile_cache_that_is_faster_than_flash() -> None:
    found = judged(but(NVME, queue=BACK), steady(FLASH_MOST * 1.1))
    assert found is not None
    assert not found.met
    assert found.why.endswith("It acknowledges flushes faster than flash can store them.")
    assert found.expected == "at most 5,000/s without power-loss protection, or write through"
    assert found.fix.now == "smartctl -x /dev/nvme0n1"
    assert found.fix.caution.startswith(
        "This only shows model and cache. Find out whether it has power-loss protection."
    )


def test_fast_at_first_is_too_fast_as_well() -> None:
    found = judged(but(SSD, queue=BACK | {"device_cache": "write back"}), steady(30_000)[:20] + steady(500)[20:])
    assert found is not None
    assert found.why.endswith("faster than flash can store them.")
    assert found.actual == "30,000 durable writes/s, falls to 500 (middle half 500 to 500) after 20 s; write back"


@pytest.mark.parametrize("disk", [NVME, SSD])
def test_an_ssd_that_reports_no_volatile_cache_may_be_fast(disk: Disk) -> None:
    found = judged(disk, steady(40_000))
    assert found is not None
    assert found.met
    assert found.expected == "any: it reports no volatile cache"


@pytest.mark.parametrize("disk", [NVME, but(NVME, queue=BACK)])
def test_a_consumer_class_ssd(disk: Disk) -> None:
    found = judged(disk, steady(FLASH_MOST * 0.9))
    assert found is not None
    assert not found.met
    assert found.fix.caution.startswith("This only shows model and cache. Consumer-class.")
    assert found.expected == "more than 5,000/s, as with power-loss protection"


def test_a_hard_disk_cannot_write_twice_a_turn() -> None:
    honest, fast = steady(120), steady(ROTATING_MOST * 1.1)
    cached = but(HDD, queue=BACK | {"device_cache": "write back"})
    assert judged(cached, honest).met
    assert judged(cached, honest).expected == "at most 250/s: a write a turn"
    assert not judged(cached, fast).met
    assert judged(cached, fast).why.endswith("It acknowledges flushes faster than a disk can turn.")
    assert judged(HDD, fast).met


@pytest.mark.parametrize(
    "disk",
    [
        VIRTUAL,
        LOOP,
        STACK,
        but(SSD, queue={"write_cache": None}),
        but(SSD, queue={"device_cache": "write back"}),  # disk.flushes-omitted says so
    ],
)
def test_what_is_not_judged(disk: Disk) -> None:
    assert judged(disk, steady(40_000)) is None


def test_facts_come_from_the_readings_and_the_probes() -> None:
    readings = Readings.of(DevicesReading((NVME.block,)), QueueReading((replace(NVME.queue, device="nvme0n1"),)))
    writes = [
        DurableWrites("nvme0n1", tuple(steady(900))),
        DurableWrites("nvme0n1", ()),
        DurableWrites("gone", tuple(steady(900))),
    ]
    ((disk, run),) = disk_flush_facts(readings, writes)
    assert (disk.device, run.fell_after_s) == ("nvme0n1", None)
    findings = Judge(writes=lambda: writes).look(readings, 1.0)
    assert [finding.subject for finding in findings if finding.check == "disk.flush"] == ["nvme0n1"]
