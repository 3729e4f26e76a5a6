"""Which limit ended the receive loop when it stopped with work left: ``netdev_budget`` or ``netdev_budget_usecs``.

The kernel counts both as one ``time_squeeze`` (``net_rx_action`` in net/core/dev.c). Raising the budget helps only if
the budget was the limit. So this is an **inference**, for each CPU over the interval between two readings:

- The polled packets would fill the budget this many times: *polled ÷ netdev_budget*. If that is fewer than half of the
  squeezes, the limit was not the budget but time (as when a hypervisor takes the CPU away).
- The time in softirqs (``/proc/stat``) would fill the other limit this many times: *seconds ÷ limit*.
- Otherwise the limit is the one that would be filled more often: a run at the interval's mean cost per packet reaches
  it first. All squeezes of the interval are attributed to it.

The budget counts frames before GRO merges them, ``processed`` counts them after. So *polled* is ``processed`` times
the frames received by hardware ports per packet processed on all CPUs (at least 1: loopback merges nothing).

Sources of error: each VLAN, bond and bridge counts a packet in ``processed`` again (bias to budget); softirq time
includes timers and block completions (bias to time).
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.softirqs import Softirqs
from plumbline.sources.kernel.softnet import SoftnetCpu, read_softnet
from plumbline.sources.kernel.sysctl import read_sysctl

_WRAP = 1 << 32
_SOFTIRQ_COLUMN = 7
_CPU_LINE = re.compile(rb"cpu([0-9]{1,6})")
_COUNTER = re.compile(rb"[0-9]{1,20}")


class Limits(Struct, frozen=True):
    """``net.core.netdev_budget`` in packets; ``netdev_budget_usecs`` in seconds, ``None`` before Linux 4.12."""

    budget: int
    time_s: float | None


class Squeezes(Struct, frozen=True):
    """Squeezes of one CPU, since the first reading."""

    budget: int
    time: int


class SoftnetReading(NamedTuple):
    """The counters of each CPU; by CPU, its squeezes where they could be attributed, and its softirqs."""

    cpus: tuple[SoftnetCpu, ...] = ()
    squeezes: Mapping[int, Squeezes] = {}
    softirqs: Mapping[int, Softirqs] = {}


def by_budget(*, squeezes: int, polled: float, softirq_s: float | None, limits: Limits) -> bool:
    """Whether an interval's ``squeezes`` are due to the budget (else to time); see the inference above. Without
    ``softirq_s`` (not shown by the kernel or container), the first step alone decides."""
    budgets = polled / max(1, limits.budget)
    if budgets < squeezes / 2:
        return False
    if softirq_s is None or limits.time_s is None:
        return True
    return limits.time_s > 0 and budgets >= softirq_s / limits.time_s


def frames_a_packet(*, frames: int, processed: int) -> float:
    """How many frames GRO merged into one packet, averaged over an interval."""
    return max(1.0, frames / processed) if processed else 1.0


def parse_received(data: bytes, *, source: str) -> dict[str, int]:
    """``/proc/net/dev`` → frames received by interface: the second number of its line; :class:`ParseError` if it is
    none. The two heading lines have no colon and are skipped."""
    frames: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        name, colon, counters = line.rpartition(b":")  # an alias name may contain a colon
        if not colon:
            continue
        columns = counters.split(None, 2)
        if len(columns) < 2 or not _COUNTER.fullmatch(columns[1]):
            raise ParseError(source, f"{line[:40]!r} has no count of received packets", line=number)
        frames[name.strip().decode("utf-8", "replace")] = int(columns[1])
    return frames


def parse_softirq_ticks(data: bytes, *, source: str) -> dict[int, int]:
    """``/proc/stat`` → clock ticks (``SC_CLK_TCK`` per second) in softirqs, by CPU: the line's seventh number, without
    CPUs that have none; :class:`ParseError` if it is not a number."""
    ticks: dict[int, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.startswith(b"cpu"):
            break  # skip the interrupts' line, which is long
        columns = line.split()
        match = _CPU_LINE.fullmatch(columns[0])
        if not match or len(columns) <= _SOFTIRQ_COLUMN:
            continue
        if not _COUNTER.fullmatch(columns[_SOFTIRQ_COLUMN]):
            raise ParseError(source, f"softirq time is {columns[_SOFTIRQ_COLUMN][:20]!r}, not a number", line=number)
        ticks[int(match[1])] = int(columns[_SOFTIRQ_COLUMN])
    return ticks


def read_limits(roots: Roots) -> Limits:
    """Read both limits. ``Unavailable`` where they are hidden (in any network namespace but the first)."""
    names = ("net.core.netdev_budget", "net.core.netdev_budget_usecs")
    settings = read_sysctl(roots, numbers=names, words=())
    budget, usecs = (settings.number(name) for name in names)
    if budget is None:
        raise Unavailable(f"{names[0]} can't be read")
    return Limits(budget, None if usecs is None else usecs / 1e6)


class _Moment(Struct, frozen=True):
    softnet: Mapping[int, SoftnetCpu]
    softirq_ticks: Mapping[int, int]
    frames: Mapping[str, int]  # Frames received, by hardware port


class SqueezeReader:
    """Attributes squeezes between readings. One thread refreshes, another may read :attr:`latest`."""

    def __init__(self, *, roots: Roots, ticks_per_s: int) -> None:
        """``ticks_per_s``: ``os.sysconf("SC_CLK_TCK")``."""
        self._roots, self._ticks_per_s = roots, ticks_per_s
        self._before: _Moment | None = None
        self._totals: dict[int, Squeezes] = {}
        self.latest: Mapping[int, Squeezes] = {}  # By online CPU; empty while nothing can be attributed

    def refresh(self) -> None:
        """Read, and attribute the squeezes since the last reading. An error hides the counters until it is gone."""
        try:
            limits = read_limits(self._roots)
            softnet = {cpu.cpu: cpu for cpu in read_softnet(self._roots)}
            now = _Moment(softnet, self._read_ticks(), self._read_frames())
        except PlumblineError:
            self.latest = {}  # softnet's own collector reports the error in the file
            return
        if self._before:
            self._attribute(self._before, now, limits)
        self._before = now
        self.latest = {cpu: self._totals.get(cpu, Squeezes(0, 0)) for cpu in now.softnet}

    def _read_ticks(self) -> dict[int, int]:
        path = self._roots.proc / "stat"
        return parse_softirq_ticks(sysfs.read_bytes(path, TABLE) or b"", source=str(path))

    def _read_frames(self) -> dict[str, int]:
        path, ports = self._roots.proc / "net" / "dev", self._roots.sys / "class" / "net"
        frames = parse_received(sysfs.read_bytes(path, TABLE) or b"", source=str(path))
        return {name: count for name, count in frames.items() if (ports / name / "device").exists()}

    def _attribute(self, before: _Moment, now: _Moment, limits: Limits) -> None:
        grown = {
            cpu: (
                (softnet.processed - before.softnet[cpu].processed) % _WRAP,
                (softnet.time_squeeze - before.softnet[cpu].time_squeeze) % _WRAP,
            )
            for cpu, softnet in now.softnet.items()
            if cpu in before.softnet
        }
        merged = frames_a_packet(
            frames=sum(max(0, count - before.frames.get(name, count)) for name, count in now.frames.items()),
            processed=sum(processed for processed, _ in grown.values()),
        )
        for cpu, (processed, squeezes) in grown.items():
            if not squeezes:
                continue
            budget = by_budget(
                squeezes=squeezes,
                polled=processed * merged,
                softirq_s=self._softirq_s(before.softirq_ticks.get(cpu), now.softirq_ticks.get(cpu)),
                limits=limits,
            )
            total = self._totals.get(cpu, Squeezes(0, 0))
            self._totals[cpu] = Squeezes(
                total.budget + (squeezes if budget else 0), total.time + (0 if budget else squeezes)
            )

    def _softirq_s(self, was: int | None, now: int | None) -> float | None:
        return None if was is None or now is None or now < was else (now - was) / self._ticks_per_s
