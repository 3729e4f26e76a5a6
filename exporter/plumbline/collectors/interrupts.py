"""The balance of network ports' interrupts, as metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import MetricSpec, Sample, declared, gauge
from plumbline.sources.kernel.irqbalance import IrqBalance


def _gauge(name: str, text: str) -> MetricSpec:
    return gauge(f"plumbline_nic_irq_{name}", text, ("device",))


SHARE_MAX = _gauge("share_max_ratio", "The busiest CPU's share of the port's interrupts in the last interval.")
EFFECTIVE_CPUS = _gauge(
    "effective_cpus", "On how many CPUs the port's interrupts fell in the last interval, as the inverse Simpson index."
)
NUMA_REMOTE = _gauge(
    "numa_remote_ratio", "Share of the port's interrupts on CPUs of another NUMA node in the last interval."
)
ACTIVE_VECTORS = _gauge(
    "active_vectors", "Interrupt vectors of the port that struck in the last interval; one alone can't be spread."
)
SPECS = declared(globals())


def samples(balances: Iterable[IrqBalance]) -> Iterator[Sample]:
    """Four samples per busy port, three where its NUMA node is unknown."""
    for each in balances:
        labels = (each.device,)
        yield SHARE_MAX, labels, each.share_max
        yield EFFECTIVE_CPUS, labels, each.effective_cpus
        if each.numa_remote is not None:
            yield NUMA_REMOTE, labels, each.numa_remote
        yield ACTIVE_VECTORS, labels, each.active_vectors


COLLECTOR: Collector[Host, tuple[IrqBalance, ...]] = Collector(
    "interrupts",
    SPECS,
    lambda host, _skip: host.parts.kernel.interrupts.latest,
    samples,
    origin="`/proc/interrupts`, `/sys/class/net/*/device/msi_irqs`",
    sized_by=("network port",),
)
