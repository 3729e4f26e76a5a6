"""What is read of the disk layer outside the scrape: each part in a slot of its own, by a job of its own.

A disk that hangs holds back the one job that asked it; the others go on, and the scrape shows how old a slot is.
"""

from __future__ import annotations

from plumbline.latest import Latest
from plumbline.roots import Roots
from plumbline.scheduler import Job
from plumbline.sources.queuesettings import QueueReading, read_queue_settings

QUEUES, QUEUES_EVERY_S = "disk queues", 60.0
"""A setting changes when somebody changes it: a minute late is early enough."""


class StorageWatch:
    """The latest reading of each part. Every slot is replaced whole, so anybody may look."""

    def __init__(self, roots: Roots) -> None:
        self.queues = Latest[QueueReading](
            lambda: read_queue_settings(roots), what="disk queue settings", stale_after_s=4 * QUEUES_EVERY_S
        )

    def jobs(self) -> list[Job]:
        """What keeps the slots filled; each job is bounded by itself."""
        return [
            Job(QUEUES, QUEUES_EVERY_S, 0.0, self.queues.refresh),
        ]
