"""However the daemon ends, nothing of it is left, and the next one can start at once."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from support.daemon import STOP_WITHIN_S, Daemon, alive, eventually, running


def measuring(daemon: Daemon) -> int:
    """Its canary's worker, once that works."""
    eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1)
    return daemon.worker()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_takes_less_than_two_seconds_and_leaves_nothing(folder: Path, number: signal.Signals) -> None:
    with running(folder) as daemon:
        worker = measuring(daemon)
        offspring = daemon.children()
        assert worker in offspring

        code, took = daemon.stop(number)

    assert (code, took < STOP_WITHIN_S) == (0, True), took
    assert [pid for pid in offspring if alive(pid)] == []
    assert daemon.said().endswith("stopped\n")
    with running(folder) as again:
        assert measuring(again)


def test_clients_that_never_finish_do_not_hold_a_stop_up(folder: Path) -> None:
    with running(folder, config={"probes": []}) as daemon:
        host, port = daemon.url.removeprefix("http://").split(":")
        address = (host, int(port))
        with socket.create_connection(address) as silent, socket.create_connection(address) as half:
            half.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
            silent.sendall(b"")
            time.sleep(0.05)

            code, took = daemon.stop()

    assert (code, took < STOP_WITHIN_S) == (0, True), took


def test_a_killed_daemon_takes_its_worker_along_and_the_next_one_starts(folder: Path) -> None:
    with running(folder) as daemon:
        worker = measuring(daemon)

        assert daemon.stop(signal.SIGKILL)[0] == -signal.SIGKILL
        eventually(lambda: not alive(worker), within_s=STOP_WITHIN_S)
    with running(folder) as again:
        assert measuring(again) != worker


def test_a_killed_worker_is_replaced_and_its_counters_go_on(folder: Path) -> None:
    def count(daemon: Daemon) -> float:
        return daemon.metrics().total("plumbline_canary_latency_seconds_count")

    with running(folder) as daemon:
        worker = measuring(daemon)
        before = count(daemon)
        os.kill(worker, signal.SIGKILL)
        other = eventually(lambda: [pid for pid in daemon.children() if pid != worker and alive(pid)])

        assert not alive(worker)
        eventually(lambda: count(daemon) > before + 2)
        assert daemon.worker() == other[0]


def test_a_storm_of_signals_neither_hangs_nor_ends_it(folder: Path) -> None:
    """A handler that takes a lock deadlocks here within a second."""
    with running(folder, config={"probes": []}) as daemon:
        ended = threading.Event()

        def storm() -> None:
            while not ended.is_set():
                for _ in range(50):
                    daemon.send(signal.SIGHUP)
                ended.wait(0.001)

        thread = threading.Thread(target=storm)
        thread.start()
        try:
            ended.wait(1.5)
        finally:
            ended.set()
            thread.join()

        assert daemon.metrics().get("plumbline_config_last_reload_successful") == 1
        code, took = daemon.stop()

    assert (code, took < STOP_WITHIN_S) == (0, True), took
