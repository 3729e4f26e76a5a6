"""Log messages about a canary: one line per kind of problem, and one when it works again."""

from __future__ import annotations

import logging

from plumbline.probes.canary.reading import CanaryReading

log = logging.getLogger(__name__)


class CanaryLog:
    """Logs each kind of problem once until the canary works again: an operation that hangs, then times out and is
    followed by the next that hangs would log two lines a minute for as long as the disk or the cluster is gone."""

    def __init__(self) -> None:
        self._said = set[str]()

    def look(self, reading: CanaryReading) -> None:
        """Log what is new in ``reading``; nothing while its state is still unknown."""
        if reading.reason == "preparing" or (not reading.reason and not reading.success):
            return
        if not reading.reason:
            if self._said:
                log.info("canary %s: works again", reading.probe)
            self._said.clear()
        elif reading.reason not in self._said:
            self._said.add(reading.reason)
            log.warning("canary %s: %s: %s", reading.probe, reading.reason, reading.message)
