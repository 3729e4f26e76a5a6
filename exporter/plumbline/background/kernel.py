"""Kernel readings taken every few seconds outside the scrape, because they take too long or need two samples.

Interrupt counters, receive-loop squeezes, kernel settings. Each part fails on its own and keeps its error.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from plumbline.core.roots import Roots
from plumbline.core.slot import Slot
from plumbline.sources.kernel.irqbalance import IrqBalanceReader
from plumbline.sources.kernel.squeeze import SqueezeReader
from plumbline.sources.kernel.sysctl import SysctlReading, read_sysctl

log = logging.getLogger(__name__)


class KernelWatch:
    """The latest of each. A job calls :meth:`refresh`; values are replaced as a whole, so any thread may read them."""

    def __init__(
        self, *, roots: Roots, clock: Callable[[], float], ticks_per_s: int, keep_nic: Callable[[str], bool]
    ) -> None:
        """``clock`` returns monotonic seconds, ``ticks_per_s`` is ``os.sysconf("SC_CLK_TCK")``."""
        self.interrupts = IrqBalanceReader(roots=roots, clock=clock, keep=keep_nic)
        self.squeezes = SqueezeReader(roots=roots, ticks_per_s=ticks_per_s)
        self._sysctl = Slot[SysctlReading](
            lambda: read_sysctl(roots, on_skip=lambda name, reason: log.debug("%s: %s", name, reason)),
            what="kernel settings",
        )

    def refresh(self, _cancel: threading.Event) -> None:
        """Read all parts again."""
        self.interrupts.refresh()
        self.squeezes.refresh()
        self._sysctl.refresh()

    @property
    def sysctl(self) -> SysctlReading:
        """The latest settings; raises the error of the last reading if it failed."""
        return self._sysctl.value
