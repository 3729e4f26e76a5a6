"""Softnet counters as metrics, unwrapped to 64 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from plumbline.catalogue import Sample, counter, declared, gauge
from plumbline.collection import Collector, SkipHook
from plumbline.collectors.host import Host
from plumbline.sources.softnet import SoftnetCpu, SoftnetReading, read_softnet
from plumbline.sources.squeeze import Squeezes

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

_WRAP = 1 << 32


def samples(reading: SoftnetReading, squeezes: Mapping[int, Squeezes]) -> Iterator[Sample]:
    """Six samples a CPU, four before Linux 6.4, three before 5.10; and two where its squeezes are attributed."""
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


class SoftnetUnwrapper:
    """Continues the kernel's 32-bit counters beyond 2³².

    At a million packets a second on one CPU ``processed`` wraps every 71 minutes; Prometheus takes a wrap for a
    restart and loses what lay between the last scrape and 2³². These counters are never reset while the kernel
    runs (a CPU keeps its own through hotplug), so a smaller value is one wrap. More than one wrap
    between two scrapes can't be told. Starts at the kernel's value: the counter is the same for every reader.
    """

    def __init__(self) -> None:
        self._last: dict[int, SoftnetCpu] = {}

    def unwrap(self, reading: SoftnetReading) -> SoftnetReading:
        """The same reading with counters that only grow."""
        cpus = tuple(self._continue(cpu) for cpu in reading.cpus)
        self._last.update((cpu.cpu, cpu) for cpu in cpus)
        return SoftnetReading(cpus)

    def _continue(self, now: SoftnetCpu) -> SoftnetCpu:
        last = self._last.get(now.cpu)
        if last is None:
            return now
        return replace(
            now,
            processed=_grow(last.processed, now.processed),
            dropped=_grow(last.dropped, now.dropped),
            time_squeeze=_grow(last.time_squeeze, now.time_squeeze),
        )


def _grow(total: int, raw: int) -> int:
    """``total`` advanced to the next number whose low 32 bits are ``raw``."""
    return total + (raw - total) % _WRAP


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
