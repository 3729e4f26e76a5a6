"""The balance of network ports' interrupts, as metrics."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import MetricSpec, Sample, declared, gauge, known
from plumbline.sources.net.nic_interrupts import IrqBalances


def _gauge(name: str, text: str) -> MetricSpec:
    return gauge(f"plumbline_nic_irq_{name}", text, ("device",))


SHARE_MAX = _gauge("share_max_ratio", "The busiest CPU's share of the port's interrupts in the last interval.")
EFFECTIVE_CPUS = _gauge("effective_cpus", "CPUs sharing the interrupts in the last interval (inverse Simpson index).")
NUMA_REMOTE = _gauge("numa_remote_ratio", "Share of interrupts on CPUs of another NUMA node in the last interval.")
ACTIVE_VECTORS = _gauge("active_vectors", "Active interrupt vectors in the last interval; one alone can't be spread.")


def samples(balances: IrqBalances) -> Iterator[Sample]:
    for balance in balances:
        yield from known(
            (balance.device,),
            (SHARE_MAX, balance.share_max),
            (EFFECTIVE_CPUS, balance.effective_cpus),
            (NUMA_REMOTE, balance.numa_remote),
            (ACTIVE_VECTORS, balance.active_vectors),
        )


COLLECTOR: Collector[Host, IrqBalances] = Collector(
    "interrupts",
    declared(globals()),
    lambda host, _skip: host.parts.kernel.interrupts.latest,
    samples,
    origin="`/proc/interrupts`, `/sys/class/net/*/device/msi_irqs`",
    sized_by=("network port",),
)
