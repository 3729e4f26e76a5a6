"""PCI Express of storage controllers and network cards as metrics; rates in transfers/s, latencies in seconds."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.core.capabilities import Capability
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.pci.pcidevices import PciReading

_ADDRESS = ("pci_address",)

INFO = gauge(
    "plumbline_pcie_info",
    "A storage controller or network card (device_type nvme, hba, nic). product ends in vendor and device id; upstream"
    " is the port at the other end of its link; physical_slot and numa_node are empty where they are not known.",
    ("pci_address", "device_type", "physical_slot", "driver", "product", "upstream", "numa_node"),
)
DEVICE_INFO = gauge(
    "plumbline_pcie_device_info", "Disk or network interface on the function.", ("pci_address", "device")
)
SPEED = gauge(
    "plumbline_pcie_link_speed_transfers_per_second", "Current link speed per lane: 8e9 is 8 GT/s (Gen3).", _ADDRESS
)
MAX_SPEED = gauge(
    "plumbline_pcie_link_speed_max_transfers_per_second", "Highest speed of both ends, per lane.", _ADDRESS
)
LANES = gauge("plumbline_pcie_link_lanes", "Lanes of the link in use.", _ADDRESS)
MAX_LANES = gauge("plumbline_pcie_link_lanes_max", "Most lanes that device and port above support.", _ADDRESS)
AER_ERRORS = counter(
    "plumbline_pcie_aer_errors_total",
    "Errors reported by the function, by aer_severity (correctable, nonfatal, fatal). Ports have series too: a"
    " receiver reports what the sender damaged.",
    ("pci_address", "aer_severity"),
)
ASPM = gauge(
    "plumbline_pcie_aspm_enabled", "1: the idle link may enter this state (l0s, l1).", ("pci_address", "state")
)
LTR = gauge("plumbline_pcie_ltr_enabled", "1: the device reports its latency tolerance. Needs CAP_SYS_ADMIN.", _ADDRESS)
LTR_LATENCY = gauge(
    "plumbline_pcie_ltr_latency_max_seconds",
    "Highest latency the device reports as tolerable, for requests that snoop caches and for those that do not.",
    ("pci_address", "snoop"),
)
BEHIND_CHIPSET = gauge(
    "plumbline_pcie_behind_chipset", "1: behind the chipset (PCH), 0: on CPU lanes; absent if unknown.", _ADDRESS
)

_TRANSFERS_PER_MEGATRANSFER = 1_000_000
_NS_PER_S = 1_000_000_000


def samples(reading: PciReading) -> Iterator[Sample]:
    for function in reading.functions:
        labels = (function.address,)
        node = "" if function.numa_node is None else str(function.numa_node)
        place = (function.slot, function.driver, function.name, function.upstream, node)
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
            (LTR, function.ltr_enabled),
            (BEHIND_CHIPSET, function.behind_chipset),
        )
        for state, enabled in (("l0s", function.aspm_l0s), ("l1", function.aspm_l1)):
            if enabled is not None:
                yield ASPM, (function.address, state), int(enabled)
        for snoop, latency_ns in (("yes", function.ltr_snoop_ns), ("no", function.ltr_no_snoop_ns)):
            if latency_ns is not None:
                yield LTR_LATENCY, (function.address, snoop), latency_ns / _NS_PER_S
    for address, errors in reading.aer.items():
        for severity, count in errors.items():
            yield AER_ERRORS, (address, severity), count


def _read(host: Host, skip: SkipHook) -> PciReading:
    reading = host.parts.storage.pcie.value
    for address, reason in reading.skipped:
        skip(address, reason)
    return reading


COLLECTOR = Collector(
    "pcie",
    declared(globals()),
    _read,
    samples,
    skip_reasons=("malformed",),
    origin="`/sys/bus/pci/devices`; LTR from the configuration space",
    sized_by=("PCI Express device",),
    capabilities=frozenset({Capability.SYS_ADMIN}),
)
