"""Which interrupts belong to which port."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.net.nic_interrupts import NicInterrupts, names_port, read_nic_interrupts


class Host:
    """A sysfs with buses and ports, links and all."""

    def __init__(self, root: Path) -> None:
        self.roots = Roots.under(root)
        (self.roots.sys / "class" / "net").mkdir(parents=True)

    def function(self, address: str, *, vectors: tuple[int, ...] = (), irq: str = "0", node: str = "-1") -> Path:
        path = self.roots.sys / "devices" / "pci0000:00" / address
        path.mkdir(parents=True)
        if vectors:
            (path / "msi_irqs").mkdir()
            for vector in vectors:
                (path / "msi_irqs" / str(vector)).write_text("msix\n")
        (path / "irq").write_text(f"{irq}\n")
        (path / "numa_node").write_text(f"{node}\n")
        return path

    def port(self, name: str, parent: Path | None) -> None:
        base = parent / "net" if parent else self.roots.sys / "devices" / "virtual" / "net"
        (base / name).mkdir(parents=True)
        if parent:
            (base / name / "device").symlink_to(Path("..") / "..")
        (self.roots.sys / "class" / "net" / name).symlink_to(base / name)

    def node(self, number: int, cpulist: str) -> None:
        path = self.roots.sys / "devices" / "system" / "node" / f"node{number}"
        path.mkdir(parents=True)
        (path / "cpulist").write_text(cpulist)

    def action(self, irq: int, name: str) -> None:
        path = self.roots.sys / "kernel" / "irq" / str(irq)
        path.mkdir(parents=True)
        (path / "actions").write_text(name + "\n")

    def read(self) -> tuple[NicInterrupts, ...]:
        return read_nic_interrupts(self.roots, keep=lambda _: True)


def test_a_port_of_its_own_pci_function(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.node(1, "4-5,12\n")
    host.port("eth0", host.function("0000:81:00.0", vectors=(130, 99, 131), irq="99", node="1"))
    host.port("lo", None)
    assert host.read() == (NicInterrupts("eth0", (99, 130, 131), frozenset({4, 5, 12})),)


def test_virtio_ports_have_those_of_the_function_above(tmp_path: Path) -> None:
    host = Host(tmp_path)
    function = host.function("0000:00:03.0", vectors=(37, 38, 39))
    (function / "virtio2").mkdir()
    host.port("eth0", function / "virtio2")
    assert host.read() == (NicInterrupts("eth0", (37, 38, 39), None),)


def test_without_message_signalled_interrupts(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.port("eth0", host.function("0000:00:03.0", irq="11"))
    host.port("eth1", host.function("0000:00:04.0", irq="0"))
    assert host.read() == (NicInterrupts("eth0", (11,), None),)


def test_ports_that_share_a_function(tmp_path: Path) -> None:
    host = Host(tmp_path)
    function = host.function("0000:03:00.0", vectors=(50, 51, 52, 53))
    host.port("eth0", function)
    host.port("eth01", function)
    host.action(50, "mlx4-async@pci:0000:03:00.0")
    host.action(51, "eth0-rx-0")
    host.action(52, "eth01-rx-0")
    assert host.read() == (
        NicInterrupts("eth0", (50, 51, 53), None),
        NicInterrupts("eth01", (50, 52, 53), None),
    )


@pytest.mark.parametrize("cpulist", ["\n", "broken\n"])
def test_a_node_without_known_cpus(tmp_path: Path, cpulist: str) -> None:
    host = Host(tmp_path)
    host.node(1, cpulist)
    host.port("eth0", host.function("0000:81:00.0", vectors=(9,), node="1"))
    assert host.read() == (NicInterrupts("eth0", (9,), None),)


def test_ports_that_are_not_wanted(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.port("eth0", host.function("0000:81:00.0", vectors=(9,)))
    assert read_nic_interrupts(host.roots, keep=lambda name: name != "eth0") == ()


def test_a_host_without_sysfs(tmp_path: Path) -> None:
    assert read_nic_interrupts(Roots.under(tmp_path), keep=lambda _: True) == ()


@pytest.mark.parametrize(
    "name", ["PCI-MSI 5767168-edge eno1-0", "eno1", "eno1-TxRx-3", "i40e-eno1-TxRx-0", "rx-0:eno1"]
)
def test_names_of_the_port(name: str) -> None:
    assert names_port(name, "eno1")


@pytest.mark.parametrize("name", ["eno12-0", "eno2-0", "peno1-0", "eno1.5-0", "mlx5_comp3@pci:0000:03:00.0", ""])
def test_names_of_others(name: str) -> None:
    assert not names_port(name, "eno1")
