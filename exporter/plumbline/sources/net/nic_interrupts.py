"""The interrupts of each network port, and the CPUs of its NUMA node.

``/sys/class/net/<port>/device`` links to the bus device. That device, or for virtio the PCI function above it, has
``msi_irqs/`` (one entry per vector; Documentation/ABI/testing/sysfs-bus-pci) or, without message-signalled interrupts,
``irq``; and ``numa_node`` (-1: not reported by the firmware).

Ports that share one PCI function (mlx4, cxgb4) share its vectors too. There a vector belongs to the port in its name
(``eth0-rx-3``), or else to all ports; the names are in ``/sys/kernel/irq/N/actions``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.softnet import parse_cpu_list

_LEVELS = 6  # from a port's device up to its PCI function: virtio and auxiliary devices are one or two levels below


@dataclass(frozen=True, slots=True)
class NicInterrupts:
    """One port's interrupt numbers, ascending."""

    device: str
    irqs: tuple[int, ...]
    near_cpus: frozenset[int] | None
    """CPUs of the port's own NUMA node; ``None`` where unknown."""


def names_port(name: str, device: str) -> bool:
    """Whether an interrupt's name belongs to this port: ``eno1-0``, ``eth0-TxRx-3``, ``rx-0-eth0``, not ``eth01-0``."""
    return re.search(rf"(?<![\w.]){re.escape(device)}(?!\w|\.\w)", name) is not None


def read_nic_interrupts(roots: Roots, *, keep: Callable[[str], bool]) -> tuple[NicInterrupts, ...]:
    """Every port that has its own interrupts and that ``keep`` accepts; software links and USB have none."""
    sharing: dict[Path, list[str]] = {}
    for device in sysfs.entries(roots.sys / "class" / "net"):
        function = _function(roots.sys / "class" / "net" / device / "device")
        if function is not None:
            sharing.setdefault(function, []).append(device)
    found = []
    near: dict[int, frozenset[int] | None] = {}
    for function, devices in sharing.items():
        irqs = _vectors(function)
        node = _node(function)
        if node is not None and node not in near:
            near[node] = _cpus_of(roots, node)
        cpus = None if node is None else near[node]
        for device, own in _share(roots, devices, irqs).items():
            if own and keep(device):
                found.append(NicInterrupts(device, own, cpus))
    return tuple(found)


def _function(link: Path) -> Path | None:
    """The nearest device with interrupts, at or above the port's own device."""
    if not link.is_symlink():
        return None
    path = Path(os.path.realpath(link))
    for _ in range(_LEVELS):
        if (path / "msi_irqs").is_dir() or (path / "irq").is_file():
            return path
        path = path.parent
    return None


def _vectors(function: Path) -> tuple[int, ...]:
    vectors = sorted(int(name) for name in sysfs.entries(function / "msi_irqs") if name.isascii() and name.isdigit())
    if vectors:
        return tuple(vectors)
    line = sysfs.read_text(function / "irq")
    # 0 means no interrupt
    return (int(line),) if line and re.fullmatch("[1-9][0-9]{0,8}", line) else ()


def _node(function: Path) -> int | None:
    text = sysfs.read_text(function / "numa_node")
    return int(text) if text and re.fullmatch("[0-9]{1,6}", text) else None  # -1: unknown


def _cpus_of(roots: Roots, node: int) -> frozenset[int] | None:
    path = roots.sys / "devices" / "system" / "node" / f"node{node}" / "cpulist"
    text = sysfs.read_text(path)
    if text is None:  # unreadable, or a memory-only node
        return None
    try:
        return frozenset(parse_cpu_list(text, source=str(path)))
    except ParseError:
        return None


def _share(roots: Roots, devices: list[str], irqs: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
    if len(devices) == 1:
        return {devices[0]: irqs}
    names = {irq: sysfs.read_text(roots.sys / "kernel" / "irq" / str(irq) / "actions") or "" for irq in irqs}
    owners = {irq: [device for device in devices if names_port(names[irq], device)] or devices for irq in irqs}
    return {device: tuple(irq for irq in irqs if device in owners[irq]) for device in devices}
