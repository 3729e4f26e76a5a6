"""Pressure stall information as metrics, in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, known
from plumbline.sources.kernel.pressure import Pressure, read_pressure

WAITING = counter(
    "plumbline_pressure_waiting_seconds_total",
    "Time in which at least one task waited for this resource (the line some of /proc/pressure).",
    ("resource",),
)
STALLED = counter(
    "plumbline_pressure_stalled_seconds_total",
    "Time in which all tasks with work waited for this resource at once (the line full of /proc/pressure).",
    ("resource",),
)
SPECS = declared(globals())
_US = 1e6


def samples(pressures: Sequence[Pressure]) -> Iterator[Sample]:
    """Two samples per resource; one where the kernel has only one line."""
    for each in pressures:
        yield from known((each.resource,), (WAITING, _seconds(each.some_us)), (STALLED, _seconds(each.full_us)))


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / _US


def _read(host: Host, _skip: SkipHook) -> tuple[Pressure, ...]:
    return read_pressure(host.parts.roots)


COLLECTOR = Collector("pressure", SPECS, _read, samples, origin="`/proc/pressure`", sized_by=("node: pressure",))
