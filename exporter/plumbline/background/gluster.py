"""GlusterFS, asked once a minute: the state of every host from its own glusterd, entries to be healed by one host.

A count of entries holds the lock of its volume, and whoever changes the volume in that moment is refused. So a single
host of the pool asks, and for a few volumes a minute.
"""

import logging
import math
import time
from collections.abc import Callable

from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.core.slot import PeriodicSlot
from plumbline.errors import PlumblineError
from plumbline.sources.gluster import GlusterReading, GlusterState, read_heals, read_state

log = logging.getLogger(__name__)

EVERY_S = 60.0
VOLUMES_AT_ONCE = 5  # each takes a third of a second and 0.1 s of CPU
KEPT_S = 900.0  # an answer; the next one may be refused, because somebody else holds the lock


class GlusterWatch:
    """The slot of the latest reading; its job asks."""

    def __init__(self, roots: Roots, runner: ProcessRunner, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._roots, self._runner, self._clock = roots, runner, clock
        self._asked: dict[str, float] = {}
        self._heals: dict[str, tuple[float, dict[str, int]]] = {}
        self.slot = PeriodicSlot[GlusterReading](
            "gluster", EVERY_S, "GlusterFS", self._read, serves=("gluster",), cancel=runner.stop
        )

    def _read(self) -> GlusterReading:
        state = read_state(self._roots, self._runner)
        return GlusterReading(state, self._counted(state))

    def _counted(self, state: GlusterState) -> dict[tuple[str, str], int]:
        now = self._clock()
        names = {volume.name for volume in state.volumes if volume.replicated} if state.asks else set[str]()
        self._asked = {name: self._asked.get(name, -math.inf) for name in sorted(names)}
        for name in sorted(self._asked, key=lambda name: self._asked[name])[:VOLUMES_AT_ONCE]:
            self._asked[name] = now
            try:
                self._heals[name] = now, read_heals(name, self._runner)
            except PlumblineError as error:
                log.debug("volume %s: %s", name, error)
        self._heals = {
            name: (at, heals) for name, (at, heals) in self._heals.items() if name in names and now - at < KEPT_S
        }
        return {(name, brick): entries for name, (_, heals) in self._heals.items() for brick, entries in heals.items()}
