"""An OSD's slow operations: those blocked now, and the latest finished ones.

``dump_blocked_ops`` and ``dump_historic_slow_ops`` on the admin socket (``src/common/TrackedOp.cc``,
``src/osd/OpRequest.cc``)::

    {"ops": [{"description": "osd_op(…)", "age": 41.7, "type_data": {"flag_point": "waiting for sub ops", …}}],
     "complaint_time": 30, "num_blocked_ops": 1}

    {"Ops": [{"age": 0.51, "duration": 0.0024, "type_data": {"flag_point": "commit sent; apply or cleanup",
        "events": [{"event": "queued_for_pg", "time": "2026-11-21T12:40:47.993574+0000"}, …]}}]}

``flag_point`` is the operation's current step. For a finished operation, the times of its events show where it waited.
The ``duration`` of an event is not used: on 16.2 the first is 4294967295.999998.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.sources.ceph.adminsocket import decode

QUEUE, PG, STORE, PEER, OTHER = "queue", "pg", "store", "peer", "other"
STAGES = (QUEUE, PG, STORE, PEER, OTHER)
"""What an operation waits for: its turn; its placement group (recovery, a lock, a map); this OSD's own store;
the replicas and the network between; or something else."""

# ``OpRequest::state_string``. An operation that waits for sub ops also waits for its own store: while it is blocked,
# the cause is unknown until one of them has answered (``op_commit``, ``sub_op_commit_rec``).
_STANDS: Mapping[str, str] = {
    "queued for pg": QUEUE,
    "reached pg": PG,
    "delayed": PG,
    "started": STORE,
    "waiting for sub ops": PEER,
    "commit sent; apply or cleanup": STORE,
}


class BlockedOperations(msgspec.Struct, frozen=True):
    """Operations older than ``osd_op_complaint_time``."""

    by_stage: Mapping[str, int]  # count for each of :data:`STAGES`
    oldest_s: float  # age of the oldest in seconds; 0 when there is none


class SlowOperation(msgspec.Struct, frozen=True):
    """A finished operation that took longer than ``osd_op_history_slow_op_threshold`` (10 s)."""

    age_s: float  # seconds since it began
    duration_s: float
    stage: str  # the stage with the longest wait
    stage_s: float


class _Event(msgspec.Struct, frozen=True):
    event: str
    time: str = ""


class _TypeData(msgspec.Struct, frozen=True):
    flag_point: str = ""
    events: tuple[_Event, ...] = ()


class _Operation(msgspec.Struct, frozen=True):
    age: Annotated[float, Meta(ge=0)] = 0.0
    duration: Annotated[float, Meta(ge=0)] = 0.0
    type_data: _TypeData = _TypeData()


class _Blocked(msgspec.Struct, frozen=True):
    ops: tuple[_Operation, ...] = ()


class _Historic(msgspec.Struct, frozen=True):
    ops: tuple[_Operation, ...] = msgspec.field(name="Ops", default=())


def parse_blocked(data: bytes, *, source: str) -> BlockedOperations:
    """Parse ``dump_blocked_ops``; :class:`ParseError` when malformed."""
    operations = decode(_Blocked, data, source=source).ops
    by_stage = dict.fromkeys(STAGES, 0)
    for operation in operations:
        by_stage[_stands(operation.type_data)] += 1
    return BlockedOperations(by_stage, max((operation.age for operation in operations), default=0.0))


def parse_slow(data: bytes, *, source: str) -> tuple[SlowOperation, ...]:
    """Parse ``dump_historic_slow_ops``, where Ceph keeps the last 20; :class:`ParseError` when malformed."""
    slow = []
    for operation in decode(_Historic, data, source=source).ops:
        stage, stage_s = _waited(operation.type_data.events)
        slow.append(SlowOperation(operation.age, operation.duration, stage, stage_s))
    return tuple(slow)


def _stands(type_data: _TypeData) -> str:
    stage = _STANDS.get(type_data.flag_point, OTHER)
    if stage == PEER:
        names = {event.event for event in type_data.events}
        if "sub_op_commit_rec" in names and "op_commit" not in names:
            return STORE
    return stage


def _waited(events: Iterable[_Event]) -> tuple[str, float]:
    """The stage with the longest wait, and its seconds; ``other`` and 0 when unknown."""
    waits = dict.fromkeys(STAGES, 0.0)
    submitted: datetime | None = None
    previous: tuple[str, datetime] | None = None
    for event in events:
        try:
            at = datetime.fromisoformat(event.time)  # a tenth of strptime's time, which was a quarter of a whole look
        except ValueError:
            continue
        if at.tzinfo is None:
            continue
        if submitted is not None and event.event in _COMMITS:
            # both waits began at the same moment
            stage = _COMMITS[event.event]
            waits[stage] = max(waits[stage], (at - submitted).total_seconds())
        elif previous is not None:
            waits[_AFTER.get(previous[0], OTHER)] += max(0.0, (at - previous[1]).total_seconds())
        if event.event.startswith("waiting for subops"):
            submitted = at
        previous = (event.event, at) if event.event not in _COMMITS else None
    stage = max(waits, key=lambda name: waits[name])
    return (stage, waits[stage]) if waits[stage] > 0 else (OTHER, 0.0)


# what has committed at this event: this OSD, or a replica
_COMMITS: Mapping[str, str] = {"op_commit": STORE, "sub_op_commit_rec": PEER, "sub_op_applied_rec": PEER}
# what the operation waits for between this event and the next
_AFTER: Mapping[str, str] = {"queued_for_pg": QUEUE, "reached_pg": PG, "started": STORE}
