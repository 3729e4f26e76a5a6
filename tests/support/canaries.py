"""Canaries in tests: polled as the daemon does, until they are where the test wants them."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from plumbline.probes.canary.canary import Canary
from plumbline.probes.run.reading import CanaryReading


def until(one: Canary, reached: Callable[[CanaryReading], bool], seconds: float = 60.0) -> CanaryReading:
    """The first reading that is as wanted. Polls as the daemon does, only faster."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        one.poll()
        reading = one.read()
        if reached(reading):
            return reading
        time.sleep(0.02)
    raise AssertionError(f"not reached in {seconds} s: {replace(one.read(), workloads=())}")


def healthy(reading: CanaryReading) -> bool:
    """It works, and says so."""
    return reading.success is True
