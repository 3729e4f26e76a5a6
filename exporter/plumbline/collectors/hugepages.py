"""When the kernel gives memory in transparent huge pages, as a metric."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge
from plumbline.sources.kernel.hugepages import HugePages

INFO = gauge(
    "plumbline_hugepages_info",
    "Who gets transparent huge pages (enabled), and who waits for memory to be moved for them (defrag); always 1.",
    ("enabled", "defrag"),
)


def samples(reading: HugePages) -> Iterator[Sample]:
    yield INFO, (reading.enabled, reading.defrag), 1


COLLECTOR: Collector[Host, HugePages] = Collector(
    "hugepages",
    declared(globals()),
    lambda host, _skip: host.parts.kernel.hugepages.value,
    samples,
    origin="`/sys/kernel/mm/transparent_hugepage`",
    sized_by=("node: CPU power and huge pages",),
)
