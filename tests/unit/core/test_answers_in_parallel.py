"""Questions side by side, some of which nobody answers."""

from __future__ import annotations

import threading
import time

import pytest

from plumbline.core.answers import ask_side_by_side


def test_who_does_not_answer_holds_up_nobody() -> None:
    never = threading.Event()
    began = time.monotonic()
    try:
        answers, silent = ask_side_by_side({"disk": lambda: never.wait(60), "fan": lambda: 7}, 2)
    finally:
        never.set()

    assert (answers, silent) == ({"fan": 7}, {"disk"})
    assert time.monotonic() - began < 30


def test_they_wait_for_each_other_and_not_one_after_the_other() -> None:
    both = threading.Barrier(2)
    answers, silent = ask_side_by_side({each: lambda: both.wait(30) for each in "ab"}, 30)

    assert sorted(answers.values()) == [0, 1]
    assert not silent


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_fails_is_neither_answered_nor_silent() -> None:
    def fails() -> int:
        raise ValueError("a mistake")

    assert ask_side_by_side({"x": fails}, 30) == ({}, frozenset())


def test_nothing_asked_is_nothing_waited_for() -> None:
    assert ask_side_by_side({}, 60) == ({}, frozenset())
