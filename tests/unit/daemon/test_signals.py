"""Signals as flags, and a wait that they end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from plumbline.daemon.signals import Signals


@pytest.fixture
def signals() -> Iterator[Signals]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    made = Signals()
    made.install()
    yield made
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_each_signal_asks_for_one_thing(signals: Signals) -> None:
    assert (signals.stop, signals.reload) == (False, False)
    os.kill(os.getpid(), signal.SIGHUP)
    assert (signals.stop, signals.reload) == (False, True)
    os.kill(os.getpid(), signal.SIGTERM)
    assert (signals.stop, signals.reload) == (True, True)


def test_an_interrupt_stops_instead_of_raising(signals: Signals) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    assert signals.stop


def test_a_wait_ends_at_once_for_a_signal_that_came_before_it_and_for_one_during_it(signals: Signals) -> None:
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGHUP)
    signals.wait(30)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGHUP))
    timer.start()
    signals.wait(30)
    timer.join()
    assert 0.1 <= time.monotonic() - began < 10


def test_without_a_signal_it_waits_its_time(signals: Signals) -> None:
    os.kill(os.getpid(), signal.SIGHUP)
    signals.wait(0)
    began = time.monotonic()
    signals.wait(0.1)  # what woke the last wait does not wake this one
    assert time.monotonic() - began >= 0.099
