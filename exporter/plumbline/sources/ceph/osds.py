"""The state of this host's OSDs, from their admin sockets.

One thread queries all of them at once (:mod:`.adminsocket`). An OSD that hangs delays only the reading, until the
deadline; it is reported as not answering, the others as usual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from plumbline.core.histogram import HistogramValue
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.ceph.adminsocket import Answer, NotAllowed, Question, ask, find_sockets
from plumbline.sources.ceph.osd_latency import parse_latencies
from plumbline.sources.ceph.osd_network import Heartbeats, parse_heartbeats
from plumbline.sources.ceph.osd_operations import BlockedOperations, SlowOperation, parse_blocked, parse_slow
from plumbline.sources.ceph.osd_stages import OsdStages, parse_stages
from plumbline.sources.ceph.osd_store import (
    CAPACITY_OPTIONS,
    MCLOCK,
    QUEUE_OPTION,
    OnodeCache,
    parse_capacity,
    parse_fragmentation,
    parse_onode_cache,
    parse_option,
)

TIMEOUT_S = 5.0
"""An OSD's admin thread answers within milliseconds; one that needs seconds is short of CPU time or memory."""
SLOW_WITHIN_S = 600.0
"""Older slow operations are out of date; Ceph itself keeps them for ten minutes (``osd_op_history_duration``)."""

_SOCKET = re.compile(r".+-osd\.(\d{1,9})\.asok")

PERF, HISTOGRAMS, NETWORK, BLOCKED, SLOW = (
    "perf dump",
    "perf histogram dump",
    "dump_osd_network",
    "dump_blocked_ops",
    "dump_historic_slow_ops",
)
SCORE, CONFIG = "bluestore allocator score block", "config get"
_QUICK: Mapping[str, Mapping[str, object]] = {PERF: {}, HISTOGRAMS: {}, NETWORK: {"value": 0}, BLOCKED: {}, SLOW: {}}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OsdReading:
    """One OSD. A part that it did not answer is empty or ``None``, and listed in ``unread``."""

    daemon: str
    """``osd.3``."""
    path: str
    up: bool
    """Whether it answered at all."""
    why: str = ""
    """Why it did not answer."""
    denied: bool = False
    """Permission to query it is missing; whether it would answer is unknown."""
    latencies: Mapping[str, HistogramValue] = field(default_factory=dict)
    """By operation."""
    stages: OsdStages | None = None
    onodes: OnodeCache | None = None
    heartbeats: tuple[Heartbeats, ...] = ()
    blocked: BlockedOperations | None = None
    slow: tuple[SlowOperation, ...] | None = None
    unread: tuple[tuple[str, str], ...] = ()
    """(command, reason): ``malformed`` or ``unreadable``."""


@dataclass(frozen=True, slots=True)
class OsdStore:
    """Slowly changing values. ``capacity_iops`` by device class, if mClock is the scheduler."""

    daemon: str
    fragmentation: float | None = None
    capacity_iops: Mapping[str, float] = field(default_factory=dict)


def find_osds(patterns: Sequence[str]) -> dict[str, Path]:
    """``osd.3`` → its socket. Of two with the same name (two clusters on one host), the first counts."""
    found: dict[str, Path] = {}
    for path in find_sockets(patterns):
        match = _SOCKET.fullmatch(path.name)
        if match:
            found.setdefault(f"osd.{int(match[1])}", path)
    return found


def osds_here(patterns: Sequence[str]) -> dict[str, Path]:
    """As :func:`find_osds`; :class:`Unavailable` when there are none."""
    found = find_osds(patterns)
    if not found:
        raise Unavailable("no OSD's admin socket here, or none that this user may see; see docs/ceph.md")
    return found


def read_osds(sockets: Mapping[str, Path], *, timeout_s: float) -> tuple[OsdReading, ...]:
    """Ask every OSD all quick questions at once; those that have not answered after ``timeout_s`` seconds are not up.

    :class:`NotAllowed` when none of them may be queried."""
    asked = {daemon: _ask_for(path, _QUICK) for daemon, path in sockets.items()}
    answers = _answers(asked, timeout_s)
    readings = tuple(_reading(daemon, path, answers[daemon]) for daemon, path in sockets.items())
    if readings and all(each.denied for each in readings):
        raise NotAllowed(readings[0].why)
    return readings


def read_stores(sockets: Mapping[str, Path], *, timeout_s: float) -> tuple[OsdStore, ...]:
    """Query the slowly changing values; an OSD that does not answer has empty ones."""
    options = (QUEUE_OPTION, *CAPACITY_OPTIONS.values())
    asked = {
        daemon: {SCORE: Question(path, SCORE)} | {name: Question(path, CONFIG, {"var": name}) for name in options}
        for daemon, path in sockets.items()
    }
    return tuple(_store(daemon, answers) for daemon, answers in _answers(asked, timeout_s).items())


def _ask_for(path: Path, commands: Mapping[str, Mapping[str, object]]) -> dict[str, Question]:
    return {prefix: Question(path, prefix, arguments) for prefix, arguments in commands.items()}


_Answers = Mapping[str, tuple[Question, Answer]]


def _answers(asked: Mapping[str, Mapping[str, Question]], timeout_s: float) -> dict[str, _Answers]:
    """Daemon → question name → question and answer. One list of questions, so that all share one deadline."""
    questions = [question for each in asked.values() for question in each.values()]
    answers = iter(ask(questions, timeout_s=timeout_s))
    return {
        daemon: {name: (question, next(answers)) for name, question in each.items()} for daemon, each in asked.items()
    }


def _reading(daemon: str, path: Path, answers: _Answers) -> OsdReading:
    faults = {name: answer for name, (_, answer) in answers.items() if isinstance(answer, PlumblineError)}
    if len(faults) == len(answers):
        why = next(iter(faults.values()))
        return OsdReading(daemon, str(path), up=False, why=str(why), denied=isinstance(why, NotAllowed))
    unread: list[tuple[str, str]] = []

    def part(name: str, parse: Callable[[bytes, str], T]) -> T | None:
        question, answer = answers[name]
        try:
            if isinstance(answer, PlumblineError):
                raise answer
            return parse(answer, question.source)
        except ParseError:
            unread.append((name, "malformed"))
        except Unavailable:
            unread.append((name, "unreadable"))
        return None

    perf = answers[PERF][1]
    counters = perf if isinstance(perf, bytes) else b"{}"
    return OsdReading(
        daemon=daemon,
        path=str(path),
        up=True,
        latencies=part(
            HISTOGRAMS,
            lambda data, source: parse_latencies(data, counters, source=source),
        )
        or {},
        stages=part(PERF, lambda data, source: parse_stages(data, source=source)),
        onodes=part(PERF, lambda data, source: parse_onode_cache(data, source=source)),
        heartbeats=part(NETWORK, lambda data, source: parse_heartbeats(data, source=source)) or (),
        blocked=part(BLOCKED, lambda data, source: parse_blocked(data, source=source)),
        slow=part(SLOW, lambda data, source: _recent(parse_slow(data, source=source))),
        unread=tuple(unread),
    )


def _recent(operations: Iterable[SlowOperation]) -> tuple[SlowOperation, ...]:
    return tuple(each for each in operations if each.age_s - each.duration_s <= SLOW_WITHIN_S)


def _store(daemon: str, answers: _Answers) -> OsdStore:
    def part(name: str, parse: Callable[[bytes, str], T]) -> T | None:
        question, answer = answers[name]
        try:
            return None if isinstance(answer, PlumblineError) else parse(answer, question.source)
        except ParseError:
            return None  # the release is older or newer and lacks it

    mclock = part(QUEUE_OPTION, lambda data, source: parse_option(data, QUEUE_OPTION, source=source)) == MCLOCK
    capacity: dict[str, float] = {}
    for device_class, option in CAPACITY_OPTIONS.items() if mclock else ():
        iops = part(option, lambda data, source, option=option: parse_capacity(data, option, source=source))  # type: ignore[misc]
        if iops is not None:
            capacity[device_class] = iops
    return OsdStore(
        daemon=daemon,
        fragmentation=part(SCORE, lambda data, source: parse_fragmentation(data, source=source)),
        capacity_iops=capacity,
    )
