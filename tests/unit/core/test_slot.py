"""The slot between a background reading and the scrape."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from plumbline.core.slot import Slot
from plumbline.errors import ParseError, PlumblineError, Unavailable
from support.daemon import eventually
from support.starvation import no_cpu_to_spare


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def make(results: Iterator[object], clock: Clock) -> Slot[object]:
    def read() -> object:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    return Slot(read, what="counters", stale_after_s=60.0, clock=clock)


def test_the_latest_value_until_it_is_stale() -> None:
    clock = Clock()
    latest = make(iter((1, 2)), clock)
    with pytest.raises(Unavailable, match="counters have not been read yet"):
        _ = latest.value
    latest.refresh()
    assert latest.value == 1
    clock.now += 60
    assert latest.value == 1
    clock.now += 1
    with pytest.raises(PlumblineError, match="counters: no answer for 61 s: the daemon has not begun"):
        _ = latest.value
    latest.refresh()
    assert latest.value == 2


def test_an_error_is_shown_in_place_of_the_value_and_keeps_its_kind() -> None:
    latest = make(iter((7, Unavailable("no adapter"), ParseError("f", "broken"), 8)), Clock())
    latest.refresh()
    latest.refresh()
    for _ in range(2):
        with pytest.raises(Unavailable, match="no adapter") as caught:
            _ = latest.value
    assert caught.traceback[-1].name == "value"
    latest.refresh()
    with pytest.raises(ParseError, match="broken"):
        _ = latest.value
    latest.refresh()
    assert latest.value == 8


def test_a_first_read_that_hangs_becomes_a_fault() -> None:
    clock = Clock()
    during: list[str] = []

    def hang() -> int:
        for moment in (0.0, 61.0):
            clock.now = 100.0 + moment
            try:
                _ = latest.value
            except PlumblineError as error:
                during.append(type(error).__name__)
        return 1

    latest: Slot[int] = Slot(hang, what="counters", stale_after_s=60.0, clock=clock)
    latest.refresh()
    assert during == ["Unavailable", "PlumblineError"]
    assert latest.value == 1


def test_a_first_read_that_hangs_says_for_how_long() -> None:
    clock = Clock()

    def read() -> object:
        clock.now += 10
        with pytest.raises(Unavailable, match="counters have not answered yet, for 10 s"):
            _ = latest.value
        return 7

    latest = Slot(read, what="counters", stale_after_s=60.0, clock=clock)
    latest.refresh()
    assert latest.value == 7


def why_late(read: Callable[[], object], end: Callable[[], object]) -> str:
    """What a slot says of a reading that takes too long, in a thread that has idled before."""
    latest = Slot(read, what="counters", stale_after_s=0.5)

    def idle_then_read() -> None:
        time.sleep(1)
        latest.refresh()

    thread = threading.Thread(target=idle_then_read)
    thread.start()
    try:
        return eventually(lambda: said(latest))
    finally:
        end()
        thread.join()


def said(latest: Slot[object]) -> str:
    try:
        return str(latest.value)
    except Unavailable:
        return ""
    except PlumblineError as error:
        return str(error)


def test_a_read_that_hangs_is_told_from_one_that_gets_no_cpu() -> None:
    end, start = os.pipe()
    try:
        hangs = why_late(lambda: os.read(end, 1), lambda: os.write(start, b"."))
    finally:
        os.close(end)
        os.close(start)
    assert re.match(r"counters: no answer for \d s: a read hangs in the kernel \(state S", hangs)
    with contextlib.ExitStack() as stack:
        starved = why_late(stack.enter_context(no_cpu_to_spare()), stack.close)
    assert re.match(r"counters: no answer for \d s: the host is short of CPU: it waited", starved)
