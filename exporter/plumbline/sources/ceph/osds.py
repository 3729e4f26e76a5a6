"""The state of this host's OSDs, from their admin sockets.

One thread queries all of them at once (:mod:`.adminsocket`). An OSD that hangs delays only the reading, until the
deadline; it is reported as hanging, the others as usual. An OSD that ended is no OSD that hangs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from plumbline.core.foreign import passed
from plumbline.core.histogram import HistogramValue
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.ceph.adminsocket import Answer, Ended, Hung, NotAllowed, Question, ask, find_sockets
from plumbline.sources.ceph.osd_clients import Owner
from plumbline.sources.ceph.osd_mclock import PROFILE_OPTION, SHARE_OPTIONS, parse_queues, parse_share
from plumbline.sources.ceph.osd_network import Heartbeats, parse_heartbeats
from plumbline.sources.ceph.osd_operations import BlockedOperations, SlowOperation, parse_blocked, parse_slow
from plumbline.sources.ceph.osd_perf import (
    CAPACITY_OPTIONS,
    MCLOCK,
    MEMORY_OPTION,
    QUEUE_OPTION,
    SHARD_OPTIONS,
    Compression,
    Database,
    OnodeCache,
    OsdStages,
    SetOption,
    parse_bytes,
    parse_capacity,
    parse_compression,
    parse_database,
    parse_fragmentation,
    parse_latencies,
    parse_onode_cache,
    parse_option,
    parse_set_options,
    parse_stages,
    parse_tier,
)
from plumbline.sources.kernel.cgroup import GroupLimits

TIMEOUT_S = 5.0  # an admin thread answers within milliseconds; one that needs seconds is short of CPU or memory
SLOW_WITHIN_S = 600.0  # older ones are out of date; Ceph keeps them as long (``osd_op_history_duration``)

_SOCKET = re.compile(r".+-osd\.(\d{1,9})\.asok")

PERF, HISTOGRAMS, NETWORK = "perf dump", "perf histogram dump", "dump_osd_network"
BLOCKED, SLOW = "dump_blocked_ops", "dump_historic_slow_ops"
SCORE, CONFIG, SET = "bluestore allocator score block", "config get", "config diff"
LIMITS = "control group"
_QUICK: Mapping[str, Mapping[str, object]] = {PERF: {}, HISTOGRAMS: {}, NETWORK: {"value": 0}, BLOCKED: {}, SLOW: {}}

T = TypeVar("T")


class OsdState(StrEnum):
    """What an OSD's admin socket shows."""

    ANSWERS = "answers"
    HANGS = "hangs"  # a process listens, and no answer came in time
    ENDED = "ended"  # no process listens: it was stopped or crashed
    UNKNOWN = "unknown"  # it was not queried, for want of permission or time


class OsdReading(Struct, frozen=True):
    """One OSD. A part that it did not answer is empty or ``None``, and listed in ``unread``."""

    daemon: str  # ``osd.3``
    path: str
    state: OsdState
    why: str = ""  # why it did not answer
    latencies: Mapping[str, HistogramValue] = field(default_factory=dict)  # by operation
    stages: OsdStages | None = None
    onodes: OnodeCache | None = None
    database: Database | None = None
    compression: Compression | None = None
    tier: Mapping[str, int] = field(default_factory=dict)  # by operation of a cache tier
    queues: Mapping[str, int] = field(default_factory=dict)  # operations that wait in mClock's queues, by class
    heartbeats: tuple[Heartbeats, ...] = ()
    blocked: BlockedOperations | None = None
    slow: tuple[SlowOperation, ...] | None = None
    limits: GroupLimits | None = None  # of its process's control group, where it can be seen
    unread: tuple[tuple[str, str], ...] = ()  # (command or LIMITS, reason): ``malformed`` or ``unreadable``


class OsdStore(Struct, frozen=True):
    """Slowly changing values; capacities, profile, shares and shards are empty or ``None`` if mClock is not the
    scheduler."""

    daemon: str
    fragmentation: float | None = None
    capacity_iops: Mapping[str, float] = field(default_factory=dict)  # by device class
    profile: str = ""
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)  # (class, reservation or limit) → of capacity
    shards: Mapping[str, SetOption] | None = None  # of the options of shards and threads those that are set
    memory_target_bytes: int | None = None


class OsdsReading(NamedTuple):
    """All OSDs of this host, as they last answered."""

    osds: tuple[OsdReading, ...] = ()
    stores: tuple[OsdStore, ...] = ()
    memory_bytes: int | None = None  # the host's
    clients: Mapping[Owner, float] = {}  # mean operations in flight of those with the most


def find_osds(patterns: Sequence[str]) -> dict[str, Path]:
    """``osd.3`` → its socket. Of two with the same name (two clusters on one host), the first counts."""
    sockets: dict[str, Path] = {}
    for path in find_sockets(patterns):
        match = _SOCKET.fullmatch(path.name)
        if match:
            sockets.setdefault(f"osd.{int(match[1])}", path)
    return sockets


def osds_here(patterns: Sequence[str]) -> dict[str, Path]:
    """As :func:`find_osds`; :class:`Unavailable` when there are none."""
    sockets = find_osds(patterns)
    if not sockets:
        raise Unavailable("no OSD's admin socket here, or none that this user may see; see docs/ceph.md")
    return sockets


def read_osds(
    sockets: Mapping[str, Path], timeout_s: float, *, limits: Callable[[int], GroupLimits | None] | None = None
) -> tuple[OsdReading, ...]:
    """Ask every OSD all quick questions at once; those that have not answered after ``timeout_s`` seconds hang.

    ``limits`` gives those of a process's control groups. :class:`NotAllowed` when none of them may be queried."""
    questions = {
        daemon: {prefix: Question(path, prefix, arguments) for prefix, arguments in _QUICK.items()}
        for daemon, path in sockets.items()
    }
    pids: dict[Path, int] = {}
    answers = _ask(questions, timeout_s, pids)
    readings = tuple(_reading(daemon, path, answers[daemon]) for daemon, path in sockets.items())
    if limits is not None:
        readings = tuple(_limited(reading, limits, pids.get(sockets[reading.daemon], 0)) for reading in readings)
    if readings and all(answers[reading.daemon].denied for reading in readings):
        raise NotAllowed(readings[0].why)
    return readings


def read_stores(sockets: Mapping[str, Path], timeout_s: float) -> tuple[OsdStore, ...]:
    """Query the slowly changing values; an OSD that does not answer has empty ones."""
    options = (QUEUE_OPTION, MEMORY_OPTION, PROFILE_OPTION, *CAPACITY_OPTIONS.values(), *SHARE_OPTIONS.values())
    questions = {
        daemon: {prefix: Question(path, prefix) for prefix in (SCORE, SET)}
        | {name: Question(path, CONFIG, {"var": name}) for name in options}
        for daemon, path in sockets.items()
    }
    return tuple(_store(daemon, answers) for daemon, answers in _ask(questions, timeout_s).items())


class _Answers:
    """One OSD's answers by question; ``unread`` collects (question, reason) of those that gave no value."""

    def __init__(self, answers: Mapping[str, tuple[Question, Answer]]) -> None:
        # several parsers read the same answer
        self._answers = {
            name: (question, passed(answer) if isinstance(answer, bytes) else answer)
            for name, (question, answer) in answers.items()
        }
        self.faults = [answer for _, answer in answers.values() if isinstance(answer, PlumblineError)]
        self.silent = len(self.faults) == len(answers)
        self.denied = self.silent and isinstance(self.faults[0], NotAllowed)
        self.unread: list[tuple[str, str]] = []

    def state(self) -> tuple[OsdState, str]:
        """With the reason, if it did not answer. One that ended while it was queried counts as ended. A malformed
        answer is an answer."""
        if not self.silent:
            return OsdState.ANSWERS, ""
        for kind, state in ((Ended, OsdState.ENDED), (Hung, OsdState.HANGS), (Unavailable, OsdState.UNKNOWN)):
            for fault in self.faults:
                if isinstance(fault, kind):
                    return state, str(fault)
        return OsdState.ANSWERS, ""

    def raw(self, name: str) -> bytes:
        """The answer as JSON, ``{}`` if there is none."""
        answer = self._answers[name][1]
        return answer if isinstance(answer, bytes) else b"{}"

    def parsed(self, name: str, parse: Callable[..., T], *arguments: object) -> T | None:
        """``parse(answer, *arguments, source=…)``; ``None`` without an answer or in another release's format."""
        question, answer = self._answers[name]
        try:
            if isinstance(answer, PlumblineError):
                raise answer
            return parse(answer, *arguments, source=question.source)
        except ParseError:
            self.unread.append((name, "malformed"))
        except Unavailable:
            self.unread.append((name, "unreadable"))
        return None


def _ask(
    asked: Mapping[str, Mapping[str, Question]], timeout_s: float, pids: dict[Path, int] | None = None
) -> dict[str, _Answers]:
    """The answers by daemon. One list of questions, so that all share one deadline."""
    questions = [question for of_daemon in asked.values() for question in of_daemon.values()]
    answers = iter(ask(questions, timeout_s=timeout_s, pids=pids))
    return {
        daemon: _Answers({name: (question, next(answers)) for name, question in of_daemon.items()})
        for daemon, of_daemon in asked.items()
    }


def _reading(daemon: str, path: Path, answers: _Answers) -> OsdReading:
    state, why = answers.state()
    if state is not OsdState.ANSWERS:
        return OsdReading(daemon, str(path), state, why=why)
    return OsdReading(
        daemon=daemon,
        path=str(path),
        state=state,
        latencies=answers.parsed(HISTOGRAMS, parse_latencies, answers.raw(PERF)) or {},
        stages=answers.parsed(PERF, parse_stages),
        onodes=answers.parsed(PERF, parse_onode_cache),
        database=answers.parsed(PERF, parse_database),
        compression=answers.parsed(PERF, parse_compression),
        tier=answers.parsed(PERF, parse_tier) or {},
        queues=answers.parsed(PERF, parse_queues) or {},
        heartbeats=answers.parsed(NETWORK, parse_heartbeats) or (),
        blocked=answers.parsed(BLOCKED, parse_blocked),
        slow=answers.parsed(SLOW, _recent),
        unread=tuple(answers.unread),
    )


def _limited(reading: OsdReading, limits: Callable[[int], GroupLimits | None], pid: int) -> OsdReading:
    if reading.state is not OsdState.ANSWERS or not pid:
        return reading
    try:
        return replace(reading, limits=limits(pid))
    except ParseError:
        return replace(reading, unread=(*reading.unread, (LIMITS, "malformed")))


def _recent(data: bytes, *, source: str) -> tuple[SlowOperation, ...]:
    slow = parse_slow(data, source=source)
    return tuple(operation for operation in slow if operation.age_s - operation.duration_s <= SLOW_WITHIN_S)


def _store(daemon: str, answers: _Answers) -> OsdStore:
    mclock = answers.parsed(QUEUE_OPTION, parse_option, QUEUE_OPTION) == MCLOCK
    options = CAPACITY_OPTIONS.items() if mclock else ()
    capacity = {device_class: answers.parsed(option, parse_capacity, option) for device_class, option in options}
    wanted = SHARE_OPTIONS.items() if mclock else ()
    shares = {share: answers.parsed(option, parse_share, option) for share, option in wanted}
    return OsdStore(
        daemon=daemon,
        fragmentation=answers.parsed(SCORE, parse_fragmentation),
        capacity_iops={device_class: iops for device_class, iops in capacity.items() if iops is not None},
        profile=(answers.parsed(PROFILE_OPTION, parse_option, PROFILE_OPTION) if mclock else None) or "",
        shares={share: ratio for share, ratio in shares.items() if ratio is not None},
        shards=answers.parsed(SET, parse_set_options, SHARD_OPTIONS) if mclock else None,
        memory_target_bytes=answers.parsed(MEMORY_OPTION, parse_bytes, MEMORY_OPTION),
    )
