"""From which loss on the alerts tell somebody: the page calls nothing out of line that no alert is about.

``tests/rules/test_page_limits.py`` holds these figures against the rendered alerts.
"""

from typing import Final

from msgspec import Struct


class Limit(Struct, frozen=True):
    """``minimum``: packets; ``share``: of all packets of the port and direction. ``causes``: ``None`` means all."""

    minimum: int
    share: float
    causes: frozenset[str] | None = None


LOSSES: Final = {
    "drops": Limit(10, 1e-5, frozenset({"ring", "fifo"})),  # PlumblineNicRingDrops, PlumblineNicFifoDrops
    "errors": Limit(10, 1e-6),  # PlumblineNicErrors
}


class Peers(Struct, frozen=True):
    """``minimum``: disks, the judged one included, with at least ``per_second`` operations. One with more than ``load``
    times the median's operations is not judged. ``ratio``: of its p99 to the median's; ``floor_s``: the least p99 that
    counts."""

    operations: frozenset[str]
    minimum: int
    per_second: float
    load: float
    ratio: float
    floor_s: float


PEERS: Final = Peers(frozenset({"read", "write", "flush"}), 3, 2.0, 4.0, 4.0, 1e-3)
"""PlumblineDiskLatencyOutlier"""
BACKLOG_DROPS: Final = 10
"""PlumblineSoftnetBacklogOverflow"""
