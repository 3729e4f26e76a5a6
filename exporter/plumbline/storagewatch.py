"""What is read of the disk layer outside the scrape: each part in a slot of its own, by a job of its own.

A disk that hangs holds back the one job that asked it; the others go on, and the scrape shows how old a slot is.
"""

from __future__ import annotations

from plumbline.roots import Roots
from plumbline.scheduler import Job


class StorageWatch:
    """The latest reading of each part. Every slot is replaced whole, so anybody may look."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots

    def jobs(self) -> list[Job]:
        """What keeps the slots filled; each job is bounded by itself."""
        return []
