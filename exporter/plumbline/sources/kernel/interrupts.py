"""How often each CPU handled each interrupt.

``/sys/kernel/irq/N/per_cpu_count`` (Linux 4.9, CONFIG_SPARSE_IRQ; kernel/irq/irqdesc.c, ``per_cpu_count_show``): one
small file per interrupt, with the possible CPUs in order::
    0,81206

``/proc/interrupts`` (kernel/irq/proc.c, ``show_interrupts``): all interrupts of the machine in one file, with the
online CPUs named in its first line; three megabytes on a large host::

               CPU0       CPU1
     38:          0      81206 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
    NMI:          0          0   Non-maskable interrupts

The first is preferred, because a host's thousand other interrupts cost nothing there. The second is used where the
first is missing, or truncated at its 4,095 bytes (more than 372 CPUs, each interrupted a billion times). The counters
are 32 bits wide and restart at 0 whenever a driver requests the interrupt again.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Annotated

import msgspec

from plumbline.core.jsontext import decoder
from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.softnet import parse_cpu_list

Counts = list[int]  # One interrupt's counters, in the order of :attr:`InterruptReading.cpus`

_decode = decoder(list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]]).decode
_CPU = re.compile(rb"CPU([0-9]{1,6})")
_MAX_DIGITS = 10
_IRQ = re.compile(rb" *([0-9]{1,9}):")


class InterruptReading(msgspec.Struct, frozen=True):
    """Counters by interrupt number; vanished interrupts are missing."""

    cpus: tuple[int, ...]  # The CPU of each counter
    counts: Mapping[int, Counts]


def parse_per_cpu_count(data: bytes, *, source: str) -> Counts:
    """Parse the comma-separated list of one interrupt; :class:`ParseError` for anything else."""
    try:
        # a JSON array without its brackets; msgspec reads 256 numbers in 4 µs, split and int take 26
        counts = _decode(b"[%b]" % data)
    except msgspec.DecodeError:
        counts = []
    if not counts:
        raise ParseError(source, f"{data[:40]!r}, expected 32-bit counters between commas", line=1)
    return counts


def parse_interrupts(
    data: bytes, *, source: str, irqs: Container[int] | None = None
) -> tuple[tuple[int, ...], dict[int, Counts]]:
    """Parse the columns' CPUs and the numbered interrupts (only ``irqs`` if given); lines without a number (NMI, LOC …)
    are skipped. :class:`ParseError` when the first line names no CPUs or an interrupt has fewer counters than CPUs."""
    lines = data.split(b"\n")
    header = lines[0].split()
    names = [_CPU.fullmatch(column) for column in header]
    cpus = tuple(int(name[1]) for name in names if name)
    if not cpus or len(cpus) != len(header) or len(set(cpus)) != len(cpus):
        raise ParseError(source, f"{lines[0][:40]!r} names no CPUs", line=1)
    counts_of: dict[int, Counts] = {}
    for number, line in enumerate(lines[1:], start=2):
        match = _IRQ.match(line)
        if not match or (irqs is not None and int(match[1]) not in irqs):
            continue
        counts = line[match.end() :].split(None, len(cpus))[: len(cpus)]
        if len(counts) < len(cpus) or not b"".join(counts).isdigit() or max(map(len, counts)) > _MAX_DIGITS:
            raise ParseError(source, f"interrupt {int(match[1])} has no {len(cpus)} counters", line=number)
        counts_of[int(match[1])] = list(map(int, counts))
    return cpus, counts_of


def read_interrupts(roots: Roots, irqs: Iterable[int]) -> InterruptReading:
    """The counters of ``irqs``. ``Unavailable`` where the kernel has neither file."""
    numbers = frozenset(irqs)
    return _read_files(roots, numbers) or _read_table(roots, numbers)


def _read_files(roots: Roots, irqs: frozenset[int]) -> InterruptReading | None:
    """From sysfs; ``None`` where it is missing or truncated."""
    cpus = sysfs.read_parsed(roots.sys / "devices" / "system" / "cpu" / "possible", parse_cpu_list)
    base = roots.sys / "kernel" / "irq"
    if cpus is None or not base.is_dir():
        return None
    counts = {}
    for irq in irqs:
        path = f"{base}/{irq}/per_cpu_count"
        data = sysfs.read_bytes(path)
        if data is None:
            continue
        if not data.endswith(b"\n"):
            return None
        counts[irq] = parse_per_cpu_count(data, source=path)
        if len(counts[irq]) != len(cpus):
            raise ParseError(path, f"{len(counts[irq])} counters for {len(cpus)} possible CPUs", line=1)
    return InterruptReading(cpus, counts)


def _read_table(roots: Roots, irqs: frozenset[int]) -> InterruptReading:
    path = roots.proc / "interrupts"
    data = sysfs.require(path, TABLE)
    if not data:
        raise Unavailable(f"{path}: empty, as in some containers")
    return InterruptReading(*parse_interrupts(data, source=str(path), irqs=irqs))
