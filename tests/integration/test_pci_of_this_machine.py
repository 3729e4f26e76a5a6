"""Configuration space as pciutils reads it: this machine's functions, and many that were made up."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.core.roots import Roots
from plumbline.sources.pci import pci
from plumbline.sources.pci.pciconfig import PciConfig, parse_config
from plumbline.sources.pci.pcidevices import read_pci
from support.lspci import parse_lspci
from support.pcispace import Express, hexdump, space
from support.programs import need

HERE = Roots.under(Path("/"))
FUNCTIONS = Path("/sys/bus/pci/devices")
pytestmark = pytest.mark.skipif(not FUNCTIONS.is_dir(), reason="no PCI here")


def lspci(*arguments: str) -> str:
    command = [need("lspci"), "-vvv", "-D", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}).stdout


def comparable(config: PciConfig) -> PciConfig:
    """Without what lspci does not say."""
    linked = config.max_mtps is not None
    return replace(
        config,
        missing="",
        slot=None,
        express=config.express or None,
        aer=config.aer or None,
        aspm_l0s=config.aspm_l0s if linked else None,
        aspm_l1=config.aspm_l1 if linked else None,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="configuration space beyond 64 bytes needs root")
def test_every_function_here_is_what_lspci_says() -> None:
    said = parse_lspci(lspci())
    assert said
    for address, (_, config) in said.items():
        path = FUNCTIONS / address / "config"
        assert comparable(parse_config(path.read_bytes(), source=str(path))) == comparable(config), address


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_sees_64_bytes_and_is_told_why() -> None:
    path = min(FUNCTIONS.iterdir()) / "config"
    command = [need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "cat", str(path)]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    assert "CAP_SYS_ADMIN" in parse_config(data, source=str(path)).missing


def test_storage_and_network_here_are_those_of_lspci() -> None:
    text = subprocess.run([need("lspci"), "-n", "-D"], capture_output=True, text=True, check=True).stdout
    said = {row.split()[0]: int(row.split()[1].rstrip(":"), 16) for row in text.splitlines()}
    expected = {
        address: pci.kind_of(class_)
        for address, class_ in said.items()
        if pci.kind_of(class_) and not (FUNCTIONS / address / "physfn").exists()
    }
    if not expected:
        pytest.skip("neither storage nor network on PCI here")
    assert {each.address: each.kind for each in read_pci(HERE).functions} == expected


def some_express(chance: random.Random) -> Express:
    return Express(
        type=chance.choice((0, 1, 4, 5, 6)),
        version=chance.choice((1, 2)),
        max_speed=chance.randint(1, 5),
        max_lanes=chance.choice((1, 2, 4, 8, 16, 32)),
        speed=chance.randint(1, 5),
        lanes=chance.choice((0, 1, 2, 4, 8, 16)),
        aspm=chance.randint(0, 3),
        ltr_supported=chance.random() < 0.7,
        ltr=chance.random() < 0.5,
    )


def test_four_hundred_functions_that_were_made_up(tmp_path: Path) -> None:
    """No machine of the project has PCI Express: lspci reads dumps as well."""
    chance = random.Random(4)
    spaces = {}
    for number in range(400):
        express = some_express(chance) if chance.random() < 0.9 else None
        bridge = express is not None and express.type in (4, 5, 6)
        latencies = (
            (chance.randrange(6 << 10), chance.randrange(6 << 10)) if express and chance.random() < 0.6 else None
        )
        spaces[f"0000:{number // 32:02x}:{number % 32:02x}.0"] = space(
            express,
            class_=0x060400 if bridge else 0x010802,
            aer=express is not None and chance.random() < 0.5,
            latencies=latencies,
            size=4096 if express else 256,
        )
    dump = tmp_path / "dump"
    dump.write_text(hexdump(spaces))

    said = parse_lspci(lspci("-F", str(dump)))

    assert said.keys() == spaces.keys()
    for address, data in spaces.items():
        assert comparable(parse_config(data, source=address)) == comparable(said[address][1]), address
    assert sum(config.ltr_snoop_ns is not None for _, config in said.values()) > 100


def test_the_fix_for_ltr_clears_that_bit_and_no_other(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.write_text(hexdump({"0000:01:00.0": space(Express(ltr=True))}))
    command = [need("setpci"), "-A", "dump", "-O", f"dump.name={dump}", "-v", "-D", "-s", "0000:01:00.0"]
    done = subprocess.run([*command, "CAP_EXP+28.w=0000:0400"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0000:01:00.0 (cap 10 @70) @98 0400->(0000:0400)->0000"
