"""PCI Express of storage controllers and network cards as metrics; rates in transfers/s, latencies in seconds."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.core.capabilities import Capability
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.pci.pcidevices import PciFunction, PciReading

_ADDRESS = ("address",)

INFO = gauge(
    "plumbline_pcie_info",
    "A storage controller or network card (kind nvme, hba, nic). name ends in vendor and device id; upstream is the"
    " port at the other end of its link, slot the physical one where firmware names it.",
    ("address", "kind", "slot", "driver", "name", "upstream"),
)
DEVICE_INFO = gauge("plumbline_pcie_device_info", "Disk or network interface on the function.", ("address", "device"))
SPEED = gauge(
    "plumbline_pcie_link_transfers_per_second",
    "Speed of the link as it runs, per lane: 8e9 is what is called 8 GT/s or Gen3.",
    _ADDRESS,
)
MAX_SPEED = gauge(
    "plumbline_pcie_link_max_transfers_per_second",
    "The fastest that both the device and the port above can do, per lane.",
    _ADDRESS,
)
LANES = gauge("plumbline_pcie_link_lanes", "Lanes of the link in use.", _ADDRESS)
MAX_LANES = gauge(
    "plumbline_pcie_link_max_lanes", "The most lanes that both the device and the port above have.", _ADDRESS
)
NUMA_NODE = gauge("plumbline_pcie_numa_node", "The NUMA node the function is attached to.", _ADDRESS)
AER_ERRORS = counter(
    "plumbline_pcie_aer_errors_total",
    "Errors that the function itself reported, by severity (correctable, nonfatal, fatal). The ports above have series"
    " too: what a device sends broken is noticed at the other end.",
    ("address", "severity"),
)
ASPM = gauge(
    "plumbline_pcie_aspm_enabled",
    "Whether the device may put the link into this power state (l0s, l1) when idle.",
    ("address", "state"),
)
LTR = gauge(
    "plumbline_pcie_ltr_enabled",
    "Latency Tolerance Reporting: whether the device tells the platform how long it can wait. Reading it needs"
    " CAP_SYS_ADMIN.",
    _ADDRESS,
)
LTR_LATENCY = gauge(
    "plumbline_pcie_ltr_max_latency_seconds",
    "The most latency the device is to report as tolerable, for requests that snoop caches and for those that do not.",
    ("address", "snoop"),
)
BEHIND_CHIPSET = gauge(
    "plumbline_pcie_behind_chipset",
    "1: reached through the chipset (PCH), 0: on the CPU's own lanes. Absent where the ports above are not known.",
    _ADDRESS,
)
SPECS = declared(globals())

_TRANSFERS_PER_MEGATRANSFER = 1_000_000
_NS_PER_S = 1_000_000_000


def samples(reading: PciReading) -> Iterator[Sample]:
    """About 18 samples per function."""
    for function in reading.functions:
        yield from _function_samples(function)
    for address, errors in reading.aer.items():
        for severity, count in errors.items():
            yield AER_ERRORS, (address, severity), count


def _function_samples(function: PciFunction) -> Iterator[Sample]:
    labels = (function.address,)
    place = (function.slot, function.driver, function.name, function.upstream)
    yield INFO, (function.address, function.kind, *place), 1
    for device in function.devices:
        yield DEVICE_INFO, (function.address, device), 1
    for spec, mtps in ((SPEED, function.mtps), (MAX_SPEED, function.max_mtps)):
        if mtps is not None:
            yield spec, labels, mtps * _TRANSFERS_PER_MEGATRANSFER
    yield from known(
        labels,
        (LANES, function.lanes),
        (MAX_LANES, function.max_lanes),
        (NUMA_NODE, function.numa_node),
        (LTR, function.ltr_enabled),
        (BEHIND_CHIPSET, function.behind_chipset),
    )
    for state, enabled in (("l0s", function.aspm_l0s), ("l1", function.aspm_l1)):
        if enabled is not None:
            yield ASPM, (function.address, state), int(enabled)
    for snoop, latency_ns in (("yes", function.ltr_snoop_ns), ("no", function.ltr_no_snoop_ns)):
        if latency_ns is not None:
            yield LTR_LATENCY, (function.address, snoop), latency_ns / _NS_PER_S


def _read(host: Host, skip: SkipHook) -> PciReading:
    reading = host.parts.storage.pcie.value
    for address, reason in reading.skipped:
        skip(address, reason)
    return reading


COLLECTOR = Collector(
    "pcie",
    SPECS,
    _read,
    samples,
    skip_reasons=("malformed",),
    origin="`/sys/bus/pci/devices`; LTR from the configuration space",
    sized_by=("PCI Express device",),
    capabilities=frozenset({Capability.SYS_ADMIN}),
)
