"""Which limit a time squeeze is put down to."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.softnet import parse_softnet
from plumbline.sources.kernel.squeeze import (
    Limits,
    SqueezeReader,
    Squeezes,
    by_budget,
    frames_a_packet,
    parse_received,
    parse_softirq_ticks,
    read_limits,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
DEFAULT = Limits(300, 0.008)  # Debian, HZ=250


def test_the_nodes_of_figure_31_ran_out_of_budget_as_their_author_found() -> None:
    shown = (FIXTURES / "net-unnoba-2020" / "figure-31-softnet_stat").read_text()
    whole = "".join(f"{row}{' 00000000' * 3}\n" for row in shown.splitlines())  # the columns that the page cut off
    cpus = parse_softnet(whole, source="figure 31", online=range(8))
    assert [round(cpu.processed / cpu.time_squeeze) for cpu in cpus] == [316, 247, 292, 270, 309, 278, 252, 311]
    for cpu in cpus:
        assert by_budget(squeezes=cpu.time_squeeze, polled=cpu.processed, softirq_s=None, limits=DEFAULT)


@pytest.mark.parametrize(
    ("squeezes", "polled", "softirq_s", "limits", "budget"),
    [
        # 2 µs a packet: 300 of them are done in 0.6 ms of 8
        (1000, 1_000_000, 2.0, DEFAULT, True),
        # the same packets among 100 squeezes: still the budget, whatever the packets a squeeze
        (100, 1_000_000, 2.0, DEFAULT, True),
        # 100 µs a packet: time is up after 80
        (50, 10_000, 1.0, DEFAULT, False),
        # HZ=1000: 2 ms, and 10 µs a packet: time is up after 200, although 10,000 packets came for each squeeze
        (10, 100_000, 1.0, Limits(300, 0.002), False),
        # the budget doubled: 20 µs a packet was the budget's and now is the time's
        (50, 50_000, 1.0, DEFAULT, True),
        (50, 50_000, 1.0, Limits(600, 0.008), False),
        # hardly a packet, hardly a tick: somebody took the CPU away
        (5, 10, 0.0, DEFAULT, False),
        # settings for tests: every run ends at once
        (10, 10, 0.0, Limits(1, 0.008), True),
        (10, 1000, 0.01, Limits(300, 0.0), False),
        (10, 1000, None, Limits(0, None), True),
        # without softirq time
        (100, 14_999, None, DEFAULT, False),
        (100, 15_000, None, DEFAULT, True),
        (100, 15_000, 0.5, Limits(300, None), True),
    ],
)
def test_the_limit_reached_first(
    squeezes: int, polled: int, softirq_s: float | None, limits: Limits, budget: bool
) -> None:
    assert by_budget(squeezes=squeezes, polled=polled, softirq_s=softirq_s, limits=limits) is budget


def test_softirq_ticks() -> None:
    text = (
        b"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 77 8 9 10\ncpu12 1 2 3 4 5 6 88\nintr 1 2 3\ncpu3 1 1 1 1 1 1 1\n"
    )
    assert parse_softirq_ticks(text, source="stat") == {0: 77, 12: 88}
    assert parse_softirq_ticks(b"cpu0 1 2 3 4\n", source="stat") == {}
    with pytest.raises(ParseError, match="stat:2: softirq time is b'x'"):
        parse_softirq_ticks(b"cpu 1\ncpu0 1 2 3 4 5 6 x\n", source="stat")


def test_received_frames() -> None:
    text = (
        b"Inter-|   Receive                            |  Transmit\n"
        b" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
        b"    lo: 1000 10 0 0 0 0 0 0 1000 10 0\neth0:1:99999999999 77 0 0 0 0 0 0 5 6 0\n"
    )
    assert parse_received(text, source="dev") == {"lo": 10, "eth0:1": 77}
    with pytest.raises(ParseError, match=r"dev:1: b'eth0: 1' has no count of received packets"):
        parse_received(b"eth0: 1\n", source="dev")


def test_frames_a_packet() -> None:
    assert frames_a_packet(frames=900, processed=100) == 9.0
    assert frames_a_packet(frames=10, processed=100) == 1.0
    assert frames_a_packet(frames=0, processed=0) == 1.0


class Host:
    """Files of a two-CPU host, rewritten between readings."""

    def __init__(self, root: Path) -> None:
        self.roots = Roots.under(root)
        self.budget("300\n")
        self.write("sys/net/core/netdev_budget_usecs", "8000\n")

    def write(self, name: str, text: str) -> None:
        path = self.roots.proc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def budget(self, text: str) -> None:
        self.write("sys/net/core/netdev_budget", text)

    def now(self, *cpus: tuple[int, int, int]) -> None:
        """``(processed, time_squeeze, softirq ticks)`` a CPU."""
        self.write(
            "net/softnet_stat",
            "".join(
                f"{processed:08x} 00000000 {squeeze:08x}{' 00000000' * 9} {cpu:08x}\n"
                for cpu, (processed, squeeze, _) in enumerate(cpus)
            ),
        )
        self.write("stat", "".join(f"cpu{cpu} 0 0 0 0 0 0 {ticks} 0\n" for cpu, (_, _, ticks) in enumerate(cpus)))


def test_squeezes_are_attributed_interval_by_interval(tmp_path: Path) -> None:
    host = Host(tmp_path)
    reader = SqueezeReader(roots=host.roots, ticks_per_s=100)
    assert reader.latest == {}
    host.now((1000, 50, 10), (1000, 60, 10))
    reader.refresh()
    assert reader.latest == {0: Squeezes(0, 0), 1: Squeezes(0, 0)}, "what was before the first look is nobody's"
    host.now((1_001_000, 150, 210), (11_000, 67, 110))
    reader.refresh()
    assert reader.latest == {0: Squeezes(100, 0), 1: Squeezes(0, 7)}
    host.now((1_002_000, 160, 310), (1_011_000, 67, 111))
    reader.refresh()
    assert reader.latest == {0: Squeezes(100, 10), 1: Squeezes(0, 7)}


def test_frames_that_gro_merged_used_up_the_budget_one_by_one(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (host.roots.sys / "class" / "net" / "eth0" / "device").mkdir(parents=True)
    reader = SqueezeReader(roots=host.roots, ticks_per_s=100)
    for frames, packets, squeezes in ((500, 0, 0), (300_500, 10_000, 1000), (320_500, 20_000, 1400)):
        host.write("net/dev", f"  lo: 1 {frames * 9} 0\n  eth0: 1 {frames} 0\n")
        host.now((packets, squeezes, squeezes // 10))
        reader.refresh()
    # 30 frames a packet: 1,000 budgets' worth for 1,000 squeezes; then 2: 67 budgets' worth for 400
    assert reader.latest == {0: Squeezes(1000, 400)}


def test_counters_that_wrap(tmp_path: Path) -> None:
    host = Host(tmp_path)
    reader = SqueezeReader(roots=host.roots, ticks_per_s=100)
    host.now((0xFFFFFF00, 0xFFFFFFFE, 10))
    reader.refresh()
    host.now((2000, 3, 10))
    reader.refresh()
    assert reader.latest == {0: Squeezes(5, 0)}


def test_a_cpu_that_was_off_keeps_its_counts_and_begins_a_new_interval(tmp_path: Path) -> None:
    host = Host(tmp_path)
    reader = SqueezeReader(roots=host.roots, ticks_per_s=100)
    for squeeze in (0, 4):
        host.now((0, 0, 0), (10_000 * squeeze, squeeze, 0))
        reader.refresh()
    host.now((0, 0, 0))
    reader.refresh()
    assert reader.latest == {0: Squeezes(0, 0)}
    host.now((0, 0, 0), (90_000, 9, 0))
    reader.refresh()
    assert reader.latest == {0: Squeezes(0, 0), 1: Squeezes(4, 0)}, "what it did meanwhile has no known beginning"


def test_where_the_settings_are_out_of_sight_nothing_is_attributed(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (host.roots.proc / "sys/net/core/netdev_budget").unlink()
    reader = SqueezeReader(roots=host.roots, ticks_per_s=100)
    host.now((0, 0, 0))
    reader.refresh()
    assert reader.latest == {}
    with pytest.raises(Unavailable, match="netdev_budget can't be read"):
        read_limits(host.roots)
    host.budget("300\n")
    reader.refresh()
    assert reader.latest == {0: Squeezes(0, 0)}
    host.write("net/softnet_stat", "broken\n")
    reader.refresh()
    assert reader.latest == {}, "a counter that is no longer kept is no series"


def test_limits(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert read_limits(host.roots) == Limits(300, 0.008)
    (host.roots.proc / "sys/net/core/netdev_budget_usecs").unlink()
    assert read_limits(host.roots) == Limits(300, None)
