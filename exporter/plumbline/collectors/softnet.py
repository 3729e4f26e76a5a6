"""Softnet counters as metrics."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.kernel.softnet import read_softnet
from plumbline.sources.kernel.squeeze import SoftnetReading

PROCESSED = counter(
    "plumbline_softnet_packets_processed_total",
    "Frames passed to the protocols; again at each VLAN, bond or bridge.",
    ("cpu",),
)
DROPPED = counter(
    "plumbline_softnet_packets_dropped_total", "Packets dropped at net.core.netdev_max_backlog.", ("cpu",)
)
TIME_SQUEEZE = counter(
    "plumbline_softnet_time_squeezes_total", "Times polling stopped at netdev_budget or netdev_budget_usecs.", ("cpu",)
)
BACKLOG_LENGTH = gauge("plumbline_softnet_backlog_length", "Packets in this CPU's backlog (Linux 5.10+).", ("cpu",))
INPUT_QUEUE = gauge("plumbline_softnet_input_queue_length", "Backlog packets not taken over (Linux 6.4+).", ("cpu",))
PROCESS_QUEUE = gauge("plumbline_softnet_process_queue_length", "Backlog packets in processing (Linux 6.4+).", ("cpu",))
ATTRIBUTED = counter(
    "plumbline_softnet_time_squeezes_attributed_total",
    "Time squeezes since the exporter's start, by the limit that ended them, as inferred from packets and"
    " softirq time.",
    ("cpu", "limit"),
)
SOFTIRQS = counter("plumbline_softnet_softirqs_total", "Network softirqs handled, on all CPUs.", ("direction",))
KSOFTIRQD = counter(
    "plumbline_softnet_ksoftirqd_seconds_total",
    "CPU time of ksoftirqd, which handles softirqs of all kinds that did not end in time. Absent in a container.",
    ("cpu",),
)


def samples(reading: SoftnetReading) -> Iterator[Sample]:
    for cpu in reading.cpus:
        yield from known(
            (str(cpu.cpu),),
            (PROCESSED, cpu.processed),
            (DROPPED, cpu.dropped),
            (TIME_SQUEEZE, cpu.time_squeeze),
            (BACKLOG_LENGTH, cpu.backlog_length),
            (INPUT_QUEUE, cpu.input_queue_length),
            (PROCESS_QUEUE, cpu.process_queue_length),
        )
    for direction in ("receive", "transmit") if reading.softirqs else ():
        yield SOFTIRQS, (direction,), sum(cpu.counts.get(direction, 0) for cpu in reading.softirqs.values())
    for number, softirqs in reading.softirqs.items():
        yield from known((str(number),), (KSOFTIRQD, softirqs.ksoftirqd_s))
    for number, squeezes in reading.squeezes.items():
        yield ATTRIBUTED, (str(number), "budget"), squeezes.budget
        yield ATTRIBUTED, (str(number), "time"), squeezes.time


def _read(host: Host, _skip: SkipHook) -> SoftnetReading:
    parts = host.parts
    kernel = parts.kernel
    return SoftnetReading(
        parts.softnet.unwrap(read_softnet(parts.roots)), kernel.squeezes.latest, kernel.softirqs.latest
    )


COLLECTOR = Collector(
    "softnet",
    declared(globals()),
    _read,
    samples,
    origin="`/proc/net/softnet_stat`, `/proc/stat`, `/proc/softirqs`",
    sized_by=("CPU",),
)
