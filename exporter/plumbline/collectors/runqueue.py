"""How long tasks waited for each CPU, as a metric."""

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import counter, declared
from plumbline.sources.kernel.schedstat import RunQueueReading, read_schedstat

WAITED = counter(
    "plumbline_cpu_run_queue_wait_seconds_total",
    "Time that tasks waited in the CPU's run queue, over all tasks: the rate is how many wait.",
    ("cpu",),
)

COLLECTOR: Collector[Host, RunQueueReading] = Collector(
    "runqueue",
    declared(globals()),
    lambda host, _skip: read_schedstat(host.parts.roots),
    lambda queues: ((WAITED, (str(queue.cpu),), queue.waited_ns / 1e9) for queue in queues),
    origin="`/proc/schedstat`",
    sized_by=("CPU",),
)
