"""Interrupt counters, from one small file each or from the one large list."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.interrupts import (
    InterruptReading,
    parse_interrupts,
    parse_per_cpu_count,
    read_interrupts,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
LISTED = b"""\
            CPU0       CPU2
  9:          0          5  IO-APIC   9-fasteoi   acpi
 38:         12     999999 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
NMI:          1          2   Non-maskable interrupts
ERR:          0
"""


def host(root: Path, *, possible: str = "0-2\n", listed: bytes | None = None, **irqs: str) -> Roots:
    roots = Roots.under(root)
    cpu = roots.sys / "devices" / "system" / "cpu"
    cpu.mkdir(parents=True)
    (cpu / "possible").write_text(possible)
    (roots.sys / "kernel" / "irq").mkdir(parents=True)
    for name, text in irqs.items():
        (roots.sys / "kernel" / "irq" / name[1:]).mkdir()
        (roots.sys / "kernel" / "irq" / name[1:] / "per_cpu_count").write_text(text)
    roots.proc.mkdir()
    if listed is not None:
        (roots.proc / "interrupts").write_bytes(listed)
    return roots


def test_the_list() -> None:
    assert parse_interrupts(LISTED, source="s") == (
        (0, 2),
        {9: [0, 5], 38: [12, 999999]},
    )
    assert parse_interrupts(LISTED, source="s", irqs={38})[1].keys() == {38}


def test_a_recording() -> None:
    cpus, found = parse_interrupts((FIXTURES / "net-virtio-guest/proc/interrupts").read_bytes(), source="s")
    assert (cpus, len(found)) == ((0, 1), 19)
    assert found[38] == [0, 83102]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "s:1: b'' names no CPUs"),
        (b"CPU0 x\n", "s:1: b'CPU0 x' names no CPUs"),
        (b"CPU0 CPU0\n", "names no CPUs"),
        (b"CPU0 CPU1\n 38: 1\n", "s:2: interrupt 38 has no 2 counters"),
        (b"CPU0 CPU1\nNMI: 1\n 38: 1 acpi\n", "s:3: interrupt 38 has no 2 counters"),
    ],
)
def test_a_malformed_list(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_interrupts(data, source="s")


def test_one_interrupt() -> None:
    assert parse_per_cpu_count(b"0,81206\n", source="s") == [0, 81206]
    assert parse_per_cpu_count(b"4294967295\n", source="s") == [4294967295]


@pytest.mark.parametrize(
    "data", [b"", b"1,\n", b"1 2\n", b"-1\n", b"4294967296\n", b"1.5\n", b"[1]\n", b"1],[2\n", b"x\n"]
)
def test_one_malformed_interrupt(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"^s:1: .*expected 32-bit counters between commas"):
        parse_per_cpu_count(data, source="s")


def test_sysfs_is_read_first_and_only_what_is_wanted(tmp_path: Path) -> None:
    roots = host(tmp_path, i38="0,1,2\n", i39="3,4,5\n", i40="malformed\n")
    assert read_interrupts(roots, (38, 39, 41)) == InterruptReading((0, 1, 2), {38: [0, 1, 2], 39: [3, 4, 5]})


def test_cut_off_by_the_page_the_list_is_read_instead(tmp_path: Path) -> None:
    roots = host(tmp_path, listed=LISTED, i38="1234567890," * 372 + "123")
    assert read_interrupts(roots, (38,)) == InterruptReading((0, 2), {38: [12, 999999]})


def test_without_sysfs_the_list_is_read(tmp_path: Path) -> None:
    roots = host(tmp_path, listed=LISTED)
    (roots.sys / "kernel" / "irq").rmdir()
    assert read_interrupts(roots, (9, 77)) == InterruptReading((0, 2), {9: [0, 5]})
    (roots.proc / "interrupts").write_bytes(b"")
    with pytest.raises(Unavailable, match=r"interrupts: empty, as in some containers"):
        read_interrupts(roots, (9,))
    (roots.proc / "interrupts").unlink()
    with pytest.raises(Unavailable, match=r"interrupts: No such file"):
        read_interrupts(roots, (9,))


def test_counters_that_do_not_fit_the_cpus(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=r"per_cpu_count:1: 2 counters for 3 possible CPUs"):
        read_interrupts(host(tmp_path, i38="1,2\n"), (38,))
