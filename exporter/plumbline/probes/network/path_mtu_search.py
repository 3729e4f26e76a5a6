"""Finds the biggest packet that passes, with few packets; a pure search over an oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

USUAL = (1500, 9000)
"""The most frequent answers: Ethernet's own size, and the usual jumbo size. Tried before bisecting."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a packet of some size passed; ``hint``: the biggest size that a router on the path reported."""

    passes: bool
    hint: int | None = None


def biggest(low: int, high: int, ask: Callable[[int], Verdict]) -> int:
    """The biggest size in [``low``, ``high``] that passes ``ask``, given that ``low`` does.

    Tries ``high`` first (the usual answer, one packet), then routers' hints and the usual sizes, then bisects. Silence
    counts as an answer: a switch that drops an oversized packet reports nothing.
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
        return hint + (hint == passing)  # the router's claim; the next byte verifies it
    for usual in USUAL:
        if passing < usual < failing:
            return usual
        if passing == usual < failing - 1:
            return usual + 1  # the usual size passes: most likely not one byte more does
    return (passing + failing) // 2
