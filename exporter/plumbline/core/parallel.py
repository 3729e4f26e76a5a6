"""Calls that may never return, made in parallel and abandoned after a timeout.

A read that waits for a dead disk, a kernel lock or a name server can't be interrupted: its thread is left behind, and
ends when the read returns or with the process.
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
    """The answers that came within ``within_s`` seconds altogether, and the keys of those still unanswered.

    A call that raises is in neither; the exception is logged. ``what`` names the purpose of the threads.
    """
    found: dict[K, T] = {}

    def one(key: K) -> None:
        found[key] = asks[key]()

    deadline = time.monotonic() + within_s
    asked = {key: threads.start(what, partial(one, key), of=str(key)) for key in asks}
    for thread in asked.values():
        thread.join(max(0.0, deadline - time.monotonic()))
    answered = dict(found)  # late threads may still write to the original
    return answered, frozenset(key for key, thread in asked.items() if thread.is_alive() and key not in answered)


def in_turn(items: Sequence[Item], do: Callable[[Item], T], at_once: int, *, what: str) -> Iterator[T]:
    """The results of ``do`` in the order of ``items``, ``at_once`` of them in parallel; the first error ends it."""
    left = deque(enumerate(items))
    done: list[SimpleQueue[tuple[T] | Exception]] = [SimpleQueue() for _ in items]

    def work() -> None:
        while left:
            try:
                index, item = left.popleft()
            except IndexError:  # another thread took the last item
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
