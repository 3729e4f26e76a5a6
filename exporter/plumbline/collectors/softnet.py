"""Softnet counters as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge
from plumbline.sources.kernel.softnet import SoftnetReading, read_softnet
from plumbline.sources.kernel.squeeze import Squeezes

PROCESSED = counter(
    "plumbline_softnet_processed_total",
    "Frames this CPU handed to the protocols; one packet counts again at each VLAN, bond or bridge it passes.",
    ("cpu",),
)
DROPPED = counter(
    "plumbline_softnet_dropped_total",
    "Packets dropped because this CPU's backlog was longer than net.core.netdev_max_backlog.",
    ("cpu",),
)
TIME_SQUEEZE = counter(
    "plumbline_softnet_time_squeeze_total",
    "Times this CPU stopped polling because net.core.netdev_budget or netdev_budget_usecs was used up.",
    ("cpu",),
)
BACKLOG_LENGTH = gauge(
    "plumbline_softnet_backlog_length", "Packets waiting in this CPU's backlog now (Linux 5.10 and later).", ("cpu",)
)
INPUT_QUEUE = gauge(
    "plumbline_softnet_input_queue_length",
    "Packets of the backlog that this CPU has not taken over for processing yet (Linux 6.4 and later).",
    ("cpu",),
)
PROCESS_QUEUE = gauge(
    "plumbline_softnet_process_queue_length",
    "Packets of the backlog that this CPU has taken over for processing (Linux 6.4 and later).",
    ("cpu",),
)
ATTRIBUTED = counter(
    "plumbline_softnet_time_squeeze_attributed_total",
    "Time squeezes since the exporter's start, by the limit inferred from packets and softirq time to have struck.",
    ("cpu", "limit"),
)
SPECS = declared(globals())


def samples(reading: SoftnetReading, squeezes: Mapping[int, Squeezes]) -> Iterator[Sample]:
    """Six samples per CPU, four before Linux 6.4, three before 5.10; two more where its squeezes are attributed."""
    for cpu in reading.cpus:
        labels = (str(cpu.cpu),)
        yield PROCESSED, labels, cpu.processed
        yield DROPPED, labels, cpu.dropped
        yield TIME_SQUEEZE, labels, cpu.time_squeeze
        if cpu.backlog_length is not None:
            yield BACKLOG_LENGTH, labels, cpu.backlog_length
        if cpu.input_queue_length is not None:
            yield INPUT_QUEUE, labels, cpu.input_queue_length
        if cpu.process_queue_length is not None:
            yield PROCESS_QUEUE, labels, cpu.process_queue_length
    for number, count in squeezes.items():
        yield ATTRIBUTED, (str(number), "budget"), count.budget
        yield ATTRIBUTED, (str(number), "time"), count.time


def _read(host: Host, _skip: SkipHook) -> tuple[SoftnetReading, Mapping[int, Squeezes]]:
    parts = host.parts
    return parts.softnet.unwrap(read_softnet(parts.roots)), parts.kernel.squeezes.latest


COLLECTOR = Collector(
    "softnet",
    SPECS,
    _read,
    lambda reading: samples(*reading),
    origin="`/proc/net/softnet_stat`, `/proc/stat`",
    sized_by=("CPU",),
)
