"""From the collector's state to what the check of disk latencies asks."""

from __future__ import annotations

from plumbline.checks.latency_facts import LatencyFacts
from plumbline.seriesview import SeriesView
from plumbline.sources.blocklatency import HOPELESS


def latency_facts(view: SeriesView) -> LatencyFacts:
    """Nobody is advised to get what this kernel or machine can't have."""
    reason = view.unavailable("latency")
    return LatencyFacts(
        None if reason and any(word in reason for word in HOPELESS) else reason,
        bool(view.series("plumbline_disk_latency_restart_required").get((), 0)),
    )
