"""Run our own code in a separate process, if it may hang in the kernel or is too heavy for the daemon.

The daemon starts it through a :class:`~plumbline.core.process.Runner`, so that it is bounded in time and killed as a
group, and reads one JSON document from its standard output: a refusal, a failure, or the result. Arguments are visible
in the process list: never pass a secret among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plumbline.core.foreign import decode_json
from plumbline.probes.run.result import Outcome, ProbeResult, summarise

if TYPE_CHECKING:  # workers import this
    from plumbline.core.process import Completed
    from plumbline.probes.run.model import Identity


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
    return decode_json(output, kind, source=source)


class Timed(msgspec.Struct, frozen=True, tag_field="kind", tag="done"):
    """Nanoseconds of each operation, by name. ``version``: of the library that did them."""

    spent: dict[str, tuple[int, ...]] = {}
    version: str = ""


def timed_result(
    identity: Identity,
    answer: Timed | Failed,
    completed: Completed,
    *,
    started: float,
    version: str,
    count: int,
    sizes: dict[str, int] | None = None,
) -> ProbeResult:
    """The result of a run of ``count`` operations of each name; ``sizes``: the bytes that one operation moves."""
    spent = answer.spent if isinstance(answer, Timed) else {}
    counts = {name: len(spent.get(name, ())) for name in identity.operations}
    short = next((name for name in counts if counts[name] != count), None)
    if isinstance(answer, Timed) and short is not None:
        answer = Failed(f"{short}: {counts[short]} of {count} operations were reported")
    outcome, message = Outcome.SUCCESS, ""
    if isinstance(answer, Failed):
        outcome, message, spent = Outcome.TIMEOUT if answer.timeout else Outcome.FAILURE, answer.message, {}
    return identity.result(
        tool_version=version,
        started=started,
        duration=completed.duration_s,
        outcome=outcome,
        operations=tuple(summarise(name, spent[name], bytes_each=(sizes or {}).get(name, 0)) for name in spent),
        message=message,
    )
