"""What delays a device: the path through the chipset, and power saving that makes it wait.

The ICN-UNAM report found one of four equal NVMe drives slow in every test, and two things that set it apart.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from plumbline.checks.model import Check, Fix, Keep, Severity, Verdict
from plumbline.checks.pcie.facts import PcieFacts
from plumbline.checks.pcie.words import addresses, on
from plumbline.sources.pci.pcidevices import PciFunction

UDEV_FILE = "/etc/udev/rules.d/90-storage-pcie.rules"
TMPFILES_FILE = "/etc/tmpfiles.d/90-storage-pcie.conf"
_POLICY = "/sys/module/pcie_aspm/parameters/policy"
# setpci syntax: in DevCtl2, 0x28 from the start of the PCI Express capability, clear bit 10 and no other
_LTR_OFF = "CAP_EXP+28.w=0000:0400"


def _ltr(facts: PcieFacts) -> Iterator[Verdict]:
    for device in facts.devices:
        if device.kind == "nic" or device.ltr_enabled is None:
            continue
        tolerated_ns, should = _tolerated_ns(device), "off"
        if not device.ltr_enabled:
            yield Verdict(device.address, f"off{on(device)}", should)
            continue
        without = tuple(each for each in facts.twins(device) if each.ltr_enabled is False)
        if not tolerated_ns or not (without or facts.serves_osd(device)):
            continue  # the kernel's default where firmware leaves the choice: not known to do harm by itself
        is_ = f"on, {_microseconds(tolerated_ns)} tolerated{on(device)}"
        if without:
            because = f"Here equal hardware has it off: {addresses(without)}."
            yield Verdict(device.address, is_, f"{should}, as its equals", _without_ltr(device), because=because)
        else:
            yield Verdict(device.address, is_, should, _without_ltr(device), Severity.INFO)


def _without_ltr(device: PciFunction) -> Fix:
    rule = f'ACTION=="add", SUBSYSTEM=="pci", KERNEL=="{device.address}", RUN+="/usr/bin/setpci -s $kernel {_LTR_OFF}"'
    return Fix(
        f"setpci -s {shlex.quote(device.address)} {_LTR_OFF}",
        Keep(UDEV_FILE, rule),
        "First switch off the power states that need it: echo 0 to link/l1_2_aspm and link/l1_2_pcipm of the device in"
        " sysfs, where these exist. Measure before and after. Some BIOS setups have a switch for LTR as well.",
    )


def _through_chipset(facts: PcieFacts) -> Iterator[Verdict]:
    on_cpu = any(each.behind_chipset is False for each in facts.devices)
    for device in facts.devices:
        if device.kind != "nvme" or device.behind_chipset is None:
            continue
        should = "on a CPU's own lanes"
        if not device.behind_chipset:
            yield Verdict(device.address, f"{should}{on(device)}", should)
        elif on_cpu:
            twins = tuple(each for each in facts.twins(device) if each.behind_chipset is False)
            because = f"Here equal hardware is on a CPU's own lanes: {addresses(twins)}." if twins else ""
            severity = Severity.WARNING if twins else Severity.INFO
            yield Verdict(device.address, f"behind the chipset{on(device)}", should, _MOVE, severity, because)


_MOVE = Fix(
    "lspci -tv",
    caution="This only shows which ports have nothing below them. Move the drive to a slot that the board's manual"
    " draws at a CPU; until then give it work that can wait.",
)


def _aspm(facts: PcieFacts) -> Iterator[Verdict]:
    for device in facts.devices:
        states = {"L0s": device.aspm_l0s, "L1": device.aspm_l1}
        used = [name for name, enabled in states.items() if enabled]
        if used:
            yield Verdict(device.address, f"{' and '.join(used)}{on(device)}", "off", _PERFORMANCE)
        elif False in states.values():
            yield Verdict(device.address, f"off{on(device)}", "off")


_PERFORMANCE = Fix(
    f"echo performance > {_POLICY}",
    Keep(TMPFILES_FILE, f"w {_POLICY} - - - - performance"),
    "This holds for every link of the host, and costs power. Where it is refused, firmware keeps ASPM to itself: switch"
    " it off in the BIOS setup. The kernel's pcie_aspm=off does not: it leaves ASPM as firmware has set it.",
)


def _tolerated_ns(device: PciFunction) -> int:
    """The longest wait that the device may report as tolerable."""
    return max(device.ltr_snoop_ns or 0, device.ltr_no_snoop_ns or 0)


def _microseconds(ns: int) -> str:
    return f"{ns / 1000:,.6g} µs"


LTR = Check(
    "pcie.ltr",
    "Keep Latency Tolerance Reporting off for storage, above all where equal drives have it off.",
    "Storage controllers that tell it (configuration space, which needs CAP_SYS_ADMIN). On is judged where a latency "
    "is tolerated, and equal hardware has it off (warning) or an OSD's data is there (info).",
    "With it a device tells the platform how long it can wait, and the platform may save power that much longer before "
    "it answers. In the report the drive that was slow in every test had it on, with 71,680 ns, and its equal had it "
    "off. That it was the cause is the report's reading: the drive stood behind the chipset as well, and no test "
    "there tells the two apart.",
    "ICN-UNAM, page 28 (DevCtl2: LTR+, Max snoop latency); PCI Express Base 5.0, 6.18; setpci(8)",
    Severity.WARNING,
    _ltr,
    f"setpci -s <address> {_LTR_OFF}",
)
BEHIND_CHIPSET = Check(
    "pcie.behind-chipset",
    "Put NVMe drives on a CPU's own PCI Express lanes.",
    "NVMe drives whose way to the CPU is known, on hosts where something is on a CPU's own lanes. Warning where equal "
    "drives are.",
    "The chipset adds a hop, and everything behind it shares one link to the CPU: SATA, USB, network and this drive. "
    "In the report the one drive in the chipset's M.2 slot was the slow one of four.",
    "ICN-UNAM, pages 27 and 28, and chapter 7 (the PCH induces latency); ports by https://pci-ids.ucw.cz/",
    Severity.WARNING,
    _through_chipset,
    "lspci -tv",
)
ASPM = Check(
    "pcie.aspm",
    "Keep the links of storage and network awake (no ASPM).",
    "Storage controllers and network cards that tell it.",
    "An idle link is put to sleep, and the first request after a pause waits until it is awake: LnkCap names the exit "
    "latency, up to 64 µs and more for L1.",
    "PCI Express Base 5.0, 5.4 and 7.5.3.6; Documentation/admin-guide/kernel-parameters.txt (pcie_aspm)",
    Severity.INFO,
    _aspm,
    f"echo performance > {_POLICY}",
)

CHECKS = (LTR, BEHIND_CHIPSET, ASPM)
