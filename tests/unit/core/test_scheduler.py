"""Ticks on a grid, splay, no overlap, bounded stop."""

import threading
import time

import pytest

from plumbline.core.scheduler import Job, Scheduler, next_tick, splay
from plumbline.errors import PlumblineError


@pytest.mark.parametrize(
    ("previous", "interval", "now", "expected"),
    [
        (100.0, 10.0, 101.0, 110.0),  # finished early: the next regular tick
        (100.0, 10.0, 110.0, 110.0),  # exactly at the tick: run it
        (100.0, 10.0, 134.0, 140.0),  # three ticks were missed: they are dropped, the grid stays
        (100.0, 10.0, 90.0, 110.0),  # a clock that stands still never makes a tick come twice
    ],
)
def test_missed_ticks_are_dropped_and_the_grid_stays(previous, interval, now, expected):
    assert next_tick(previous, interval, now) == expected


def test_splay_is_stable_and_spreads_a_fleet():
    delays = [splay(f"node{n:03}", "fio", 300.0) for n in range(1000)]
    assert delays == [splay(f"node{n:03}", "fio", 300.0) for n in range(1000)]
    assert all(0 <= delay < 300 for delay in delays)
    per_tenth = [sum(1 for d in delays if tenth * 30 <= d < (tenth + 1) * 30) for tenth in range(10)]
    assert min(per_tenth) > 60  # 100 expected in each tenth


def test_an_error_that_says_what_to_do_is_logged_without_a_traceback(caplog):
    failed = threading.Event()

    def run(_cancel):
        failed.set()
        raise PlumblineError("the cluster does not answer")

    scheduler = Scheduler()
    scheduler.replace([Job("ceph", 3600.0, 0.0, run)])
    assert failed.wait(30)
    assert scheduler.stop(30.0) == []
    (record,) = caplog.records
    assert record.getMessage() == "job ceph failed: the cluster does not answer; it is tried again at its next tick"
    assert record.exc_info is None


def test_a_job_never_overlaps_itself_and_goes_on_after_an_exception():
    under_way, overlaps, runs = [], [], threading.Semaphore(0)

    def run(cancel):
        overlaps.append(len(under_way))
        under_way.append(1)
        cancel.wait(0.02)
        under_way.pop()
        runs.release()
        raise RuntimeError("every run fails")

    scheduler = Scheduler()
    scheduler.replace([Job("busy", 0.005, 0.0, run)])
    for _ in range(4):
        assert runs.acquire(timeout=5)
    assert scheduler.stop(10.0) == []
    assert set(overlaps) == {0}


def test_equal_jobs_survive_a_replace_and_changed_ones_restart():
    started = []
    scheduler = Scheduler()

    def job(name, config):
        return Job(name, 60.0, 0.0, lambda cancel: (started.append((name, config)), cancel.wait(30))[0], config)

    scheduler.replace([job("a", 1), job("b", 1)])
    _until(lambda: len(started) == 2)
    scheduler.replace([job("a", 1), job("b", 2)])
    _until(lambda: len(started) == 3)
    assert started[2] == ("b", 2)
    assert scheduler.in_flight("a") > 0
    assert scheduler.stop(10.0) == []


def test_stop_is_bounded_and_names_what_is_stuck():
    release = threading.Event()
    scheduler = Scheduler()
    scheduler.replace([Job("stuck", 60.0, 0.0, lambda _cancel: release.wait(30))])
    _until(lambda: scheduler.in_flight("stuck") is not None)
    began = time.monotonic()
    assert scheduler.stop(0.2) == ["stuck"]
    assert time.monotonic() - began < 5
    release.set()


def test_a_kick_runs_now_and_leaves_the_grid():
    ran = threading.Semaphore(0)
    scheduler = Scheduler()
    scheduler.replace([Job("facts", 3600.0, 3600.0, lambda _cancel: ran.release())])
    assert not ran.acquire(timeout=0.05)
    scheduler.kick("facts")
    assert ran.acquire(timeout=5)
    scheduler.kick("no such job")
    assert scheduler.stop(10.0) == []


def _until(condition, timeout=5.0):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.005)


def test_a_run_is_owed_from_the_question_until_it_has_ended():
    go, running = threading.Semaphore(0), threading.Semaphore(0)

    def run(cancel):
        running.release()
        assert go.acquire(timeout=20)

    scheduler = Scheduler()
    scheduler.replace([Job("at once", 60.0, 0.0, run), Job("later", 60.0, 60.0, run)])
    assert scheduler.owing() == {"at once"}
    for _ in range(20):  # at no moment between question, start and end does it seem to be done
        assert running.acquire(timeout=20)
        scheduler.kick("at once")
        go.release()
        assert scheduler.owing() == {"at once"}
    assert running.acquire(timeout=20)
    go.release()
    _until(lambda: not scheduler.owing())
    scheduler.kick("later")
    assert scheduler.owing() == {"later"}
    go.release()
    _until(lambda: not scheduler.owing())
    assert scheduler.stop(10.0) == []
