"""The answer of a worker that times operations one by one, and the probe's result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plumbline.probes.apart import Failed
from plumbline.probes.result import Outcome, ProbeResult, summarise

if TYPE_CHECKING:  # a worker imports this
    from plumbline.core.process import Completed
    from plumbline.probes.model import Identity


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
