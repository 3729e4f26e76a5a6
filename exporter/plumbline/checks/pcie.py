"""PCI Express: what the checks need to know of a host, and the checks."""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from plumbline.checks import fixes
from plumbline.checks.growth import Count, Growth
from plumbline.checks.model import Fix, Severity, Verdict, Worded, check
from plumbline.checks.text import counted
from plumbline.core.units import si
from plumbline.core.words import first_few
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.pci.pcidevices import PciFunction, PciReading


class PcieErrors(Struct, frozen=True):
    """Errors reported by one function: a device, or a port with the devices ``below`` it."""

    address: str
    below: tuple[str, ...]
    counts: Mapping[str, Count]  # by severity: correctable, nonfatal, fatal


class PcieFacts(Struct, frozen=True):
    """One host's storage controllers and network cards."""

    devices: tuple[PciFunction, ...] = ()
    errors: tuple[PcieErrors, ...] = ()
    osd_disks: frozenset[str] = frozenset()  # disks that hold OSD data

    def twins(self, device: PciFunction) -> tuple[PciFunction, ...]:
        """The other devices of the same model: only the slot and its settings differ."""
        return tuple(
            other
            for other in self.devices
            if device.name
            and (other.kind, other.name) == (device.kind, device.name)
            and other.address != device.address
        )

    def serves_osd(self, device: PciFunction) -> bool:
        return not self.osd_disks.isdisjoint(device.devices)


def pcie_facts(readings: Readings, growth: Growth) -> PcieFacts:
    osd_disks = frozenset(disk for disk, osds in readings.or_empty(DevicesReading).osds.items() if osds)
    return PcieFacts(readings.or_empty(PciReading).functions, tuple(_errors(readings, growth)), osd_disks)


def _errors(readings: Readings, growth: Growth) -> Iterator[PcieErrors]:
    below: dict[str, list[str]] = defaultdict(list)
    pcie = readings.or_empty(PciReading)
    for function in pcie.functions:
        for address in (function.address, function.upstream):
            below[address].extend(function.devices)
    for address, totals in pcie.aer.items():
        counts = {severity: growth.count("pcie errors", total, address, severity) for severity, total in totals.items()}
        yield PcieErrors(
            address, tuple(below[address]), {severity: count for severity, count in counts.items() if count}
        )


def on(device: PciFunction) -> str:
    """`` (nvme0n1, slot 3)``: what is at the address, for people who do not know addresses by heart."""
    words = [
        *([first_few(device.devices)] if device.devices else []),
        *([f"slot {device.slot}"] if device.slot else []),
    ]
    return f" ({', '.join(words)})" if words else ""


def addresses(devices: tuple[PciFunction, ...]) -> str:
    return first_few(f"{device.address}{on(device)}" for device in devices)


def show(address: str, caution: str) -> Fix:
    """A remedy that no command can be: the command only shows what to look at."""
    return Fix(f"lspci -vv -s {shlex.quote(address)}", caution=f"This only shows. {caution}")


# --- the link: is it as fast and as wide as both of its ends allow?


@check(
    "pcie.link-speed",
    "Run each PCI Express link at the fastest speed that both ends can do.",
    "Storage controllers and network cards that are awake, whose port above is known. A card that lowers its speed "
    "when idle (some do, to save power) is reported in a quiet hour too.",
    "Each step down halves what the link can carry, for all disks or ports behind it.",
    "PCI Express Base 5.0, 4.2.6 (link training) and 7.5.3 (LnkCap, LnkSta); Documentation/ABI/testing/sysfs-bus-pci",
    Severity.WARNING,
    "lspci -vv -s <address>",
)
def speed(facts: PcieFacts) -> Iterator[Verdict]:
    for card in _cards(facts):
        if card.mtps is not None and card.max_mtps is not None:
            actual, expected = f"{si(card.mtps * 1e6, 'T/s')}{on(card)}", si(card.max_mtps * 1e6, "T/s")
            fix = None if card.mtps >= card.max_mtps else _reseat(card)
            yield Verdict(card.address, actual, f"{expected}, the fastest both ends can do", fix)


@check(
    "pcie.link-width",
    "Run each PCI Express link on all lanes that both ends have.",
    "Storage controllers and network cards that are awake, whose port above is known. A card in a slot with fewer "
    "lanes than its own meets this.",
    "A lane that failed in training takes its share of the throughput, for all disks or ports behind the link.",
    "PCI Express Base 5.0, 4.2.6 (link training) and 7.5.3 (LnkCap, LnkSta); Documentation/ABI/testing/sysfs-bus-pci",
    Severity.WARNING,
    "lspci -vv -s <address>",
)
def width(facts: PcieFacts) -> Iterator[Verdict]:
    for card in _cards(facts):
        if card.lanes is not None and card.max_lanes is not None:
            fix = None if card.lanes >= card.max_lanes else _reseat(card)
            expected = f"x{card.max_lanes}, the widest both ends can do"
            yield Verdict(card.address, f"x{card.lanes}{on(card)}", expected, fix)


def _cards(facts: PcieFacts) -> Iterator[PciFunction]:
    """One function of each card, with the devices of all its functions, which share one link."""
    cards: dict[str, list[PciFunction]] = defaultdict(list)
    for device in facts.devices:
        cards[device.address.rpartition(".")[0]].append(device)
    for functions in cards.values():
        functions.sort(key=lambda function: function.address)
        yield replace(functions[0], devices=tuple(name for function in functions for name in function.devices))


def _reseat(card: PciFunction) -> Fix:
    return show(
        card.address,
        "LnkCap is what this end can do, LnkSta its current state. Reseat card, riser or cable, clean the contacts, and"
        f" check the slot's speed and bifurcation in the BIOS setup; the port above is {card.upstream}.",
    )


# --- what delays a device: the path through the chipset, and power saving that makes it wait
#
# The ICN-UNAM report found one of four identical NVMe drives slow in every test, and two things that set it apart.

_POLICY = "/sys/module/pcie_aspm/parameters/policy"
# setpci syntax: in DevCtl2, 0x28 from the start of the PCI Express capability, clear bit 10 and no other
_LTR_OFF = "CAP_EXP+28.w=0000:0400"
_MOVE = Fix(
    "lspci -tv",
    caution="This only shows which ports have nothing below them. Move the drive to a slot that the board's manual"
    " connects to a CPU; until then use it for work that tolerates delays.",
)
_PERFORMANCE = Fix(
    f"echo performance > {_POLICY}",
    fixes.tmpfiles("pcie", (_POLICY, "performance")),
    "This affects every link of the host, and costs power. If it is refused, firmware controls ASPM: switch it off in"
    " the BIOS setup. The kernel's pcie_aspm=off does not help: it leaves ASPM as firmware set it.",
)


@check(
    "pcie.ltr",
    "Keep Latency Tolerance Reporting off for storage, above all where identical drives have it off.",
    "Storage controllers whose configuration space can be read (CAP_SYS_ADMIN). It is a finding where a latency is "
    "tolerated and identical hardware has it off (warning) or an OSD's data is on it (info).",
    "With it a device reports how long it can wait, and the platform may save power for that long before it answers. "
    "In the report the drive that was slow in every test had it on, with 71,680 ns, and an identical one had it off. "
    "The report concludes that this was the cause, but the drive was also behind the chipset, and no test there "
    "separates the two.",
    "ICN-UNAM, page 28 (DevCtl2: LTR+, Max snoop latency); PCI Express Base 5.0, 6.18; setpci(8)",
    Severity.WARNING,
    f"setpci -s <address> {_LTR_OFF}",
)
def latency_tolerance(facts: PcieFacts) -> Iterator[Verdict]:
    for device in facts.devices:
        if device.kind == "nic" or device.ltr_enabled is None:
            continue
        tolerated_ns = max(device.ltr_snoop_ns or 0, device.ltr_no_snoop_ns or 0)
        if not device.ltr_enabled:
            yield Verdict(device.address, f"off{on(device)}", "off")
            continue
        without = tuple(twin for twin in facts.twins(device) if twin.ltr_enabled is False)
        if not tolerated_ns or not (without or facts.serves_osd(device)):
            continue  # the kernel's default where firmware leaves the choice: not known to do harm by itself
        actual = f"on, {tolerated_ns / 1000:,.6g} µs tolerated{on(device)}"
        if without:
            because = f"Identical hardware here has it off: {addresses(without)}."
            yield Verdict(
                device.address, actual, "off, as on identical hardware", _without_ltr(device), because=because
            )
        else:
            yield Verdict(device.address, actual, "off", _without_ltr(device), Severity.INFO)


def _without_ltr(device: PciFunction) -> Worded:
    return fixes.setpci(
        device.address,
        _LTR_OFF,
        "First switch off the power states that need it: echo 0 to link/l1_2_aspm and link/l1_2_pcipm of the device in"
        " sysfs, where these exist. Measure before and after. Some BIOS setups can switch LTR off too.",
    )


@check(
    "pcie.behind-chipset",
    "Put NVMe drives on a CPU's own PCI Express lanes.",
    "NVMe drives whose path to the CPU is known, on hosts with a device on a CPU's own lanes. A warning if that is an "
    "identical drive.",
    "The chipset adds a hop, and everything behind it shares one link to the CPU: SATA, USB, network and this drive. "
    "In the report the drive in the chipset's M.2 slot was the only slow one of four.",
    "ICN-UNAM, pages 27 and 28, and chapter 7 (the PCH induces latency); ports by https://pci-ids.ucw.cz/",
    Severity.WARNING,
    "lspci -tv",
)
def behind_chipset(facts: PcieFacts) -> Iterator[Verdict]:
    on_cpu = any(device.behind_chipset is False for device in facts.devices)
    for device in facts.devices:
        if device.kind != "nvme" or device.behind_chipset is None:
            continue
        expected = "on a CPU's own lanes"
        if not device.behind_chipset:
            yield Verdict(device.address, f"{expected}{on(device)}", expected)
        elif on_cpu:
            twins = tuple(twin for twin in facts.twins(device) if twin.behind_chipset is False)
            because = f"Identical hardware here is on a CPU's own lanes: {addresses(twins)}." if twins else ""
            severity = Severity.WARNING if twins else Severity.INFO
            yield Verdict(device.address, f"behind the chipset{on(device)}", expected, _MOVE, severity, because)


@check(
    "pcie.aspm",
    "Keep the links of storage and network awake (no ASPM).",
    "Storage controllers and network cards that report it.",
    "An idle link is put to sleep, and the first request after a pause waits until it is awake: LnkCap states the exit "
    "latency, up to 64 µs and more for L1.",
    "PCI Express Base 5.0, 5.4 and 7.5.3.6; Documentation/admin-guide/kernel-parameters.txt (pcie_aspm)",
    Severity.INFO,
    f"echo performance > {_POLICY}",
)
def aspm(facts: PcieFacts) -> Iterator[Verdict]:
    for device in facts.devices:
        states = {"L0s": device.aspm_l0s, "L1": device.aspm_l1}
        used = [name for name, enabled in states.items() if enabled]
        if used:
            yield Verdict(device.address, f"{' and '.join(used)}{on(device)}", "off", _PERFORMANCE)
        elif False in states.values():
            yield Verdict(device.address, f"off{on(device)}", "off")


# --- link errors that either end has reported

_LOOK = Fix(
    "journalctl -k -g 'PCIe Bus Error|AER'",
    caution="This only shows which error, and from which end. Reseat or replace card, riser or cable; errors of a port"
    " with several devices below it point to the board.",
)


@check(
    "pcie.aer",
    "Have no new errors on PCI Express links.",
    "Functions that count errors (AER), and the ports above them, once observed for a while. Info where all were "
    "correctable.",
    "After a correctable error the link repeats the transfer and loses time; after any other, data is lost, and the "
    "driver resets the device or gives it up.",
    "PCI Express Base 5.0, 6.2; Documentation/PCI/pcieaer-howto.rst, Documentation/ABI/testing/"
    "sysfs-bus-pci-devices-aer_stats",
    Severity.WARNING,
    _LOOK.now,
)
def aer(facts: PcieFacts) -> Iterator[Verdict]:
    expected = "no new errors"
    for function in facts.errors:
        if all(count.grew is None for count in function.counts.values()):
            continue
        growing = {name: count for name, count in function.counts.items() if count.grows}
        below = f" ({first_few(function.below)})" if function.below else ""
        if not growing:
            yield Verdict(function.address, f"{expected}{below}", expected)
            continue
        actual = "; ".join(counted(count, f"{name} error") for name, count in growing.items())
        severity = Severity.INFO if growing.keys() == {"correctable"} else None
        yield Verdict(function.address, f"{actual}{below}", expected, _LOOK, severity)


CHECKS = (speed, width, latency_tolerance, behind_chipset, aspm, aer)
"""In the order in which to look at a link: speed and width, delays, errors."""
