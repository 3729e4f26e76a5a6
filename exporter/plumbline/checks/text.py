"""Formats figures as text."""

from collections.abc import Iterable

from plumbline.checks.growth import Count

_LISTED = 4


def counted(count: Count, unit: str) -> str:
    """``750,466 frames since boot, 12 of them recently``."""
    text = f"{plural(count.total, unit)} since boot"
    if count.grew is None:
        return text
    return f"{text}, {count.grew:,} of them recently" if count.grew else f"{text}, none recently"


def plural(count: int, unit: str) -> str:
    """``no frames``, ``1 frame``, ``1,200 frames``."""
    if count == 1:
        return f"1 {unit}"
    return f"{count:,} {unit}s" if count else f"no {unit}s"


def listed(words: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    every = list(words)
    more = len(every) - _LISTED
    return ", ".join(every) if more <= 0 else f"{', '.join(every[:_LISTED])} and {more:,} more"
