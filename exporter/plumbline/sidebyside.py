"""Questions that may never be answered, asked side by side and given up after a while.

A read that waits for a dead disk, for a lock in the kernel or for a name server can't be interrupted: its thread is
left with it, and ends when it is answered or with the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def ask_side_by_side(
    asks: Mapping[K, Callable[[], T]], within_s: float, *, what: str = "ask"
) -> tuple[dict[K, T], frozenset[K]]:
    """The answers there are within ``within_s`` seconds for all together, and who is silent still.

    A question that raises is in neither; what it raises is its own to catch. ``what``: for the threads' names.
    """
    found: dict[K, T] = {}

    def one(key: K) -> None:
        found[key] = asks[key]()

    threads = {key: threading.Thread(target=one, args=(key,), name=f"{what}-{key}", daemon=True) for key in asks}
    deadline = time.monotonic() + within_s
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(max(0.0, deadline - time.monotonic()))
    answered = dict(found)  # who is late may write to the other
    return answered, frozenset(key for key, thread in threads.items() if thread.is_alive() and key not in answered)
