"""What the log says of a canary: a line for each kind of wrong, and one when all is well again."""

from __future__ import annotations

import logging

from plumbline.probes.canary.reading import CanaryReading

log = logging.getLogger(__name__)


class CanaryLog:
    """Each kind of wrong once until it is well again: an operation that hangs, fails by its timeout and is followed by
    the next that hangs would be two lines a minute for as long as the disk or the cluster is gone."""

    def __init__(self) -> None:
        self._said = set[str]()

    def look(self, reading: CanaryReading) -> None:
        """Say what is new in ``reading``; nothing while nobody knows yet."""
        if reading.reason == "preparing" or (not reading.reason and not reading.success):
            return
        if not reading.reason:
            if self._said:
                log.info("canary %s: works again", reading.probe)
            self._said.clear()
        elif reading.reason not in self._said:
            self._said.add(reading.reason)
            log.warning("canary %s: %s: %s", reading.probe, reading.reason, reading.message)
