"""What the log gets: records on one line, and a bounded number of those that somebody else causes.

A memory of what was logged must not be keyed by anything that comes from outside: it would grow, or fill up and leave
no place for the daemon's own failures. So the keys are members of an :class:`~enum.Enum`, which the code alone defines.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum

from plumbline.core.escape import visible


class LogLimit:
    """Whether to log an event: at most once in ``every_s`` seconds for each kind. Threads may share it."""

    def __init__(self, every_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._lock = threading.Lock()
        self._logged_at: dict[Enum, float] = {}

    def due(self, kind: Enum) -> bool:
        """Whether to log an event of this kind now; ``True`` counts as logged."""
        with self._lock:
            now = self._clock()
            logged_at = self._logged_at.get(kind)
            if logged_at is not None and now - logged_at < self._every_s:
                return False
            self._logged_at[kind] = now
            return True


class VisibleFormatter(logging.Formatter):
    """Formats a record as one line, apart from the lines of a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        return visible(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  (logging's name)
        return "\n".join(visible(line) for line in super().formatException(ei).split("\n"))  # type: ignore[arg-type]


class JournalFormatter(VisibleFormatter):
    """With the priority before each line, as sd-daemon(3) says; the journal has the time."""

    def format(self, record: logging.LogRecord) -> str:
        priority = next(number for level, number in _PRIORITIES if record.levelno >= level)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).split("\n"))


_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (0, 7))


def is_journal(fd: int, environment: Mapping[str, str]) -> bool:
    """Whether systemd reads what is written to this file: $JOURNAL_STREAM of systemd.exec(5)."""
    try:
        status = os.fstat(fd)
    except OSError:  # closed
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
