"""Network softirqs and the time of ksoftirqd."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.collectors.softnet import samples
from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel.softirqs import SoftirqReader, Softirqs, parse_softirqs, parse_thread
from plumbline.sources.kernel.softnet import SoftnetCpu
from plumbline.sources.kernel.squeeze import SoftnetReading

HEAD = b"                    CPU0       CPU1       \n"
STAT = "{} (ksoftirqd/{}) S 2 0 0 0 -1 69238848 0 0 0 0 {} {} 0 0 20 0 1 0 4 0 0 18446744073709551615 0\n"


def proc(base: Path, *, receive: tuple[int, int] = (64771376, 98561586), threads: dict[int, str] | None = None) -> None:
    """A ``/proc`` of two CPUs; ``threads``: children of kthreadd with their stat."""
    threads = {15: STAT.format(15, 0, 0, 4711), 22: STAT.format(22, 1, 1, 9)} if threads is None else threads
    children = base / "proc" / "2" / "task" / "2"
    children.mkdir(parents=True, exist_ok=True)
    (children / "children").write_text(" ".join(map(str, threads)) + " ")
    for pid, text in threads.items():
        (base / "proc" / str(pid)).mkdir(exist_ok=True)
        (base / "proc" / str(pid) / "stat").write_text(text)
    rows = f"HI: 0 0\n      NET_TX: 14233 14835\n      NET_RX: {receive[0]} {receive[1]}\n RCU: 1 2\n"
    (base / "proc" / "softirqs").write_text(HEAD.decode() + rows)


def test_counts_of_each_cpu_and_the_time_of_its_thread(tmp_path: Path) -> None:
    proc(tmp_path)
    reader = SoftirqReader(roots=Roots.under(tmp_path), ticks_per_s=100)
    reader.refresh()
    assert reader.latest == {
        0: Softirqs({"transmit": 14233, "receive": 64771376}, 47.11),
        1: Softirqs({"transmit": 14835, "receive": 98561586}, 0.1),
    }
    online = SoftnetReading((SoftnetCpu(1, 5, 0, 0, None),), {}, reader.latest)
    assert [(spec.name, *labels, value) for spec, labels, value in samples(online)][3:] == [
        ("plumbline_softnet_softirqs_total", "receive", 163332962),
        ("plumbline_softnet_softirqs_total", "transmit", 29068),
        ("plumbline_softnet_ksoftirqd_seconds_total", "0", 47.11),
        ("plumbline_softnet_ksoftirqd_seconds_total", "1", 0.1),
    ]


def test_a_counter_that_wraps_goes_on_upwards(tmp_path: Path) -> None:
    reader = SoftirqReader(roots=Roots.under(tmp_path), ticks_per_s=100)
    seen = []
    for first in (4294967290, 3, 2):
        proc(tmp_path, receive=(first, 7))
        reader.refresh()
        seen.append([reader.latest[cpu].counts["receive"] for cpu in (0, 1)])
    assert seen == [[4294967290, 7], [4294967299, 7], [8589934594, 7]]


def test_another_process_has_the_number_of_a_thread(tmp_path: Path) -> None:
    """A CPU that came later has a new thread; a number is given again."""
    proc(tmp_path, threads={15: STAT.format(15, 0, 0, 100)})
    reader = SoftirqReader(roots=Roots.under(tmp_path), ticks_per_s=100)
    reader.refresh()
    assert [reader.latest[cpu].ksoftirqd_s for cpu in (0, 1)] == [1.0, None]
    other = {15: "15 (kworker/0:1) S 2 0\n", 31: STAT.format(31, 0, 0, 120), 32: STAT.format(32, 1, 0, 5)}
    proc(tmp_path, threads=other)
    reader.refresh()
    assert [reader.latest[cpu].ksoftirqd_s for cpu in (0, 1)] == [1.2, 0.05]


def test_a_container_sees_no_kernel_thread(tmp_path: Path) -> None:
    proc(tmp_path, threads={})
    reader = SoftirqReader(roots=Roots.under(tmp_path), ticks_per_s=100)
    reader.refresh()
    assert [one.ksoftirqd_s for one in reader.latest.values()] == [None, None]
    (tmp_path / "proc" / "softirqs").unlink()
    reader.refresh()
    assert reader.latest == {}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "^s:1: b'' names no CPUs"),
        (b"CPU0 CPU0\n", "^s:1: b'CPU0 CPU0' names no CPUs"),
        (b"CPU0 IRQ\n", "^s:1: b'CPU0 IRQ' names no CPUs"),
        (HEAD + b"NET_RX: 1\n", "^s:2: b'NET_RX: 1' has not 2 counters"),
        (HEAD + b"NET_RX: 1 2 3\n", "^s:2: b'NET_RX: 1 2 3' has not 2 counters"),
        (HEAD + b"HI: x\nNET_TX: 1 -2\n", "^s:3: b'NET_TX: 1 -2' has not 2 counters"),
    ],
)
def test_what_is_no_such_file(data: bytes, line: str) -> None:
    with pytest.raises(ParseError, match=line):
        parse_softirqs(data, source="s")


WORDS = st.sampled_from((b"CPU0 ", b"CPU1 ", b"\n", b"NET_RX:", b" 1", b" -1", b" \xb2"))


@given(st.binary() | st.lists(WORDS).map(b"".join))
@example(HEAD + b"NET_RX: 1 2\n")
def test_a_reading_or_one_clear_error(data: bytes) -> None:
    with suppress(ParseError):
        assert all(count >= 0 for counts in parse_softirqs(data, source="s").values() for count in counts.values())


@given(st.text())
@example("7 (ksoftirqd/\u0661) S 2\n")
def test_what_is_not_the_threads_stat_is_another_process(text: str) -> None:
    assert parse_thread(text) is None
