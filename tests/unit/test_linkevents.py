"""Link events: life and death of the thread (what it hears is tested on a real kernel, in integration)."""

from __future__ import annotations

import os
import threading
import time

from plumbline.sources.linkevents import LinkEvents


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (a plain count)


def test_stopping_is_quick_leaves_nothing_and_may_be_repeated() -> None:
    before, threads = open_files(), threading.active_count()
    events = LinkEvents(lambda: None)
    events.stop()
    for _ in range(2):
        events.start()
        events.start()
        assert threading.active_count() == threads + 1
        begin = time.monotonic()
        events.stop()
        assert time.monotonic() - begin < 10
    assert (open_files(), threading.active_count()) == (before, threads)


def test_nothing_runs_before_start() -> None:
    before, threads = open_files(), threading.active_count()
    LinkEvents(lambda: None)
    assert (open_files(), threading.active_count()) == (before, threads)
