"""The interrupts of each network port, and how evenly they are spread over the CPUs between two readings.

``/sys/class/net/<port>/device`` links to the bus device. That device, or for virtio the PCI function above it, has
``msi_irqs/`` (one entry per vector; Documentation/ABI/testing/sysfs-bus-pci) or, without message-signalled interrupts,
``irq``; and ``numa_node`` (-1: not reported by the firmware).

Ports that share one PCI function (mlx4, cxgb4) share its vectors too. There a vector belongs to the port in its name
(``eth0-rx-3``), or else to all ports; the names are in ``/sys/kernel/irq/N/actions``.

Totals since boot are useless: a port that irqbalance spread out an hour ago looks uneven for a year. So the counters
are read every few seconds outside the scrape, and only the difference counts.
"""

import os
import re
from collections.abc import Callable, Mapping
from operator import add, sub
from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.interrupts import Counts, InterruptReading, read_interrupts
from plumbline.sources.kernel.softnet import parse_cpu_list

_LEVELS = 6  # from a port's device up to its PCI function: virtio and auxiliary devices are one or two levels below
FLOOR_PER_S = 100.0  # Below this rate, in interrupts per second, no balance is computed: idle does not mean unbalanced
INTERVAL_S = 10.0  # Closer readings (after a stall, say) are not compared: irqbalance itself runs every 10 s
STALE_S = 120.0
_WRAP = 1 << 32
_ONE_READING = "interrupts have not been read twice yet"


class NicInterrupts(Struct, frozen=True):
    """One port's interrupt numbers, ascending."""

    device: str
    irqs: tuple[int, ...]
    near_cpus: frozenset[int] | None  # CPUs of the port's own NUMA node; None where unknown


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
    readings = []
    for function, devices in sharing.items():
        cpus = _near_cpus(roots, function)
        for device, own in _share(roots, devices, _vectors(function)).items():
            if own and keep(device):
                readings.append(NicInterrupts(device, own, cpus))
    return tuple(readings)


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


def _near_cpus(roots: Roots, function: Path) -> frozenset[int] | None:
    node = sysfs.read_text(function / "numa_node")
    if node is None or not re.fullmatch("[0-9]{1,6}", node):  # -1: unknown
        return None
    try:
        path = roots.sys / "devices" / "system" / "node" / f"node{int(node)}" / "cpulist"
        cpus = sysfs.read_parsed(path, parse_cpu_list)  # None: unreadable, or a memory-only node
    except ParseError:
        return None
    return None if cpus is None else frozenset(cpus)


def _share(roots: Roots, devices: list[str], irqs: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
    if len(devices) == 1:
        return {devices[0]: irqs}
    names = {irq: sysfs.read_text(roots.sys / "kernel" / "irq" / str(irq) / "actions") or "" for irq in irqs}
    owners = {irq: [device for device in devices if names_port(names[irq], device)] or devices for irq in irqs}
    return {device: tuple(irq for irq in irqs if device in owners[irq]) for device in devices}


class IrqBalance(Struct, frozen=True):
    """One port in one interval."""

    device: str
    per_second: float  # Interrupts per second, of all its vectors
    active_vectors: int  # Vectors with at least one interrupt. A single vector can't be spread.
    share_max: float  # The busiest CPU's share of all interrupts, 0 to 1
    effective_cpus: float  # Inverse Simpson index, 1 / Σ share²: as many CPUs with an even load have the same
    numa_remote: float | None  # Share on CPUs of other NUMA nodes than the port's; None if its own is unknown


class IrqBalances(tuple[IrqBalance, ...]):
    """Of the ports that were busy in the last interval."""


def balance(
    port: NicInterrupts, before: InterruptReading, after: InterruptReading, *, seconds: float
) -> IrqBalance | None:
    """One port's balance in the interval; ``None`` when it was idle or no vector is in both readings. Left out is a
    vector whose counter decreased: it was released and requested again."""
    if before.cpus != after.cpus or seconds <= 0:
        return None
    total = [0] * len(after.cpus)
    active = 0
    for irq in port.irqs:
        was, now = before.counts.get(irq), after.counts.get(irq)
        if was is None or now is None or was == now:
            continue
        grown = _difference(was, now)
        if grown is not None:
            active += 1
            total = list(map(add, total, grown))
    every = sum(total)
    if not every or every < FLOOR_PER_S * seconds:
        return None
    remote = None
    if port.near_cpus is not None:
        remote = sum(count for cpu, count in zip(after.cpus, total, strict=True) if cpu not in port.near_cpus) / every
    return IrqBalance(
        port.device,
        every / seconds,
        active,
        max(total) / every,
        every * every / sum(count * count for count in total),
        remote,
    )


def _difference(was: Counts, now: Counts) -> Counts | None:
    grown = list(map(sub, now, was))
    if min(grown) >= 0:
        return grown
    wrapped = [count % _WRAP for count in grown]
    # no vector has a billion interrupts between two readings: that was a restart at 0, not a wrap at 2³²
    return wrapped if max(wrapped) < 1 << 30 else None


class IrqBalanceReader:
    """Computes the balance of the last two readings. One thread refreshes, another may read :attr:`latest`."""

    def __init__(
        self, *, roots: Roots, clock: Callable[[], float], keep: Callable[[str], bool] = lambda _device: True
    ) -> None:
        """``clock`` gives monotonic seconds; ``keep`` decides which ports are reported."""
        self._roots, self._clock, self._keep = roots, clock, keep
        self._before: tuple[float, InterruptReading] | None = None
        self._latest: tuple[float, IrqBalances] | PlumblineError = Unavailable(_ONE_READING)

    def refresh(self) -> None:
        """Read, compare with the previous reading, and keep the result (or the error, which :attr:`latest` raises)."""
        try:
            self._latest = self._look()
        except PlumblineError as error:
            self._before, self._latest = None, error

    @property
    def latest(self) -> IrqBalances:
        """Ports that were busy in the last interval. ``Unavailable`` before the first interval or when it is old."""
        latest = self._latest
        if isinstance(latest, PlumblineError):
            raise latest.with_traceback(None)  # raised once per scrape: it must not accumulate tracebacks
        at, balances = latest
        if self._clock() - at > STALE_S:
            raise Unavailable("interrupts were last read too long ago")
        return balances

    def _look(self) -> tuple[float, IrqBalances] | PlumblineError:
        if self._before and self._clock() - self._before[0] < INTERVAL_S:
            return self._latest
        ports = read_nic_interrupts(self._roots, keep=self._keep)
        if not ports:
            raise Unavailable("no network port has interrupts of its own")
        now, reading = self._clock(), read_interrupts(self._roots, {irq for port in ports for irq in port.irqs})
        before, self._before = self._before, (now, reading)
        if before is None:
            return Unavailable(_ONE_READING)
        results = (balance(port, before[1], reading, seconds=now - before[0]) for port in ports)
        return now, IrqBalances(result for result in results if result is not None)
