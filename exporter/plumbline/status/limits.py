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
BACKLOG_DROPS: Final = 10
"""PlumblineSoftnetBacklogOverflow"""
