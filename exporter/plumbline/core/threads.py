"""The only way to start a thread in this package: a thread that ends by an exception is logged and counted.

Python prints the exception and goes on without the thread: a job never runs again, a port accepts no connections. A
long-lived thread (``until``) is restarted; one with a single task only reports what went wrong.
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from plumbline.core.backoff import Backoff


class Threads:
    """Starts threads, and counts failed ones by purpose."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, backoff: Callable[[], Backoff] = Backoff):
        """``clock``: monotonic seconds. ``backoff``: makes the delays before a thread is restarted."""
        self._clock, self._backoff = clock, backoff
        self._lock = threading.Lock()
        self._failures: dict[str, int] = {}

    @property
    def failures(self) -> Mapping[str, int]:
        """Purpose of a thread → how often one ended by an exception."""
        with self._lock:
            return dict(self._failures)

    def start(
        self,
        name: str,
        target: Callable[[], object],
        *,
        of: str = "",
        until: threading.Event | None = None,
        died: Callable[[Exception], object] | None = None,
    ) -> threading.Thread:
        """Run ``target`` in a daemon thread; ``RuntimeError`` if the system can't start another. ``name`` is the
        purpose and becomes a label value: use few. ``of``: which one, for the log and debuggers. With ``until`` the
        target is called again after an exception, until that event is set or it returns. ``died`` gets an exception
        instead of the log; then it isn't called again."""
        full = f"{name}-{of}" if of else name
        with self._lock:
            self._failures.setdefault(name, 0)
        run = partial(self._run, name, full, target, until, died)
        thread = threading.Thread(target=run, name=full, daemon=True)
        thread.start()
        return thread

    def _run(
        self,
        name: str,
        full: str,
        target: Callable[[], object],
        until: threading.Event | None,
        died: Callable[[Exception], object] | None,
    ) -> None:
        backoff, failed = self._backoff(), 0
        while True:
            began = self._clock()
            try:
                target()
            except Exception as error:  # noqa: BLE001  (the purpose of this function)
                with self._lock:
                    self._failures[name] += 1
                if died is not None:
                    died(error)
                    return
                if until is not None and until.is_set():
                    again_s = None
                else:
                    backoff.lasted(self._clock() - began)
                    again_s = None if until is None else backoff.failed()
                failed += 1
                _say(full, error, failed, again_s)
                if until is None or again_s is None or until.wait(again_s):
                    return
            else:
                return


def _say(thread: str, error: Exception, failed: int, again_s: float | None) -> None:
    import logging  # noqa: PLC0415  (workers start threads, and have no log)

    what = f"thread {thread} failed" + (f" for the {failed}th time" if failed > 3 else "")
    what += "" if again_s is None else f"; it is started again in {again_s:g} s"
    logging.getLogger(__name__).error(
        "%s: %s: %s", what, type(error).__name__, error, exc_info=error if failed == 1 else None
    )


PROCESS = Threads()  # This process's threads; global, so that code deep below the top can start one
start = PROCESS.start
