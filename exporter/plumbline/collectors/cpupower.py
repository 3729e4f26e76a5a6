"""How the CPUs save power, as metrics. Each line is one of the host: with 2 CPUs as many as with 256."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, counter, declared, gauge
from plumbline.sources.kernel.cpupower import CpuPower

GOVERNOR = gauge("plumbline_cpu_governor_cpus", "CPUs with this frequency governor.", ("driver", "governor"))
ALLOWED = gauge("plumbline_cpu_idle_allowed_cpus", "CPUs on which this idle state is not disabled.", ("idle_state",))
EXIT_LATENCY = gauge(
    "plumbline_cpu_idle_exit_latency_seconds",
    "Time until a CPU runs again after this idle state, by the kernel's table: the longest of any CPU.",
    ("idle_state",),
)
ENTRIES = counter(
    "plumbline_cpu_idle_entries_total",
    "Times that any CPU entered this idle state. None is entered while a program such as tuned holds a latency limit.",
    ("idle_state",),
)
_US = 1e6


def samples(reading: CpuPower) -> Iterator[Sample]:
    for (driver, governor), cpus in reading.governors.items():
        yield GOVERNOR, (driver, governor), cpus
    for state in reading.states:
        yield ALLOWED, (state.name,), state.allowed_cpus
        yield EXIT_LATENCY, (state.name,), state.exit_latency_us / _US
        yield ENTRIES, (state.name,), state.entries


COLLECTOR: Collector[Host, CpuPower] = Collector(
    "cpupower",
    declared(globals()),
    lambda host, _skip: host.parts.kernel.power.value,
    samples,
    origin="`cpufreq` and `cpuidle` of each CPU in `/sys/devices/system/cpu`",
    sized_by=("node: CPU power and huge pages",),
)
