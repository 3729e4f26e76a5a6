"""Threads that end by a mistake are noticed, said, counted, and started again where they are to live."""

from __future__ import annotations

import ast
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.collectors.daemon import THREAD_FAILURES, DaemonState, samples
from plumbline.core import threads
from plumbline.core.answers import in_turn
from plumbline.core.backoff import Backoff
from plumbline.core.scheduler import Job, Scheduler
from plumbline.core.threads import Threads
from support.offenders import for_every

SOURCE = Path(__file__).parents[3] / "exporter" / "plumbline"
OTHERS = {
    "core/threads.py": "the one way",
    "probes/disk/raw_canary_worker.py": "threading would be a megabyte; its threads end the worker by themselves",
}
WITHIN_S = 30.0


class AtOnce(Backoff):
    FIRST_S = LAST_S = 0.01


def test_what_is_to_live_is_started_again_and_said_whole_once(caplog: pytest.LogCaptureFixture) -> None:
    started, over = threading.Semaphore(0), threading.Event()

    def loop() -> None:
        started.release()
        raise KeyError("a mistake")

    ours = Threads(backoff=AtOnce)
    with caplog.at_level(logging.ERROR):
        thread = ours.start("loop", loop, of="sda", until=over)
        for _ in range(4):
            assert started.acquire(timeout=WITHIN_S)
        over.set()
        thread.join(WITHIN_S)
    assert not thread.is_alive()
    assert ours.failures["loop"] >= 3
    assert [record.exc_info is not None for record in caplog.records][:3] == [True, False, False]
    assert caplog.records[0].getMessage() == (
        "thread loop-sda failed; it is started again in 0.01 s: KeyError: 'a mistake'"
    )


def test_a_single_task_is_counted_and_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    ours = Threads()
    ours.start("task", lambda: None).join(WITHIN_S)
    assert ours.failures == {"task": 0}  # a counter begins at 0, or its first step is no increase
    ours.start("task", lambda: 1 / 0).join(WITHIN_S)
    assert ours.failures == {"task": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "thread task failed: ZeroDivisionError: division by zero"
    ]
    assert caplog.records[0].exc_info


def test_who_asks_is_told_instead() -> None:
    told: list[Exception] = []
    Threads().start("gate", lambda: 1 / 0, died=told.append).join(WITHIN_S)
    assert [type(each) for each in told] == [ZeroDivisionError]


def test_it_is_a_metric() -> None:
    state = DaemonState(reload_ok=True, since_ts=0.0, state_saved=True, thread_failures={"job": 2, "http": 0})
    found = [(labels, value) for spec, labels, value in samples(state) if spec is THREAD_FAILURES]
    assert found == [(("job",), 2), (("http",), 0)]


def test_a_job_whose_calendar_fails_once_has_its_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "FIRST_S", 0.01)
    ran, asked = threading.Event(), [0]

    def next_after(now: float) -> float:
        asked[0] += 1
        if asked[0] == 1:
            raise AssertionError("a week has every day")
        return now + 0.05

    before = threads.PROCESS.failures.get("job", 0)
    scheduler = Scheduler()
    scheduler.replace([Job("night", 60.0, 0.0, lambda _cancel: ran.set(), next_after=next_after)])
    try:
        assert ran.wait(WITHIN_S)
    finally:
        assert scheduler.stop(WITHIN_S) == []
    assert threads.PROCESS.failures["job"] == before + 1


class Wall:
    """A wall clock that goes on with the monotonic one and is set by hand."""

    def __init__(self, now: float) -> None:
        self._ahead = now - time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def set_back(self, seconds: float) -> None:
        self._ahead -= seconds


def follow(wall: Callable[[], float], ran: threading.Semaphore) -> Scheduler:
    """A job at each full 10,000 seconds."""
    scheduler = Scheduler(wall=wall)
    job = Job("night", 1.0, 0.0, lambda _cancel: ran.release(), next_after=lambda now: (now // 10_000 + 1) * 10_000)
    scheduler.replace([job])
    return scheduler


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def test_a_clock_set_back_within_the_last_minute_starts_nothing_early() -> None:
    wall, ran, looks = Wall(999_999.5), threading.Semaphore(0), []

    def now() -> float:
        looks.append(1)
        if len(looks) == 3:  # the moment was worked out and is waited for
            wall.set_back(1800.0)
        return wall()

    scheduler = follow(now, ran)
    try:
        eventually(lambda: (scheduler.next_start("night") or 0) > 1000)
        assert not ran.acquire(blocking=False)
    finally:
        scheduler.stop(WITHIN_S)


def test_a_clock_set_back_after_a_run_does_not_bring_it_again() -> None:
    wall, ran = Wall(999_999.5), threading.Semaphore(0)
    scheduler = follow(wall, ran)
    try:
        assert ran.acquire(timeout=WITHIN_S)
        wall.set_back(30.0)
        scheduler.kick("night")  # looks at the clock again
        assert ran.acquire(timeout=WITHIN_S)
        eventually(lambda: (scheduler.next_start("night") or 0) > 9_000)
    finally:
        scheduler.stop(WITHIN_S)


def test_questions_in_turn_keep_their_order_and_end_with_the_first_error() -> None:
    def slow_first(number: int) -> int:
        time.sleep(0.05 if number == 0 else 0)
        if number == 7:
            raise ValueError("seven")
        return number * number

    assert list(in_turn(range(6), slow_first, 3, what="ask")) == [0, 1, 4, 9, 16, 25]
    got = in_turn(range(100), slow_first, 3, what="ask")
    assert [next(got) for _ in range(7)] == [0, 1, 4, 9, 16, 25, 36]
    with pytest.raises(ValueError, match="seven"):
        next(got)


@for_every("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_else_starts_a_thread(path: Path) -> None:
    starts = [
        f"line {node.lineno}: {ast.unparse(node)[:60]}" for node in ast.walk(ast.parse(path.read_text())) if other(node)
    ]
    assert bool(starts) == (str(path.relative_to(SOURCE)) in OTHERS), starts


def other(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = getattr(node, "module", None) or ""
        names = {f"{module}.{each.name}" if module else each.name for each in node.names}
        return any(
            each.split(".")[0] in {"_thread", "concurrent", "multiprocessing", "asyncio", "socketserver"}
            or each in {"threading.Thread", "threading.Timer"}
            for each in names
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        return (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) in {
            "Thread", "Timer", "start_new_thread", "ThreadPoolExecutor",
        }  # fmt: skip
    if isinstance(node, ast.ClassDef):
        return any(ast.unparse(base).split(".")[-1] in {"Thread", "Timer"} for base in node.bases)
    return False
