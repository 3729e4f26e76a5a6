"""The times of a probe's record, where the wall clock is or was wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plumbline.core.wall_clock import SLACK_S, moved

if TYPE_CHECKING:
    from plumbline.probes.run.state import ProbeRecord


def moved_record(record: ProbeRecord, by_s: float) -> ProbeRecord:
    """The record after the wall clock was set by so much: everything is as old as before."""
    return msgspec.structs.replace(
        moved(record, by_s, "ticked"),
        result=record.result and moved(record.result, by_s, "started"),
        success=record.success and moved(record.success, by_s, "started"),
        failures=tuple(moved(failure, by_s, "started") for failure in record.failures),
    )


def as_of(record: ProbeRecord, now: float) -> ProbeRecord:
    """The record of an earlier process. A time in the future was written under a wrong clock and says nothing: the
    probe counts as never run, and its last success as of now, so that it becomes old."""
    if record.result is None or record.result.started <= now + SLACK_S:
        return record
    success = record.success and msgspec.structs.replace(record.success, started=min(record.success.started, now))
    return msgspec.structs.replace(record, result=None, success=success, failures=(), ticked=None)
