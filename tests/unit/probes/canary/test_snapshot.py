"""The shared memory: what the worker writes is what the daemon reads, consistently or not at all."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import plumbline
from plumbline.probes.canary import memory as canary_memory
from plumbline.probes.canary.memory import ERRORS, WorkerMemory, error_index
from plumbline.probes.canary.pacing import charge
from plumbline.probes.canary.snapshot import DaemonMemory, StreamPlan, lay_down

READ = StreamPlan(write=False, sequential=False, dsync=False, block_bytes=4096, share=0.7, edges_ns=(10, 20, 30))
WRITE = StreamPlan(write=True, sequential=True, dsync=True, block_bytes=8192, share=0.3, edges_ns=(15,))


@pytest.fixture
def fd() -> Iterator[int]:
    fd = lay_down((READ, WRITE), file_bytes=2**24, rate=2.5, max_busy_ratio=0.01)
    yield fd
    os.close(fd)


def test_the_worker_finds_its_plan(fd: int) -> None:
    memory = WorkerMemory(fd)
    assert (memory.file_bytes, memory.rate, memory.max_busy_ratio, memory.healthy_ns) == (2**24, 2.5, 0.01, 0)
    read, write = memory.streams
    assert (read.write, read.sequential, read.dsync, read.block_bytes) == (False, False, False, 4096)
    assert (write.write, write.sequential, write.dsync, write.block_bytes) == (True, True, True, 8192)
    assert (read.share, read.edges_ns) == (0.7, [10, 20, 30])
    assert (write.share, write.edges_ns) == (0.3, [15])


def test_the_daemon_finds_the_counts(fd: int) -> None:
    daemon, worker = DaemonMemory(fd), WorkerMemory(fd)
    read, write = worker.streams
    worker.begin()
    read.count(3, 1000, 5 * 10**18)
    read.count(0, 7, 6 * 10**18)
    write.count_error(error_index(OSError(28, "full")), 7 * 10**18)
    charged = charge(random.Random(1), 100, 10**9, (15,))
    write.count_charge(charged)
    worker.pace(1.25, 400_000)
    worker.end()
    found = daemon.snapshot()
    assert found.rate == 1.25
    reads, writes = found.streams
    assert (reads.buckets, reads.sum_ns, reads.charged) == ((1, 0, 0, 1), 1007, 0)
    assert (reads.last_completion_ns, reads.last_success_ns) == (6 * 10**18, 6 * 10**18)
    assert (writes.buckets, writes.sum_ns, writes.charged) == ((0, charged.total), charged.sum_ns, charged.total)
    assert (writes.last_completion_ns, writes.last_success_ns) == (7 * 10**18, 0)
    assert dict(zip(ERRORS, writes.errors, strict=False)) == {
        "EIO": 0, "ENOSPC": 1, "EROFS": 0, "ETIMEDOUT": 0, "short": 0, "other": 0,
    }  # fmt: skip
    assert WorkerMemory(fd).healthy_ns == 400_000


@pytest.mark.parametrize(
    ("error", "kind"),
    [(OSError(5, ""), "EIO"), (OSError(30, ""), "EROFS"), (OSError(110, ""), "ETIMEDOUT"), (None, "short"),
     (OSError(19, ""), "other"), (OSError("no number"), "other")],
)  # fmt: skip
def test_errors_have_their_kind(error: OSError | None, kind: str) -> None:
    assert ERRORS[error_index(error)] == kind


def test_an_operation_is_seen_while_it_runs(fd: int) -> None:
    daemon, worker = DaemonMemory(fd), WorkerMemory(fd)
    worker.streams[1].started(123)
    worker.preparing(45)
    assert daemon.in_flight_since_ns() == (0, 123, 45)
    worker.streams[1].started(0)
    worker.preparing(0)
    assert daemon.in_flight_since_ns() == (0, 0, 0)


def test_what_was_said_is_cut_to_its_room(fd: int) -> None:
    daemon, worker = DaemonMemory(fd), WorkerMemory(fd)
    worker.say(canary_memory.REFUSED, "no-space\n/mnt/ü: voll")
    assert (daemon.snapshot().state, daemon.snapshot().text) == (canary_memory.REFUSED, "no-space\n/mnt/ü: voll")
    worker.say(canary_memory.REFUSED, "ü" * 4000)
    assert set(daemon.snapshot().text.rstrip("�")) == {"ü"}
    worker.say(canary_memory.RUNNING)
    assert daemon.snapshot().text == ""


def test_while_counts_change_the_last_copy_holds(fd: int) -> None:
    naps: list[float] = []
    daemon, worker = DaemonMemory(fd, sleep=naps.append), WorkerMemory(fd)
    worker.begin()
    worker.streams[0].count(0, 7, 1)
    assert daemon.snapshot().streams[0].buckets == (0, 0, 0, 0)
    assert sum(naps) < 0.002
    worker.end()
    assert daemon.snapshot().streams[0].buckets == (1, 0, 0, 0)


def test_after_a_worker_was_killed_while_it_counted(fd: int) -> None:
    daemon, worker = DaemonMemory(fd), WorkerMemory(fd)
    worker.say(canary_memory.RUNNING)
    worker.begin()
    worker.streams[0].count(0, 7, 1)
    worker.streams[1].started(123)
    daemon.worker_gone()
    assert daemon.in_flight_since_ns() == (0, 0, 0)
    found = daemon.snapshot()
    assert (found.state, found.streams[0].buckets) == (canary_memory.STARTING, (1, 0, 0, 0))


def test_another_memory_is_refused() -> None:
    fd = os.memfd_create("other")
    os.ftruncate(fd, 8192)
    with pytest.raises(ValueError, match="not a canary's memory"):
        DaemonMemory(fd)
    os.close(fd)


BUSY_WRITER = """
import select, sys; sys.path.append(sys.argv[1])
from plumbline.probes.canary.memory import WorkerMemory
memory = WorkerMemory(int(sys.argv[2]))
stream = memory.streams[0]
n = 0
while n % 100 or not select.select([sys.stdin], [], [], 0)[0]:
    n += 1
    memory.begin()
    for bucket in range(4):
        stream.count(bucket, 1000, n)
    memory.end()
    for _ in range(500): pass
print(n)
"""


def test_copies_are_consistent_under_a_writer_that_hardly_rests(fd: int) -> None:
    root = Path(plumbline.__file__).parent.parent
    argv = [sys.executable, "-I", "-S", "-c", BUSY_WRITER, str(root), str(fd)]
    seen = set()
    daemon = DaemonMemory(fd)
    with subprocess.Popen(argv, pass_fds=(fd,), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        while len(seen) < 200:  # a busy machine gives the two of them a CPU in turns, so many copies are the same
            (reads, _) = daemon.snapshot().streams
            assert len(set(reads.buckets)) == 1
            assert reads.sum_ns == 4000 * reads.buckets[0]
            assert reads.last_success_ns == reads.buckets[0]
            seen.add(reads.buckets[0])
        written, _ = writer.communicate()
    assert daemon.snapshot().streams[0].buckets == (int(written),) * 4
