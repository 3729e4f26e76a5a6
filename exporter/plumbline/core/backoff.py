"""How long to wait before the next try. Light: workers import it."""

from __future__ import annotations


class Backoff:
    """A second after the first failure, twice as long after each further one, a minute at most."""

    FIRST_S, LAST_S = 1.0, 60.0

    def __init__(self) -> None:
        self._next_s = self.FIRST_S

    def failed(self) -> float:
        """Seconds to wait now."""
        now_s = self._next_s
        self._next_s = min(self.LAST_S, 2 * now_s)
        return now_s

    def settled(self) -> None:
        """It works: the next failure is a first one."""
        self._next_s = self.FIRST_S

    def lasted(self, seconds: float) -> None:
        """Something that failed at once is no success; what lived for a minute is."""
        if seconds >= self.LAST_S:
            self.settled()
