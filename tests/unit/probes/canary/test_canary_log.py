"""What the log says of a canary."""

from __future__ import annotations

import pytest

from plumbline.probes.run.reading import CanaryLog, CanaryReading, CanaryState


def reading(reason: str, *, success: bool | None = False) -> CanaryReading:
    return CanaryReading(
        probe="objects/osd.3", device_class="ssd", state=CanaryState.RUNNING, reason=reason, message=f"why {reason}",
        workloads=(), in_flight_s=0.0, rate_per_s=1.0, runs=1, skips={}, success=success,
    )  # fmt: skip


def said(caplog: pytest.LogCaptureFixture, *readings: CanaryReading) -> list[str]:
    caplog.set_level("INFO")
    log = CanaryLog()
    for each in readings:
        log.look(each)
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def test_a_day_of_hanging_and_failing_in_turns_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    turns = [reading("stuck"), reading("errors")] * 1440
    assert said(caplog, reading("", success=True), *turns, reading("", success=True)) == [
        "WARNING canary objects/osd.3: stuck: why stuck",
        "WARNING canary objects/osd.3: errors: why errors",
        "INFO canary objects/osd.3: works again",
    ]


def test_the_next_time_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    well = reading("", success=True)
    assert (
        said(caplog, reading("stuck"), well, well, reading("stuck"), well)
        == [
            "WARNING canary objects/osd.3: stuck: why stuck",
            "INFO canary objects/osd.3: works again",
        ]
        * 2
    )


def test_nothing_while_nobody_knows(caplog: pytest.LogCaptureFixture) -> None:
    unknown = reading("", success=None)
    assert said(caplog, unknown, reading("preparing"), reading("", success=False), reading("", success=True)) == []
    assert len(said(caplog, reading("stuck"), reading("preparing"), unknown, reading("stuck"))) == 1
