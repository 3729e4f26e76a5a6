"""``plumbline check`` on this machine, whatever it is, against what the kernel and other programs say of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.daemon import run

pytestmark = pytest.mark.timeout(120)

LEAST = {
    "network.rmem-max": (4194304,),
    "network.wmem-max": (4194304,),
    "network.tcp-sack": (1,),
    "network.tcp-window-scaling": (1,),
    "network.tcp-timestamps": (1,),
}
"""Check → what its setting must be at least: chapter 5 of the thesis."""


def sysctl(name: str) -> tuple[int, ...]:
    return tuple(map(int, Path("/proc/sys", *name.split(".")).read_text().split()))


def softnet(column: int) -> int:
    """The sum of a column (from 1) over all CPUs."""
    rows = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(row.split()[column - 1], 16) for row in rows)


def ethtool(flag: str, device: str) -> str:
    if shutil.which("ethtool") is None:
        pytest.skip("needs ethtool, to have a second opinion")
    return subprocess.run(["ethtool", flag, device], capture_output=True, text=True, check=True).stdout


def rx_ring(device: str) -> tuple[int, int]:
    """Entries now, entries at most."""
    most, now = map(int, re.findall(r"^RX:\s+(\d+)", ethtool("-g", device), re.MULTILINE))
    return now, most


def off(features: str, device: str) -> bool:
    said = ethtool("-k", device)
    return all(re.search(rf"^\s*{re.escape(name)}: off", said, re.MULTILINE) for name in features.split(", "))


def has_hardware(device: str) -> bool:
    """On a bus, and not one that a hypervisor makes up."""
    path = Path("/sys/class/net", device, "device", "driver")
    return path.exists() and path.resolve().name not in {"virtio_net", "vmxnet3", "hv_netvsc", "netfront", "vif", "ena"}


OF_PCI = ("lspci ", "setpci ", "journalctl ")

ADVICE: dict[str, Callable[[str], bool]] = {
    # advice that is not met → whether it is right for this subject, judged from elsewhere; which counters grew is over
    "network.netdev-max-backlog": lambda _: softnet(2) > 0,
    "network.netdev-budget": lambda _: softnet(3) > 0,
    "network.netdev-budget-usecs": lambda _: softnet(3) > 0,
    "network.tcp-rmem": lambda name: sysctl(name)[2] < 33554432,
    "network.tcp-wmem": lambda name: sysctl(name)[2] < 4194304 or sysctl(name)[0] < 4096,
    "network.ring-below-maximum": lambda device: has_hardware(device) and rx_ring(device)[0] < rx_ring(device)[1],
    "network.pause-off": lambda device: (
        has_hardware(device) and bool(re.search(r"[RT]X:\s+off", ethtool("-a", device)))
    ),
    "network.coalescing-off": lambda device: has_hardware(device) and "rx-usecs:\t0" in ethtool("-c", device),
    "network.link-below-capability": has_hardware,
    "network.half-duplex": lambda device: Path("/sys/class/net", device, "duplex").read_text() == "half\n",
    "network.irqs-on-one-cpu": lambda device: Path("/sys/class/net", device, "device", "msi_irqs").is_dir(),
}


@pytest.fixture(scope="module")
def findings() -> list[dict[str, Any]]:
    done = run("check", "--json", "--wait", "1s")
    assert done.stderr == "", "everything could be judged"
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert found
    return found


def test_settings_are_what_the_kernel_has(findings: list[dict[str, Any]]) -> None:
    settings = [each for each in findings if re.match(r"net\.(core|ipv4)\.", each["subject"])]
    assert {each["subject"] for each in settings} >= {"net.core.rmem_max", "net.ipv4.tcp_rmem", "net.ipv4.tcp_sack"}
    for each in settings:
        shown = re.match(r"\d{1,3}(?:,\d{3})+|\d+(?: \d+)*", each["is"])
        assert shown, each
        assert tuple(map(int, shown[0].replace(",", "").split())) == sysctl(each["subject"]), each


def test_met_is_met_and_not_met_is_not(findings: list[dict[str, Any]]) -> None:
    judged = {each["check"]: each for each in findings}
    for check, least in LEAST.items():
        each = judged[check]
        assert each["met"] == (sysctl(each["subject"]) >= least), each


def test_every_advice_is_right_for_its_subject(findings: list[dict[str, Any]]) -> None:
    for each in findings:
        if not each["met"] and each["check"] not in LEAST:
            check, subject = each["check"], each["subject"]
            if check == "network.offloads-off":
                assert has_hardware(subject), each
                named = re.fullmatch(r"off: (.+)", each["is"])
                assert named is None or off(named[1], subject), each
            elif check in ADVICE:
                assert ADVICE[check](subject), each
            elif check.startswith("disk."):
                disk = Path("/sys/block", subject.replace("/", "!")).resolve()
                assert not {"virtual", "virtio"} & {re.sub(r"\d+$", "", part) for part in disk.parts}, each
            elif check.startswith("pcie."):
                assert Path("/sys/bus/pci/devices", subject).exists(), each
            else:  # about bonds, jumbo frames and InfiniBand: there must be such a thing
                assert check.startswith(("network.bond-", "network.mtu-", "infiniband.")), each
                assert Path("/sys/class/net", subject).exists() or Path("/sys/class/infiniband").is_dir(), each


def test_a_command_raises_what_is_there_and_never_lowers_it(findings: list[dict[str, Any]]) -> None:
    for each in findings:
        now = each["fix"]["now"] if not each["met"] else ""
        asked = re.fullmatch(r'sysctl -w (\S+)="?([\d ]+)"?', now)
        if asked:
            wanted = tuple(map(int, asked[2].split()))
            before = sysctl(asked[1])
            assert len(wanted) == len(before), each
            assert wanted != before, each
            assert all(new >= old for new, old in zip(wanted, before, strict=True)), each
        elif now:
            assert now.startswith(
                ("ethtool ", "ip ", "apt-get install -y irqbalance", "ibstat ", "echo ", "cat ", *OF_PCI)
            ), each
