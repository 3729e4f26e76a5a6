"""A thread that gets no CPU: it gives way to everything else on a CPU that another process keeps busy."""

import hashlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ALL = os.sched_getaffinity(0)
_CPU = min(_ALL)
_ROUNDS = 2_000_000  # a second of a CPU, minutes of what the other process leaves
_AFTER_S = 0.05


@contextmanager
def no_cpu_to_spare() -> Iterator[Callable[[], None]]:
    """Work that hardly proceeds meanwhile, and ends soon afterwards; the interpreter's lock is free."""
    over = threading.Event()
    working: list[int] = []

    def give_way(thread: int) -> None:
        if over.is_set():
            return
        os.sched_setaffinity(thread, {_CPU})
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))

    def work() -> None:
        thread = threading.get_native_id()
        working.append(thread)
        # once it computes, where it does not hold the interpreter's lock: all others would wait with it
        threading.Timer(_AFTER_S, give_way, (thread,)).start()
        while not over.is_set():
            hashlib.pbkdf2_hmac("sha256", b"", b"", _ROUNDS)

    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            os.sched_setaffinity(busy.pid, {_CPU})
            yield work
        finally:
            over.set()
            busy.kill()
            for thread in working:  # what else runs on this machine may be busy, too
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
                os.sched_setaffinity(thread, _ALL)
