"""The balance of a port's interrupts, figure for figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.collectors.interrupts import ACTIVE_VECTORS, EFFECTIVE_CPUS, NUMA_REMOTE, SHARE_MAX, samples
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.interrupts import InterruptReading, parse_interrupts
from plumbline.sources.net.nic_interrupts import IrqBalance, IrqBalanceReader, NicInterrupts, balance, names_port

UNNOBA = Path(__file__).parents[3] / "fixtures" / "net-unnoba-2020"


def since_boot(figure: str, device: str) -> IrqBalance:
    """What the page prints, as if all of it had come in an hour."""
    cpus, listed = parse_interrupts((UNNOBA / figure).read_bytes(), source=figure)
    lines = (UNNOBA / figure).read_text().splitlines()
    irqs = tuple(int(line.partition(":")[0]) for line in lines if names_port(line, device))
    assert len(irqs) == 8
    result = balance(
        NicInterrupts(device, irqs, frozenset({0, 1, 2, 3})),
        InterruptReading(cpus, {irq: [0] * 8 for irq in irqs}),
        InterruptReading(cpus, {irq: listed[irq] for irq in irqs}),
        seconds=3600.0,
    )
    assert result is not None
    return result


def test_figure_23_is_balanced_as_its_author_says() -> None:
    eno1 = since_boot("figure-23-interrupts", "eno1")
    assert eno1.per_second == pytest.approx(46957.9, abs=0.1)
    assert eno1.share_max == pytest.approx(25663487 / 169048475)
    assert eno1.effective_cpus == pytest.approx(7.773, abs=0.001)
    assert eno1.numa_remote == pytest.approx((17746035 + 13872797 + 22777544 + 22455433) / 169048475)
    eno2 = since_boot("figure-23-interrupts", "eno2")
    assert (eno2.active_vectors, round(eno2.share_max, 3), round(eno2.effective_cpus, 2)) == (8, 0.246, 6.43)


def test_figure_29_is_not() -> None:
    assert since_boot("figure-29-interrupts", "eno1") == IrqBalance("eno1", 169048475 / 3600, 8, 1.0, 1.0, 0.0)


def test_it_is_the_interval_that_counts() -> None:
    before = InterruptReading((0, 1), {10: [1_000_000, 0], 11: [1_000_000, 0], 12: [5, 5]})
    after = InterruptReading((0, 1), {10: [1_000_000, 3000], 11: [1_001_000, 0], 12: [5, 5]})
    assert balance(NicInterrupts("eth0", (10, 11, 12), None), before, after, seconds=10.0) == IrqBalance(
        "eth0", 400.0, 2, 0.75, 1.6, None
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([0, 0], [999, 0], None),  # idle: below 100 a second
        ([0, 0], [1000, 0], IrqBalance("eth0", 100.0, 1, 1.0, 1.0, None)),
        ([5000, 7], [5000, 7], None),
        ([50_000, 7], [2000, 0], None),  # given back and taken anew: its beginning is not known
        ([4294967000, 0], [704, 1000], IrqBalance("eth0", 200.0, 1, 0.5, 2.0, None)),  # 2³² passed
    ],
)
def test_one_vector(before: list[int], after: list[int], expected: IrqBalance | None) -> None:
    port = NicInterrupts("eth0", (10,), None)
    readings = (InterruptReading((0, 1), {10: counts}) for counts in (before, after))
    assert balance(port, *readings, seconds=10.0) == expected


def test_vectors_that_come_and_go_are_left_out() -> None:
    before = InterruptReading((0, 1), {10: [0, 0], 11: [0, 0]})
    after = InterruptReading((0, 1), {10: [2000, 0], 12: [0, 9000]})
    result = balance(NicInterrupts("eth0", (10, 11, 12), frozenset({1})), before, after, seconds=10.0)
    assert result == IrqBalance("eth0", 200.0, 1, 1.0, 1.0, 1.0)


def test_cpus_that_came_or_went_make_no_interval() -> None:
    port, busy = NicInterrupts("eth0", (10,), None), {10: [9000, 9000]}
    assert balance(port, InterruptReading((0, 1), {10: [0, 0]}), InterruptReading((0, 2), busy), seconds=9.0) is None


def test_samples() -> None:
    assert list(samples((IrqBalance("a", 400.0, 2, 0.75, 1.6, None), IrqBalance("b", 100.0, 1, 1.0, 1.0, 0.0)))) == [
        (SHARE_MAX, ("a",), 0.75),
        (EFFECTIVE_CPUS, ("a",), 1.6),
        (ACTIVE_VECTORS, ("a",), 2),
        (SHARE_MAX, ("b",), 1.0),
        (EFFECTIVE_CPUS, ("b",), 1.0),
        (NUMA_REMOTE, ("b",), 0.0),
        (ACTIVE_VECTORS, ("b",), 1),
    ]


class Host:
    """One port with two vectors, and a clock."""

    def __init__(self, root: Path) -> None:
        self.roots, self.time = Roots.under(root), 100.0
        self.function = self.roots.sys / "devices" / "pci0000:00" / "0000:81:00.0"
        for irq in (10, 11):
            (self.function / "msi_irqs").mkdir(parents=True, exist_ok=True)
            (self.function / "msi_irqs" / str(irq)).touch()
        for device in ("eth0", "eth1"):
            (self.roots.sys / "class" / "net" / device).mkdir(parents=True)
        (self.roots.sys / "class" / "net" / "eth0" / "device").symlink_to(self.function)
        cpu = self.roots.sys / "devices" / "system" / "cpu"
        cpu.mkdir(parents=True)
        (cpu / "possible").write_text("0-1\n")
        self.reader = IrqBalanceReader(roots=self.roots, clock=lambda: self.time)

    def now(self, first: str, second: str) -> None:
        for irq, text in ((10, first), (11, second)):
            path = self.roots.sys / "kernel" / "irq" / str(irq)
            path.mkdir(parents=True, exist_ok=True)
            (path / "per_cpu_count").write_text(text + "\n")

    def refresh(self, after_s: float) -> None:
        self.time += after_s
        self.reader.refresh()


def test_the_reader_serves_the_last_interval(tmp_path: Path) -> None:
    host = Host(tmp_path)
    with pytest.raises(Unavailable, match="not been read twice"):
        _ = host.reader.latest
    host.now("500000,0", "0,0")
    host.refresh(0)
    with pytest.raises(Unavailable, match="not been read twice"):
        _ = host.reader.latest
    host.now("501000,0", "0,1000")
    host.refresh(10)
    assert host.reader.latest == (IrqBalance("eth0", 200.0, 2, 0.5, 2.0, None),)
    host.refresh(10)
    assert host.reader.latest == (), "idle since"
    host.time += 121
    with pytest.raises(Unavailable, match="too long ago"):
        _ = host.reader.latest


def test_readings_too_close_together_make_no_interval(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for counts, after_s in (("0,0", 0), ("3000,0", 15), ("3000,9000", 0.5)):
        host.now(counts, "0,0")
        host.refresh(after_s)
        if after_s == 0:
            continue
        assert host.reader.latest == (IrqBalance("eth0", 200.0, 1, 1.0, 1.0, None),)
    host.refresh(11.5)
    assert host.reader.latest == (IrqBalance("eth0", 750.0, 1, 1.0, 1.0, None),)


def test_what_is_malformed_is_an_error_until_it_is_mended(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.now("0,0", "0,0")
    host.refresh(0)
    host.now("broken", "0,0")
    host.refresh(10)
    with pytest.raises(ParseError, match="irq/10/per_cpu_count:1"):
        _ = host.reader.latest
    host.now("0,0", "0,0")
    host.refresh(10)
    host.now("2000,0", "0,0")
    host.refresh(10)
    assert [each.device for each in host.reader.latest] == ["eth0"]


def test_a_host_of_software_links_only(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (host.roots.sys / "class" / "net" / "eth0" / "device").unlink()
    host.refresh(0)
    with pytest.raises(Unavailable, match="no network port has interrupts"):
        _ = host.reader.latest
