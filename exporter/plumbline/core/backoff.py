"""How long to wait before the next attempt. Light: workers import it."""


class Backoff:
    """Delays between attempts: 1 s after the first failure, doubled after each further one, at most 60 s."""

    FIRST_S, LAST_S = 1.0, 60.0

    def __init__(self) -> None:
        self._next_s = self.FIRST_S

    def failed(self) -> float:
        """Record a failure; the seconds to wait before the next attempt."""
        now_s = self._next_s
        self._next_s = min(self.LAST_S, 2 * now_s)
        return now_s

    def settled(self) -> None:
        """Record a success: the next failure counts as the first again."""
        self._next_s = self.FIRST_S

    def lasted(self, seconds: float) -> None:
        """Count a run as a success only if it lasted at least a minute."""
        if seconds >= self.LAST_S:
            self.settled()
