"""Pressure stall information as metrics, in seconds."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, counter, declared, known
from plumbline.sources.kernel.pressure import PressureReading, read_pressure

WAITING = counter("plumbline_pressure_waiting_seconds_total", "Time with any task waiting (some).", ("resource",))
STALLED = counter("plumbline_pressure_stalled_seconds_total", "Time with all tasks waiting (full).", ("resource",))
_US = 1e6


def samples(pressures: PressureReading) -> Iterator[Sample]:
    for pressure in pressures:
        yield from known(
            (pressure.resource,), (WAITING, _seconds(pressure.some_us)), (STALLED, _seconds(pressure.full_us))
        )


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / _US


COLLECTOR: Collector[Host, PressureReading] = Collector(
    "pressure",
    declared(globals()),
    lambda host, _skip: read_pressure(host.parts.roots),
    samples,
    origin="`/proc/pressure`",
    sized_by=("node: pressure",),
)
