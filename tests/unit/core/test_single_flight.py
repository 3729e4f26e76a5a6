"""Answers that are shared: never older than the question, computed one at a time."""

import threading

import pytest

from plumbline.core.single_flight import Shared


def test_each_question_has_an_answer_of_its_own_time() -> None:
    count = iter(range(9))
    shared = Shared(lambda: next(count))
    assert [shared() for _ in range(3)] == [0, 1, 2]


def test_who_waits_shares_what_began_after_they_asked() -> None:
    entered, go_on = threading.Semaphore(0), threading.Semaphore(0)
    made: list[int] = []
    answers: list[int] = []

    def compute() -> int:
        entered.release()
        assert go_on.acquire(timeout=30)
        made.append(len(made))
        return made[-1]

    times = iter(range(100))
    clock_lock = threading.Lock()
    asked = threading.Semaphore(0)

    def clock() -> float:
        with clock_lock:
            asked.release()
            return float(next(times))

    shared = Shared(compute, clock=clock)
    threads = [threading.Thread(target=lambda: answers.append(shared()), daemon=True) for _ in range(8)]
    threads[0].start()
    assert entered.acquire(timeout=30)
    for thread in threads[1:]:
        thread.start()
    for _ in range(2 + 7):  # the first asked and began, the others have asked
        assert asked.acquire(timeout=30)
    go_on.release()
    assert entered.acquire(timeout=30)
    go_on.release()
    for thread in threads:
        thread.join(30)
    assert made == [0, 1]
    assert sorted(answers) == [0, *[1] * 7]


def test_a_failure_is_the_askers_and_not_kept() -> None:
    answers = iter([ValueError("no"), 5])

    def compute() -> int:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    shared = Shared(compute)
    with pytest.raises(ValueError, match="no"):
        shared()
    assert shared() == 5
