"""Kernel settings as metrics."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge
from plumbline.sources.kernel.sysctl import NUMBERS, SysctlReading

VALUE = gauge(
    "plumbline_sysctl_value", "A setting in the kernel's unit; field: min, default, max.", ("sysctl", "field")
)
INFO = gauge("plumbline_sysctl_info", "A kernel setting that is a word, always 1.", ("sysctl", "value"))


def samples(reading: SysctlReading) -> Iterator[Sample]:
    for name, values in reading.numbers.items():
        for field, value in zip(NUMBERS[name], values, strict=True):
            yield VALUE, (name, field), value
    for name, word in reading.words.items():
        yield INFO, (name, word), 1


COLLECTOR: Collector[Host, SysctlReading] = Collector(
    "sysctl",
    declared(globals()),
    lambda host, _skip: host.parts.kernel.sysctl.value,
    samples,
    origin="`/proc/sys`",
    sized_by=("node: kernel settings",),
)
