"""Questions that may never be answered, asked side by side and given up after a while.

A read that waits for a dead disk, for a lock in the kernel or for a name server can't be interrupted: its thread is
left with it, and ends when it is answered or with the process.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from plumbline.core import threads

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Item = TypeVar("Item")


def ask_side_by_side(
    asks: Mapping[K, Callable[[], T]], within_s: float, *, what: str = "ask"
) -> tuple[dict[K, T], frozenset[K]]:
    """The answers there are within ``within_s`` seconds for all together, and who is silent still.

    A question that raises is in neither; that is logged as a mistake. ``what``: what the threads are for.
    """
    found: dict[K, T] = {}

    def one(key: K) -> None:
        found[key] = asks[key]()

    deadline = time.monotonic() + within_s
    asked = {key: threads.start(what, partial(one, key), of=str(key)) for key in asks}
    for thread in asked.values():
        thread.join(max(0.0, deadline - time.monotonic()))
    answered = dict(found)  # who is late may write to the other
    return answered, frozenset(key for key, thread in asked.items() if thread.is_alive() and key not in answered)


def in_turn(items: Sequence[Item], do: Callable[[Item], T], at_once: int, *, what: str) -> Iterator[T]:
    """``do`` of each item in their order, ``at_once`` of them under way together; the first error ends it."""
    left = deque(enumerate(items))
    done: list[SimpleQueue[tuple[T] | Exception]] = [SimpleQueue() for _ in items]

    def work() -> None:
        while left:
            try:
                index, item = left.popleft()
            except IndexError:  # another took the last one
                return
            try:
                done[index].put((do(item),))
            except Exception as error:  # noqa: BLE001  (raised again where the answer is waited for)
                done[index].put(error)

    for number in range(min(at_once, len(items))):
        threads.start(what, work, of=str(number))
    try:
        for each in done:
            answer = each.get()
            if isinstance(answer, Exception):
                raise answer
            yield answer[0]
    finally:
        left.clear()
