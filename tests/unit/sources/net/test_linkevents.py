"""Link events: life and death of the thread (what it hears is tested on a real kernel, in integration)."""

from __future__ import annotations

import threading
import time

from plumbline.sources.net.linkevents import LinkEvents
from support.descriptors import open_descriptors


def listening() -> int:
    return sum(each.name == "link-events" for each in threading.enumerate())


def test_stopping_is_quick_leaves_nothing_and_may_be_repeated() -> None:
    before = open_descriptors()
    events = LinkEvents(lambda: None)
    events.stop()
    for _ in range(2):
        events.start()
        events.start()
        assert listening() == 1
        begin = time.monotonic()
        events.stop()
        assert time.monotonic() - begin < 10
    assert listening() == 0
    assert open_descriptors() <= before


def test_nothing_runs_before_start() -> None:
    before = open_descriptors()
    LinkEvents(lambda: None)
    assert listening() == 0
    assert open_descriptors() <= before
