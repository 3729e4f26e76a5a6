"""Code of ours in a process of its own: what may hang in the kernel, or is too heavy for the daemon.

The daemon starts it through a :class:`~plumbline.core.process.Runner`, so that it is bounded in time and killed as a
group, and reads one JSON document from its standard output. Arguments stand in the process list: no secret among them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from plumbline.core.process import Completed
from plumbline.errors import ParseError

_NOTE_MAX = 300


class Refused(msgspec.Struct, frozen=True, tag_field="kind", tag="refused"):
    """The worker says what :class:`ProbeRefused` says."""

    reason: str
    message: str


class Failed(msgspec.Struct, frozen=True, tag_field="kind", tag="failed"):
    """It began and went wrong; ``timeout``: it ran out of its time."""

    message: str
    timeout: bool = False


def parse_answer(output: bytes, kind: Any, *, source: str) -> Any:
    """The document a worker printed, as ``kind`` (a struct or a union); :class:`ParseError` where it is none."""
    try:
        return msgspec.json.decode(output, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(source, f"not the expected answer: {' '.join(str(error).split())[:_NOTE_MAX]}") from error


def last_line(completed: Completed) -> str:
    """Of standard error: where an interpreter says what went wrong."""
    lines = completed.stderr.decode("utf-8", "replace").split("\n")
    return next((line.strip()[:_NOTE_MAX] for line in reversed(lines) if line.strip()), "")
