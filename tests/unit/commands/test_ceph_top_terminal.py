"""``plumbline ceph top`` as a person or a pipe gets it."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator

import msgspec
import pytest
from rich.console import Console

from plumbline.ceph_top.model import OsdPerformance, Suspicion, Top
from plumbline.commands.ceph import top as ceph_top
from plumbline.core.console import make_console

DISK = Suspicion(word="disk", reason="its own store: 80 ms of each write (89%)", source="sockets")
SLOW = OsdPerformance(
    daemon="osd.4", host="storage1", device_class="hdd", answers=True, operations_per_s=155.6, operations=778.0,
    mean_s=0.0175, p50_s=0.0142, p99_s=0.0712, split_of="write", queue_s=0.0009, store_s=0.0102, peers_s=0.0053,
    heartbeat_worst_s=0.0126, heartbeat_median_s=0.001, heartbeat_peer="osd.2", heartbeat_interface="back",
    blocked=3, blocked_age_s=41.7, suspicion=DISK,
)  # fmt: skip
TOP = Top(
    interval_s=5.0,
    sources=("admin sockets of storage1, last 5.0 s",),
    osds=(SLOW, *(msgspec.structs.replace(SLOW, daemon=f"osd.{n}", suspicion=None, blocked=0) for n in range(10, 40))),
    notes=("osd.77: 6 of 6 OSDs find it the slowest to answer pings, up to 80 ms",),
)


def drawn(width, height, top=TOP):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None, _environ={"TERM": "xterm"})
    console.print(ceph_top.screen(top, width=width, height=height))
    return stream.getvalue().splitlines()


def test_into_a_pipe_all_osds_stand_a_line_each():
    stream = io.StringIO()
    ceph_top.print_top(make_console(stream), TOP)
    text = stream.getvalue()
    lines = text.splitlines()
    assert lines[0] == "31 OSDs, 4824 operations/s; admin sockets of storage1, last 5.0 s"
    assert lines[1].split() == [
        "OSD", "Class", "Host", "Op/s", "p50", "p99", "Mean", "Queue", "Store", "Peers", "Ping", "RTT", "Worst",
        "peer", "Blocked", "Suspect",
    ]  # fmt: skip
    assert lines[2].split("  ")[0] == "osd.4"
    for cell in ("hdd", "156", "14.2 ms", "71.2 ms", "900 µs", "10.2 ms", "5.3 ms", "12.6 ms", "3 (42 s)", "disk"):
        assert f"  {cell}" in lines[2], cell
    assert "osd.4 disk: its own store: 80 ms of each write (89%)" in lines
    assert lines[-1].startswith("osd.77: ")
    assert len(lines) == 2 + 31 + 2
    assert "\x1b" not in text


@pytest.mark.parametrize(("width", "height"), [(200, 60), (120, 30), (80, 24), (40, 12), (24, 6), (12, 4)])
def test_a_screen_never_flows_over(width, height):
    lines = drawn(width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    if width >= 24:
        assert "disk" in " ".join(lines), "the suspicion is the last to go"
        assert "71.2 ms" in " ".join(lines)


def test_what_is_not_shown_is_counted():
    lines = drawn(120, 24)
    shown = sum(line.startswith("osd.") and "ms" in line and ":" not in line for line in lines)
    assert f"{31 - shown} not shown" in lines[0]


def test_without_osds_and_times_it_still_draws():
    assert drawn(80, 24, Top(interval_s=5, sources=(), osds=()))
    hung = OsdPerformance(
        daemon="osd.1", answers=False, suspicion=Suspicion(word="hung", reason="no answer", source="sockets")
    )
    assert "osd.1 hung: no answer" in "\n".join(drawn(80, 24, Top(interval_s=5, sources=(), osds=(hung,))))


def test_names_cannot_steer_the_terminal():
    bad = msgspec.structs.replace(SLOW, daemon="osd.4", host="\x1b[2J")
    text = "\n".join(drawn(200, 24, Top(interval_s=5, sources=(), osds=(bad,))))
    assert "\x1b[2J" not in text


@pytest.fixture
def _heard_sigint() -> Iterator[None]:
    """A shell's background job is started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heard_sigint")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_is_given_back_however_it_ends(how):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, height=24, _environ={"TERM": "xterm"})

    def tops():
        yield TOP
        signal.raise_signal(how)
        yield TOP
        raise AssertionError("it went on")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt if how == signal.SIGINT else SystemExit):
        ceph_top.watch(console, tops())
    text = stream.getvalue()
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor is there again"
    assert signal.getsignal(signal.SIGTERM) is before
