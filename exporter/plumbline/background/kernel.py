"""What is read outside the scrape every few seconds, because it is too much for one or needs two readings.

Interrupt counters, receive-loop squeezes, kernel settings. Each part fails for itself and keeps its error.
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
    """The latest of each. :meth:`refresh` is a job's; whatever it keeps is replaced whole, so anybody may look."""

    def __init__(
        self, *, roots: Roots, clock: Callable[[], float], ticks_per_s: int, keep_nic: Callable[[str], bool]
    ) -> None:
        """``clock`` gives monotonic seconds, ``ticks_per_s`` is ``os.sysconf("SC_CLK_TCK")``."""
        self.interrupts = IrqBalanceReader(roots=roots, clock=clock, keep=keep_nic)
        self.squeezes = SqueezeReader(roots=roots, ticks_per_s=ticks_per_s)
        self._sysctl = Slot[SysctlReading](
            lambda: read_sysctl(roots, on_skip=lambda name, reason: log.debug("%s: %s", name, reason)),
            what="kernel settings",
        )

    def refresh(self, _cancel: threading.Event) -> None:
        """Read all of it again."""
        self.interrupts.refresh()
        self.squeezes.refresh()
        self._sysctl.refresh()

    @property
    def sysctl(self) -> SysctlReading:
        """The settings as last read; raises what reading them raised."""
        return self._sysctl.value
