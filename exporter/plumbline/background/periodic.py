"""One reading outside the scrape: the slot that keeps it and the job that fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from plumbline.core.scheduler import Job
from plumbline.core.slot import Slot

T = TypeVar("T")


class PeriodicSlot(Slot[T]):
    """Filled every ``every_s`` seconds by its job, which is called ``name``; stale after four intervals."""

    def __init__(
        self, name: str, every_s: float, what: str, read: Callable[[], T], *, cancel: Callable[[], None] = lambda: None
    ) -> None:
        """``what`` names the reading in errors. ``read`` limits its own run time; ``cancel`` ends it at once."""
        super().__init__(read, what=what, stale_after_s=4 * every_s)
        self.job = Job(name, every_s, 0.0, self.refresh, cancel=cancel)
