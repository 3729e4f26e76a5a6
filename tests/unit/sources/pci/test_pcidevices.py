"""Storage controllers and network cards from sysfs trees."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.pci import pci
from plumbline.sources.pci.pci import Bridge, behind_chipset
from plumbline.sources.pci.pcidevices import PciFunction, read_pci
from support.pcispace import Express, add_function, link_files, space

FIXTURES = Path(__file__).parents[3] / "fixtures"
NODE = Roots.under(FIXTURES / "pcie-storage-node")
FUNCTIONS = {each.address: each for each in read_pci(NODE).functions}
SAMSUNG = "Samsung Electronics Co Ltd NVMe SSD Controller SM981/PM981/PM983 [144d:a808]"


def test_who_is_there() -> None:
    assert [(each.address, each.kind, each.driver, each.devices) for each in FUNCTIONS.values()] == [
        ("0000:00:17.0", "hba", "ahci", ("sda",)),
        ("0000:02:00.0", "nvme", "nvme", ("nvme0n1",)),
        ("0000:17:00.0", "hba", "mpt3sas", ("sdb", "sdc", "sdd", "sde", "sdf", "sdg")),
        ("0000:18:00.0", "nvme", "nvme", ("nvme1n1",)),
        ("0000:19:00.0", "nvme", "nvme", ()),
        ("0000:af:00.0", "nic", "mlx5_core", ("ens3f0np0",)),
        ("0000:af:00.1", "nic", "mlx5_core", ("ens3f1np1",)),
        ("0000:b0:00.0", "nic", "i40e", ("ens4f0",)),
        ("0000:d7:05.5", "hba", "vmd", ()),
        ("10000:01:00.0", "nvme", "nvme", ("nvme2n1",)),
    ]  # without the graphics card and the virtual function


def test_a_drive_whole() -> None:
    assert FUNCTIONS["0000:02:00.0"] == PciFunction(
        address="0000:02:00.0",
        kind="nvme",
        name=SAMSUNG,
        driver="nvme",
        slot="",
        upstream="0000:00:1c.0",
        devices=("nvme0n1",),
        numa_node=0,
        mtps=8_000,
        max_mtps=8_000,
        lanes=4,
        max_lanes=4,
        aspm_l0s=False,
        aspm_l1=True,
        ltr_enabled=True,
        ltr_snoop_ns=71_680,
        ltr_no_snoop_ns=71_680,
        behind_chipset=True,
        missing="",
    )


def test_its_equal_on_a_cpu() -> None:
    other = FUNCTIONS["0000:18:00.0"]
    assert (other.name, other.ltr_enabled, other.ltr_snoop_ns) == (SAMSUNG, False, 0)
    assert other.behind_chipset is False
    assert other.slot == "3", "by the port's own register"


def test_the_most_is_what_both_ends_can_do() -> None:
    links = {address: (each.lanes, each.max_lanes) for address, each in FUNCTIONS.items() if each.kind == "nic"}
    assert links == {
        "0000:af:00.0": (4, 8),
        "0000:af:00.1": (4, 8),
        "0000:b0:00.0": (4, 4),  # a card for 8 in a slot with 4
    }
    assert [FUNCTIONS[each].slot for each in ("0000:17:00.0", "0000:af:00.1", "0000:b0:00.0")] == ["2", "5", "6-1"]


@pytest.mark.parametrize(
    ("port", "cpu"),
    [
        (0x1B36, ""),  # QEMU's own root port
        (0x15AD, ""),  # VMware's
        (0x8086, "flags\t\t: fpu hypervisor sse\n"),  # QEMU can emulate Intel's, too: ioh3420
    ],
)
def test_a_guest_does_not_see_the_slot_of_a_card(tmp_path: Path, port: int, cpu: str) -> None:
    devices = tmp_path / "sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0"
    devices.mkdir(parents=True)
    links = {
        devices.parent: ("0x060400", f"0x{port:04x}", "16.0 GT/s PCIe", "32"),
        devices: ("0x010802", "0x144d", "8.0 GT/s PCIe", "4"),
    }
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    for path, (kind, vendor, speed, lanes) in links.items():
        texts = {
            "class": kind,
            "vendor": vendor,
            "device": "0x3420",
            "current_link_speed": speed,
            "current_link_width": lanes,
        }
        for name, text in (texts | {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "32"}).items():
            (path / name).write_text(text + "\n")
        (tmp_path / "sys/bus/pci/devices" / path.name).symlink_to(f"../../../{path.relative_to(tmp_path / 'sys')}")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(cpu)
    (function,) = read_pci(Roots.under(tmp_path)).functions
    assert (function.mtps, function.lanes) == (8000, 4), "the real link of the card"
    assert (function.max_mtps, function.max_lanes, function.behind_chipset) == (None, None, None)


def test_a_drive_that_has_gone_tells_nothing_of_its_link() -> None:
    gone = FUNCTIONS["0000:19:00.0"]
    assert (gone.mtps, gone.max_mtps, gone.lanes, gone.max_lanes) == (None, None, None, None)
    assert (gone.aspm_l1, gone.ltr_enabled, gone.missing) == (None, None, "")


def test_a_sleeping_drive_is_not_read() -> None:
    """Its files would be malformed."""
    asleep = FUNCTIONS["10000:01:00.0"]
    assert (asleep.missing, asleep.lanes, asleep.ltr_enabled) == ("asleep", None, None)
    assert (asleep.behind_chipset, asleep.upstream) == (False, "10000:00:02.0")


def test_errors_of_both_ends() -> None:
    aer = read_pci(NODE).aer
    assert aer["0000:17:00.0"] == {"correctable": 12, "nonfatal": 0, "fatal": 0}
    assert aer["0000:16:00.0"] == {"correctable": 3, "nonfatal": 0, "fatal": 0}
    assert aer["0000:b0:00.0"] == {"correctable": 0, "nonfatal": 1, "fatal": 0}
    assert "0000:00:17.0" not in aer


def test_a_virtual_machine_tells_a_name_and_nothing_of_a_link() -> None:
    reading = read_pci(Roots.under(FIXTURES / "pcie-virtio-vm"))
    assert reading.functions == (
        PciFunction("0000:00:03.0", "nic", "[1af4:1041]", driver="virtio-pci", devices=("eth0",)),
    )
    assert reading.aer == {}


def tree(root: Path, express: Express, *, config: bytes | None = None, port: Express | None = None) -> Roots:
    """One drive, below a port of a Xeon where ``port`` is given."""
    path = "pci0000:00/0000:01:00.0"
    if port:
        path = "pci0000:00/0000:00:02.0/0000:01:00.0"
        bridge = space(port, vendor=0x8086, device=0x2030, class_=0x060400)
        add_function(root / "sys", path.rpartition("/")[0], config=bridge, files=link_files(port))
    add_function(root / "sys", path, config=space(express), files=link_files(express))
    if config is not None:
        (root / "sys/devices" / path / "config").write_bytes(config)
    return Roots.under(root)


def test_without_privilege_the_rest_is_there(tmp_path: Path) -> None:
    express = Express(ltr=True)
    roots = tree(tmp_path, express, config=space(express)[:64], port=Express(type=4))
    link = tmp_path / "sys/bus/pci/devices/0000:01:00.0/link"
    link.mkdir()
    (link / "l1_aspm").write_text("1\n")
    (drive,) = read_pci(roots).functions
    assert (drive.lanes, drive.max_lanes, drive.behind_chipset) == (4, 4, False)
    assert (drive.ltr_enabled, drive.aspm_l0s, drive.aspm_l1) == (None, None, True)
    assert "CAP_SYS_ADMIN" in drive.missing


def test_a_card_without_a_port_above_has_no_maximum(tmp_path: Path) -> None:
    (drive,) = read_pci(tree(tmp_path, Express(max_lanes=16))).functions
    assert (drive.lanes, drive.max_lanes, drive.mtps, drive.max_mtps, drive.behind_chipset) == (
        4,
        None,
        8000,
        None,
        None,
    )


def test_what_is_between_a_port_and_a_drive_is_no_link(tmp_path: Path) -> None:
    """A drive right at the bus that a VMD endpoint, no bridge, makes up."""
    roots = tree(tmp_path, Express(), port=Express(type=4))
    vmd = "pci0000:00/0000:00:02.0/0000:02:05.5"
    add_function(tmp_path / "sys", vmd, config=space(Express(), class_=0x010400))
    add_function(tmp_path / "sys", f"{vmd}/pci10000:00/10000:00:01.0", config=space(Express()))
    found = {each.address: (each.upstream, each.behind_chipset) for each in read_pci(roots).functions}
    assert found == {
        "0000:01:00.0": ("0000:00:02.0", False),
        "0000:02:05.5": ("0000:00:02.0", False),
        "10000:00:01.0": ("", False),
    }


@pytest.mark.parametrize(("name", "text"), [("class", "nvme"), ("current_link_speed", "fast"), ("numa_node", "-2")])
def test_one_malformed_function_does_not_hide_the_others(name: str, text: str, tmp_path: Path) -> None:
    roots = tree(tmp_path, Express(), port=Express(type=4))
    add_function(tmp_path / "sys", "pci0000:00/0000:00:1f.0", config=space(Express()), files={name: text})
    reading = read_pci(roots)
    assert [each.address for each in reading.functions] == ["0000:01:00.0"]
    assert reading.skipped == (("0000:00:1f.0", "malformed"),)


def test_a_looping_list_is_malformed_and_read_once(tmp_path: Path) -> None:
    loop = bytearray(space(Express(), aer=True))
    loop[0x103] = 0x10  # next: 0x100
    reading = read_pci(tree(tmp_path, Express(), config=bytes(loop)))
    assert reading.skipped == (("0000:01:00.0", "malformed"),)


def test_registers_that_nobody_needs_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a round trip to the device."""
    express = Express()
    roots = tree(tmp_path, express, config=space(express, aer=True, latencies=(1, 1)))
    read: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, count, at: read.append(count) or pread(file, count, at))
    (drive,) = read_pci(roots).functions
    assert drive.ltr_snoop_ns == 1
    assert sum(read) == 256 + 8 + 8


def test_a_host_without_pci(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no storage controller and no network card on PCI"):
        read_pci(Roots.under(tmp_path))


def test_a_function_that_vanishes_is_not_there(tmp_path: Path) -> None:
    roots = tree(tmp_path, Express())
    shutil.rmtree(tmp_path / "sys/devices")
    with pytest.raises(Unavailable):
        read_pci(roots)


@pytest.mark.parametrize(
    ("text", "mtps"),
    [
        ("2.5 GT/s PCIe", 2_500),
        ("8.0 GT/s PCIe", 8_000),
        ("8 GT/s", 8_000),
        ("64.0 GT/s PCIe", 64_000),
        ("Unknown", None),
        ("Unknown speed", None),
    ],
)
def test_speeds(text: str, mtps: int | None) -> None:
    assert pci.parse_speed(text, source="speed") == mtps


def test_malformed_values() -> None:
    with pytest.raises(ParseError, match=r"s: not a link speed: '8 GB/s'"):
        pci.parse_speed("8 GB/s", source="s")
    with pytest.raises(ParseError, match=r"w: not a number: 'x4'"):
        pci.parse_lanes("x4", source="w")
    with pytest.raises(ParseError, match=r"c: not a PCI id of 6 digits: '0108'"):
        pci.parse_class("0108", source="c")


ABI = """\
Receiver Error 2
Bad TLP 0
Bad DLLP 0
RELAY_NUM Rollover 0
Replay Timer Timeout 0
Advisory Non-Fatal 0
TOTAL_ERR_COR 2
"""


def test_errors_as_the_kernels_documentation_prints_them() -> None:
    assert pci.parse_aer(ABI, source="aer", total="TOTAL_ERR_COR") == 2
    with pytest.raises(ParseError, match="aer: no line TOTAL_ERR_FATAL"):
        pci.parse_aer(ABI, source="aer", total="TOTAL_ERR_FATAL")
    with pytest.raises(ParseError, match=r"aer:1: not a number: '-1'"):
        pci.parse_aer("TOTAL_ERR_COR -1", source="aer", total="TOTAL_ERR_COR")


@pytest.mark.parametrize(
    ("bridges", "behind"),
    [
        ((), None),
        ((Bridge(0x1234, 0x1111),), None),
        ((Bridge(0x8086, 0xA190),), True),
        ((Bridge(0x8086, 0x2032),), False),
        ((Bridge(0x8086, 0x2030), Bridge(0x10B5, 0x8747, "PEX 8747 PCI Express Switch")), False),
        ((Bridge(0x8086, 0x7AB0, "Intel Corporation Alder Lake-S PCH PCI Express Root Port"),), True),
        ((Bridge(0x1022, 0x1483), Bridge(0x1022, 0x57AD), Bridge(0x1022, 0x57A3)), True),  # X570
        ((Bridge(0x1022, 0x1483),), False),
        ((Bridge(0x8086, 0x1D10, "Intel Corporation C600/X79 series chipset PCI Express Root Port 1"),), True),
    ],
)
def test_whose_port_it_is(bridges: tuple[Bridge, ...], behind: bool | None) -> None:
    assert behind_chipset(bridges) is behind
