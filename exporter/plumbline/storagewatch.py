"""What is read of the disk layer outside the scrape: each part in a slot of its own, by a job of its own.

A disk that hangs holds back the one job that asked it; the others go on, and the scrape shows how old a slot is.
"""

from __future__ import annotations

from plumbline.errors import Unavailable
from plumbline.healthwatch import LOOK_EVERY_S, HealthWatch
from plumbline.roots import Roots
from plumbline.scheduler import Job
from plumbline.sources.diskhealth import DiskState

HEALTH = "disk health"


class StorageWatch:
    """The latest reading of each part. Every slot is replaced whole, so anybody may look."""

    def __init__(self, roots: Roots, *, health: HealthWatch | None = None) -> None:
        """Without ``health`` no disk is asked for its own."""
        self._roots, self._health = roots, health

    def jobs(self) -> list[Job]:
        """What keeps the slots filled; each job is bounded by itself."""
        health = self._health
        return [Job(HEALTH, LOOK_EVERY_S, 0.0, health.refresh)] if health is not None else []

    @property
    def health(self) -> tuple[DiskState, ...]:
        """Every disk's health; :class:`Unavailable` where there is none to ask, or nobody asks."""
        if self._health is None:
            raise Unavailable("nobody asks disks for their health")
        return self._health.states
