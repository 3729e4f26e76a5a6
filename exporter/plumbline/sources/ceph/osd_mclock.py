"""How an OSD's mClock scheduler shares the OSD: what waits in its queues, and what each class of operations gets.

``perf dump`` and ``config get`` on the admin socket; ``src/osd/scheduler/mClockScheduler.cc`` of Ceph and
https://docs.ceph.com/en/latest/rados/configuration/mclock-config-ref/::

    {"mclock-shard-queue-0": {"mclock_immediate_queue_len": 0, "mclock_client_queue_len": 3,
                              "mclock_recovery_queue_len": 1, "mclock_best_effort_queue_len": 0, …}, …}

    config get osd_mclock_profile                           →  {"osd_mclock_profile": "balanced"}
    config get osd_mclock_scheduler_client_res              →  {"osd_mclock_scheduler_client_res": "0.500000"}
    config get osd_mclock_scheduler_background_recovery_lim →  {…: "0.000000"}

Each shard of operations has a scheduler of its own. Ceph 18 and 20 count the operations that wait in it now, 16 does
not, and neither of Ceph's exporters shows them: their priority is 0. Immediate are those that pass by the scheduler:
writes as a replica, peering, and what has a priority from ``osd_op_queue_cut_off`` up. Best effort are scrubs, trimming
of snapshots, deletion.

Of the OSD's capacity a class gets its reservation (``_res``) first and at most its limit (``_lim``; 0: no limit). The
profile sets both. Ceph 16 has operations a second here and prints them without a point.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.errors import ParseError
from plumbline.sources.ceph.adminsocket import decode
from plumbline.sources.ceph.osd_perf import parse_option

_Count = Annotated[int, Meta(ge=0)]

CLASSES = ("immediate", "client", "recovery", "best_effort")
PROFILE_OPTION = "osd_mclock_profile"
SHARE_OPTIONS = {
    (kind, share): f"osd_mclock_scheduler_{option}_{short}"
    for kind, option in zip(CLASSES[1:], ("client", "background_recovery", "background_best_effort"), strict=True)
    for share, short in (("reservation", "res"), ("limit", "lim"))
}


class _ShardQueue(msgspec.Struct, frozen=True, rename="mclock_{}_queue_len".format):
    immediate: _Count = 0
    client: _Count = 0
    recovery: _Count = 0
    best_effort: _Count = 0


def parse_queues(counters: bytes, *, source: str) -> dict[str, int]:
    """Parse ``perf dump``: operations that wait in the queues of all shards, by class; empty where Ceph counts none: in
    release 16, or with another scheduler."""
    shards = [
        decode(_ShardQueue, bytes(raw), source=f"{source}: {name}")
        for name, raw in decode(dict[str, msgspec.Raw], counters, source=source).items()
        if name.startswith("mclock-shard-queue-")
    ]
    return {kind: sum(getattr(shard, kind) for shard in shards) for kind in CLASSES} if shards else {}


def parse_share(data: bytes, option: str, *, source: str) -> float | None:
    """A reservation or limit as a share of the capacity; ``None`` for one in operations a second, as Ceph 16 has it."""
    text = parse_option(data, option, source=source)
    if text.isascii() and text.isdecimal():
        return None
    try:
        share = float(text)
    except ValueError:
        raise ParseError(source, f"{option} = {text[:40]!r}: not a number") from None
    if not 0 <= share <= 1:  # also rejects nan
        raise ParseError(source, f"{option} = {text[:40]!r}: not a share")
    return share
