"""The one way to start a thread in this package: one that ends by a mistake is noticed, said and counted.

Python prints what ended a thread and goes on without it: a job that never runs again, a port that nobody accepts on.
A thread that is to live (``until``) is started again; one with a single task has said what went wrong.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from plumbline.core.backoff import Backoff


class Threads:
    """Starts threads, and counts those that failed by what they are for."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, backoff: Callable[[], Backoff] = Backoff):
        """``clock``: monotonic seconds. ``backoff``: how long until a thread is started again."""
        self._clock, self._backoff = clock, backoff
        self._lock = threading.Lock()
        self._failures: dict[str, int] = {}

    @property
    def failures(self) -> Mapping[str, int]:
        """What threads were started for → how often one of them ended by a mistake."""
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
        """Run ``target`` in a daemon thread. ``RuntimeError`` where the system gives no more threads.

        ``name`` says what it is for, and is a label's value: one of few. ``of``: which one, for the log and debuggers.
        With ``until`` the target is called again after a mistake, until that is set or it returns. ``died`` is told of
        a mistake instead of the log.
        """
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
            except Exception as error:  # noqa: BLE001  (this is where it is noticed)
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


PROCESS = Threads()
"""Of this process, whose threads they all are: what starts one deep below need not be handed this from the top."""
start = PROCESS.start
