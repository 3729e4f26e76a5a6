"""Formats figures as text."""

from plumbline.checks.growth import Count


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
