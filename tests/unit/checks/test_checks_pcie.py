"""The PCI Express checks: when they speak, what they say, and the case they were made for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.checks.growth import Count
from plumbline.checks.model import Finding, Severity, judge
from plumbline.checks.pcie import CHECKS, PcieErrors, PcieFacts
from plumbline.checks.run import Judge
from plumbline.core.roots import Roots
from plumbline.metrics.snapshot import Readings
from plumbline.sources.pci.pcidevices import PciFunction, PciReading, read_pci
from support.lspci import parse_lspci

FIXTURES = Path(__file__).parents[2] / "fixtures"
REPORT = FIXTURES / "icn-unam-nvme"
DRIVE = PciFunction(
    address="0000:18:00.0",
    kind="nvme",
    name="Samsung [144d:a808]",
    slot="3",
    upstream="0000:16:02.0",
    devices=("nvme1n1",),
    mtps=8_000,
    max_mtps=8_000,
    lanes=4,
    max_lanes=4,
    aspm_l0s=False,
    aspm_l1=False,
    ltr_enabled=False,
    ltr_snoop_ns=0,
    ltr_no_snoop_ns=0,
    behind_chipset=False,
)
TWIN = replace(
    DRIVE,
    address="0000:02:00.0",
    slot="",
    upstream="0000:00:1c.0",
    devices=("nvme0n1",),
    ltr_enabled=True,
    ltr_snoop_ns=71_680,
    ltr_no_snoop_ns=71_680,
    behind_chipset=True,
)
OTHER = replace(TWIN, name="Intel [8086:0a54]")
QUIET = PcieErrors(
    "0000:18:00.0", ("nvme1n1",), {"correctable": Count(3, 0), "nonfatal": Count(0, 0), "fatal": Count(0, 0)}
)


def of(
    check: str, *devices: PciFunction, errors: PcieErrors | None = None, osd_disks: frozenset[str] = frozenset()
) -> dict[str, Finding]:
    facts = PcieFacts(devices, (errors,) if errors else (), osd_disks)
    return {each.subject: each for each in judge(CHECKS, facts) if each.check == check}


def look(reading: PciReading) -> tuple[Finding, ...]:
    """From the reading to findings, as in the daemon."""
    return Judge().look(Readings.of(reading), 1.0)


def report() -> PciReading:
    """The drives of the report, with what it prints or says of each, and nothing else."""
    printed = parse_lspci((REPORT / "lspci.txt").read_text())
    drives = re.findall(r"pci@([0-9a-f:.]+) .* controller (nvme\w+) ", (REPORT / "lshw.txt").read_text())
    functions = []
    for address, disk in drives:
        name, config = printed.get(address, ("", None))
        functions.append(
            PciFunction(
                address=address,
                kind="nvme",
                name=name,
                devices=(disk,),
                ltr_enabled=config.ltr_enabled if config else None,
                ltr_snoop_ns=config.ltr_snoop_ns if config else None,
                ltr_no_snoop_ns=config.ltr_no_snoop_ns if config else None,
                behind_chipset=disk == "nvme0n1",  # in words, see ORIGIN.md
            )
        )
    return PciReading(tuple(functions), {})


def test_the_reports_drives_as_printed() -> None:
    drives = report().functions
    name = "Kingston Technology Company, Inc. Device 2262"
    assert [(each.address, each.devices, each.name, each.ltr_enabled, each.ltr_snoop_ns) for each in drives] == [
        ("0000:01:00.0", ("nvme0n1",), name, True, 71_680),
        ("0000:5f:00.0", ("nvme1n1",), name, False, 0),
        ("0000:b0:00.0", ("nvme3n1",), "", None, None),
        ("0000:d8:00.0", ("nvme4n1",), "", None, None),
    ]


def test_the_report_s_verdict_exactly_one_drive_is_slow_and_for_both_reasons() -> None:
    found = look(report())
    slow = [each for each in found if not each.met]
    assert [(each.check, each.subject, each.severity) for each in slow] == [
        ("pcie.behind-chipset", "0000:01:00.0", Severity.WARNING),
        ("pcie.ltr", "0000:01:00.0", Severity.WARNING),
    ]
    assert [each.actual for each in slow] == ["behind the chipset (nvme0n1)", "on, 71.68 µs tolerated (nvme0n1)"]
    assert all("dentical hardware" in each.why and "0000:5f:00.0 (nvme1n1)" in each.why for each in slow)
    assert [(each.check, each.subject) for each in found if each.met] == [
        ("pcie.behind-chipset", "0000:5f:00.0"),
        ("pcie.behind-chipset", "0000:b0:00.0"),
        ("pcie.behind-chipset", "0000:d8:00.0"),
        ("pcie.ltr", "0000:5f:00.0"),
    ]


def test_the_made_up_server() -> None:
    found = look(read_pci(Roots.under(FIXTURES / "pcie-storage-node")))
    assert [(each.check, each.subject, each.actual) for each in found if not each.met] == [
        ("pcie.behind-chipset", "0000:02:00.0", "behind the chipset (nvme0n1)"),
        ("pcie.link-width", "0000:af:00.0", "x4 (ens3f0np0, ens3f1np1, slot 5)"),
        ("pcie.ltr", "0000:02:00.0", "on, 71.68 µs tolerated (nvme0n1)"),
        ("pcie.aspm", "0000:02:00.0", "L1 (nvme0n1)"),
    ]


def test_a_virtual_machine_hears_nothing() -> None:
    assert look(read_pci(Roots.under(FIXTURES / "pcie-virtio-vm"))) == ()


def test_how_ltr_is_switched_off_and_stays_off() -> None:
    found = of("pcie.ltr", DRIVE, TWIN)[TWIN.address]
    assert found.fix is not None
    assert found.fix.now == "setpci -s 0000:02:00.0 CAP_EXP+28.w=0000:0400"
    assert found.fix.keep is not None
    assert found.fix.keep.file == "/etc/udev/rules.d/90-storage-pcie.rules"
    assert found.fix.keep.content == (
        'ACTION=="add", SUBSYSTEM=="pci", KERNEL=="0000:02:00.0", '
        'RUN+="/usr/bin/setpci -s $kernel CAP_EXP+28.w=0000:0400"'
    )
    assert "The report concludes" in found.why


@pytest.mark.parametrize(
    ("devices", "severity"),
    [
        ((TWIN, DRIVE), Severity.WARNING),
        ((TWIN,), None),  # on, as the kernel likes it: no reason to speak
        ((OTHER, DRIVE), None),  # another make proves nothing
        ((replace(TWIN, ltr_snoop_ns=0, ltr_no_snoop_ns=0), DRIVE), None),
        ((replace(TWIN, ltr_snoop_ns=None, ltr_no_snoop_ns=None), DRIVE), None),
        ((TWIN, replace(DRIVE, ltr_enabled=None)), None),
        ((replace(TWIN, ltr_snoop_ns=None), DRIVE), Severity.WARNING),
        ((replace(TWIN, kind="nic"), replace(DRIVE, kind="nic")), None),
        ((replace(TWIN, name=""), replace(DRIVE, name="")), None),
    ],
)
def test_when_ltr_is_worth_a_word(devices: tuple[PciFunction, ...], severity: Severity | None) -> None:
    found = of("pcie.ltr", *devices).get(TWIN.address)
    assert (found.severity if found else None) == severity
    assert found is None or not found.met


@pytest.mark.parametrize(
    ("devices", "severity"),
    [
        ((TWIN, DRIVE), Severity.WARNING),
        ((OTHER, DRIVE), Severity.INFO),
        ((TWIN,), None),  # nothing here is known to be on a CPU's lanes
        ((replace(TWIN, kind="hba"), DRIVE), None),
        ((replace(TWIN, behind_chipset=None), DRIVE), None),
    ],
)
def test_when_the_chipset_is_worth_a_word(devices: tuple[PciFunction, ...], severity: Severity | None) -> None:
    found = of("pcie.behind-chipset", *devices).get(TWIN.address)
    assert (found.severity if found else None) == severity


def test_ltr_on_an_osds_drive_is_worth_a_word_by_itself() -> None:
    found = of("pcie.ltr", TWIN, osd_disks=frozenset({"nvme0n1"}))[TWIN.address]
    assert (found.met, found.severity) == (False, Severity.INFO)


def test_a_narrow_and_slow_link() -> None:
    bad = replace(DRIVE, lanes=2, mtps=2_500)
    (slow,) = of("pcie.link-speed", bad).values()
    (narrow,) = of("pcie.link-width", bad).values()
    assert (slow.actual, slow.expected) == ("2.5 GT/s (nvme1n1, slot 3)", "8 GT/s, the fastest both ends can do")
    assert (narrow.actual, narrow.expected) == ("x2 (nvme1n1, slot 3)", "x4, the widest both ends can do")
    for each in (slow, narrow):
        assert each.severity == Severity.WARNING
        assert each.fix is not None
        assert each.fix.now == "lspci -vv -s 0000:18:00.0"
        assert "0000:16:02.0" in each.fix.caution


def test_the_ports_of_a_card_have_one_link() -> None:
    first, second = (
        replace(DRIVE, kind="nic", address=f"0000:af:00.{port}", devices=(f"ens3f{port}",), lanes=2) for port in (0, 1)
    )
    (narrow,) = of("pcie.link-width", second, first).values()
    assert (narrow.subject, narrow.actual) == ("0000:af:00.0", "x2 (ens3f0, ens3f1, slot 3)")


@pytest.mark.parametrize("field", ["lanes", "max_lanes", "mtps", "max_mtps"])
def test_a_link_known_in_part_is_not_judged(field: str) -> None:
    check = "pcie.link-width" if "lanes" in field else "pcie.link-speed"
    assert of(check, replace(DRIVE, **{field: None})) == {}


@pytest.mark.parametrize(
    ("l0s", "l1", "actual"),
    [(False, True, "L1"), (True, True, "L0s and L1"), (None, True, "L1"), (False, False, "off"), (None, False, "off")],
)
def test_aspm(l0s: bool | None, l1: bool, actual: str) -> None:
    (found,) = of("pcie.aspm", replace(DRIVE, aspm_l0s=l0s, aspm_l1=l1, devices=(), slot="")).values()
    assert (found.actual, found.met, found.severity) == (actual, actual == "off", Severity.INFO)


@pytest.mark.parametrize(
    ("changes", "actual", "severity"),
    [
        ({"correctable": Count(9, 6)}, "9 correctable errors since boot, 6 of them recently (nvme1n1)", Severity.INFO),
        ({"nonfatal": Count(1, 1)}, "1 nonfatal error since boot, 1 of them recently (nvme1n1)", Severity.WARNING),
        (
            {"correctable": Count(9, 6), "fatal": Count(2, 2)},
            "9 correctable errors since boot, 6 of them recently;"
            " 2 fatal errors since boot, 2 of them recently (nvme1n1)",
            Severity.WARNING,
        ),
    ],
)
def test_errors_that_grow(changes: dict[str, Count], actual: str, severity: Severity) -> None:
    (found,) = of("pcie.aer", errors=replace(QUIET, counts={**QUIET.counts, **changes})).values()
    assert (found.met, found.actual, found.severity) == (False, actual, severity)


def test_old_errors_are_no_reason_and_one_look_knows_nothing() -> None:
    (found,) = of("pcie.aer", errors=QUIET).values()
    assert found.met
    assert of("pcie.aer", errors=PcieErrors("0000:18:00.0", (), {"correctable": Count(3), "nonfatal": Count(1)})) == {}


BAD = PcieFacts(
    (DRIVE, replace(TWIN, lanes=2, mtps=5_000, aspm_l1=True)),
    (replace(QUIET, counts={"nonfatal": Count(2, 1)}),),
)


def test_every_check_can_find_something_and_gives_a_command_of_its_kind() -> None:
    commands = {check.id: check.fix.split()[0] for check in CHECKS}
    bad = [each for each in judge(CHECKS, BAD) if not each.met]
    assert {each.check for each in bad} == set(commands)
    for each in bad:
        assert each.fix is not None
        assert each.fix.now.split()[0] == commands[each.check]


def test_a_sound_host_has_nothing_to_mend() -> None:
    found = judge(CHECKS, PcieFacts((DRIVE,), (QUIET,)))
    assert {each.check for each in found} == {check.id for check in CHECKS}
    assert all(each.met for each in found)


def test_a_host_that_tells_nothing_gets_no_advice() -> None:
    assert judge(CHECKS, PcieFacts()) == ()
    assert judge(CHECKS, PcieFacts((PciFunction("0000:00:03.0", "nic", "[1af4:1041]", devices=("eth0",)),))) == ()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_says_all_it_has_to(check) -> None:
    assert re.fullmatch(r"pcie\.[a-z]+(-[a-z]+)*", check.id)
    for text in (check.advice, check.applies, check.why):
        assert text.endswith(".")
    assert re.search(r"ICN-UNAM|PCI Express Base 5\.0", check.source)
    assert check.fix
