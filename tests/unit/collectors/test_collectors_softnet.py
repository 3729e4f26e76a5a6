"""Softnet samples and the 32-bit wrap."""

from __future__ import annotations

from plumbline.collectors.softnet import (
    ATTRIBUTED,
    BACKLOG_LENGTH,
    DROPPED,
    INPUT_QUEUE,
    PROCESS_QUEUE,
    PROCESSED,
    TIME_SQUEEZE,
    samples,
)
from plumbline.sources.kernel.softnet import SoftnetCpu, SoftnetUnwrapper
from plumbline.sources.kernel.squeeze import SoftnetReading, Squeezes


def test_samples() -> None:
    reading = (SoftnetCpu(0, 15, 2, 3, 30), SoftnetCpu(7, 1, 0, 0, None))
    assert list(samples(SoftnetReading(reading))) == [
        (PROCESSED, ("0",), 15),
        (DROPPED, ("0",), 2),
        (TIME_SQUEEZE, ("0",), 3),
        (BACKLOG_LENGTH, ("0",), 30),
        (PROCESSED, ("7",), 1),
        (DROPPED, ("7",), 0),
        (TIME_SQUEEZE, ("7",), 0),
    ]


def test_the_queues_of_linux_6_4_and_attributed_squeezes() -> None:
    reading = (SoftnetCpu(3, 15, 2, 3, 30, 10, 20),)
    assert list(samples(SoftnetReading(reading, {3: Squeezes(budget=2, time=0)}))) == [
        (PROCESSED, ("3",), 15),
        (DROPPED, ("3",), 2),
        (TIME_SQUEEZE, ("3",), 3),
        (BACKLOG_LENGTH, ("3",), 30),
        (INPUT_QUEUE, ("3",), 10),
        (PROCESS_QUEUE, ("3",), 20),
        (ATTRIBUTED, ("3", "budget"), 2),
        (ATTRIBUTED, ("3", "time"), 0),
    ]


def processed(unwrapper: SoftnetUnwrapper, *raw: int) -> list[int]:
    readings = ((SoftnetCpu(0, value, 0, 0, 0),) for value in raw)
    return [unwrapper.unwrap(reading)[0].processed for reading in readings]


def test_a_wrap_goes_on_upwards() -> None:
    assert processed(SoftnetUnwrapper(), 4294967290, 4294967295, 0, 5, 4294967295, 1) == [
        4294967290,
        4294967295,
        4294967296,
        4294967301,
        8589934591,
        8589934593,
    ]


def test_every_counter_wraps_by_itself_and_the_backlog_is_no_counter() -> None:
    unwrapper = SoftnetUnwrapper()
    unwrapper.unwrap((SoftnetCpu(0, 10, 4294967295, 20, 900),))
    assert unwrapper.unwrap((SoftnetCpu(0, 11, 3, 19, 2),)) == (SoftnetCpu(0, 11, 4294967299, 4294967315, 2),)


def test_a_cpu_that_was_off_goes_on_where_it_stopped() -> None:
    unwrapper = SoftnetUnwrapper()
    both = (SoftnetCpu(0, 1, 0, 0, 0), SoftnetCpu(1, 4294967290, 0, 0, 0))
    assert unwrapper.unwrap(both) == both
    unwrapper.unwrap(both[:1])
    again = unwrapper.unwrap((both[0], SoftnetCpu(1, 4, 0, 0, 0)))
    assert again[1].processed == 4294967300
