"""Run our own code in a separate process, if it may hang in the kernel or is too heavy for the daemon.

The daemon starts it through a :class:`~plumbline.core.process.Runner`, so that it is bounded in time and killed as a
group, and reads one JSON document from its standard output. Arguments are visible in the process list: never pass a
secret among them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from plumbline.core.process import Completed
from plumbline.errors import ParseError

_NOTE_MAX = 300


class Refused(msgspec.Struct, frozen=True, tag_field="kind", tag="refused"):
    """The worker's form of :class:`ProbeRefused`."""

    reason: str
    message: str


class Failed(msgspec.Struct, frozen=True, tag_field="kind", tag="failed"):
    """The worker started and failed; ``timeout``: it ran out of time."""

    message: str
    timeout: bool = False


def parse_answer(output: bytes, kind: Any, *, source: str) -> Any:
    """The document a worker printed, as ``kind`` (a struct or a union); :class:`ParseError` for anything else."""
    try:
        return msgspec.json.decode(output, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(source, f"not the expected answer: {' '.join(str(error).split())[:_NOTE_MAX]}") from error


def last_line(completed: Completed) -> str:
    """The last line of standard error, where an interpreter reports the exception."""
    lines = completed.stderr.decode("utf-8", "replace").split("\n")
    return next((line.strip()[:_NOTE_MAX] for line in reversed(lines) if line.strip()), "")
