"""The biggest packet that passes, found with few packets; a pure search over an oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

USUAL = (1500, 9000)
"""Most answers: Ethernet's own size, and what everybody calls jumbo. Tried before the middle of what is left."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a packet of some size passed; ``hint``: the biggest that a router on the path said it carries."""

    passes: bool
    hint: int | None = None


def biggest(low: int, high: int, ask: Callable[[int], Verdict]) -> int:
    """The biggest size in [``low``, ``high``] that ``ask`` lets pass, given that ``low`` does.

    Asks first for ``high`` (the usual answer, one packet), then what routers hint at and the usual sizes, then
    halves. Silence is an answer, too: a switch that drops what is too big says nothing.
    """
    first = ask(high)
    if first.passes or high <= low:
        return high if first.passes else low
    passing, failing, hint = low, high, first.hint
    while failing - passing > 1:
        size = _next(passing, failing, hint)
        verdict = ask(size)
        hint = verdict.hint or hint
        if verdict.passes:
            passing = size
        else:
            failing = size
    return passing


def _next(passing: int, failing: int, hint: int | None) -> int:
    if hint is not None and passing <= hint < failing - (hint == passing):
        return hint + (hint == passing)  # it said so, and the next byte shows whether that is true
    for usual in USUAL:
        if passing < usual < failing:
            return usual
        if passing == usual < failing - 1:
            return usual + 1  # passes up to here and not one byte more: most likely all there is to find
    return (passing + failing) // 2
