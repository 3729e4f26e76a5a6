"""What the check of disk latencies asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LatencyFacts:
    """``unavailable``: why there are no histograms; empty: there are; ``None``: not known, or not to be had here."""

    unavailable: str | None = None
    restart_required: bool = False
    """Some disks' requests are in no histogram until the daemon is restarted."""
