"""The RADOS canary's worker: librados, its threads and whatever hangs in them, in a small separate process.

``canary/pool.py`` starts it in an isolated interpreter as ``… <lifeline fd> <order as JSON>``. It connects, removes
what an earlier worker left, chooses objects so that each OSD is primary for its own, and operates until it is ended;
every few seconds it checks whether the OSD map changed, and chooses again if an OSD moved.

Each OSD has two lanes, each a thread, so that a slow OSD delays no other's schedule, and a thread's clock stops when
its own operation ends. One lane writes and removes: that involves the OSD *and its replicas*. The other only reads:
that involves the primary alone, so if writes to several OSDs are slow but reads of only one, that OSD is the cause.

The main thread waits only for the daemon. When the daemon ends the worker, or is gone, the canary's objects are removed
as far as possible within a moment; the next start removes the rest.

Light modules only, besides what ``ctypes`` and librados need: the worker's memory is what the canary costs a node.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import threading
import time
from random import Random

from plumbline.core import threads
from plumbline.core.foreign import parse_json
from plumbline.core.memory import LIBRADOS, keep_memory_private, limit_memory
from plumbline.errors import KeyTypeUnknown, ParseError, ProbeRefused, Unavailable
from plumbline.probes.canary import memory as canary_memory
from plumbline.probes.canary.canary_worker import settle
from plumbline.probes.canary.memory import OUTDATED, WorkerMemory, WorkerStream, error_index
from plumbline.probes.canary.pacing import gap_ns
from plumbline.probes.ceph.librados import Access, Cluster, Pool, connect
from plumbline.probes.ceph.rados_sweep import remove, sweep
from plumbline.probes.rados import placement
from plumbline.probes.rados.placement import Placement
from plumbline.sources.ceph.cluster_osds import ClusterOsds, ask_osds
from plumbline.sources.ceph.keyring import READ_AES256K

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, NoReturn

OPERATIONS = ("write", "read", "remove")  # An OSD's streams, in this order
NOTES = ("", "down", "out", "gone", "no-primary")
"""Why an OSD has no operations; the index is the note in its streams."""
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "ETIMEDOUT", "blocklisted", "short", "other")
"""Kinds of failed operations; ``EDQUOT``: the pool's quota is full."""
LOOK_AGAIN_S = 10.0
LOOK_AT_ALL_S = 300.0  # How often the OSDs' classes and hosts are checked if no object moved
SWEEP_WITHIN_S = 30.0
LEAVE_WITHIN_S = 1.0  # The daemon ends a worker that is not gone by then
_QUESTION_GAP_S = 0.002


def main(argv: list[str]) -> NoReturn:
    """Work until ended; never returns while all goes well."""
    keep_memory_private()  # it will hold a key
    limit_memory(LIBRADOS)
    worker = Worker(Order(parse_json(argv[1], source="the order")))
    pause = settle(argv[0], worker.leave)
    threads.start("canary", worker.work, died=die)
    while True:
        pause(3600.0)


def die(mistake: Exception) -> None:
    """An unexpected exception in a thread ends the process: the daemon logs its last words, and starts another."""
    sys.excepthook(type(mistake), mistake, mistake.__traceback__)
    sys.stderr.flush()
    os._exit(1)


class Order:
    """The worker's task, as JSON in its arguments; it contains no secrets."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.access = Access(**facts["access"])
        self.pool, self.namespace, self.prefix = str(facts["pool"]), str(facts["namespace"]), str(facts["prefix"])
        self.object_size, self.host, self.words = int(facts["object_size"]), str(facts["host"]), tuple(facts["words"])
        """``host``, ``all``, ``osd.3``: the configuration's words."""
        self.targets = tuple((int(memory_fd), str(name)) for memory_fd, name in facts["targets"])
        """Descriptor of the memory and name (``osd.3``) of each OSD; one without a name while they are unknown."""
        self.osds = {_number(name): str(facts["classes"][name]) for _, name in self.targets if name}
        """The OSDs when this was planned: number and CRUSH class."""


class Worker:
    """The connection, the chosen objects, and the lanes."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.memories = tuple(WorkerMemory(memory_fd) for memory_fd, _ in order.targets)
        self.of_osd = dict(zip(order.osds, self.memories, strict=False))  # Empty while the OSDs are unknown
        self.locks = tuple(threading.Lock() for _ in self.memories)  # Guard their counts: of both lanes of an OSD
        self.names: dict[int, tuple[str, str]] = {}
        """OSD → its current object to write and remove, and the one to read, both in one placement group."""
        self.random = Random()  # noqa: S311
        self.pool: Pool  # Set before the first lane starts
        self._lanes: list[Lane] = []
        self._note = ""

    def work(self) -> None:
        """Connect, prepare, and then maintain the objects for ever; ends the process if it can't go on."""
        try:
            self._work()
        except ProbeRefused as refusal:
            self.refuse(refusal)

    def refuse(self, refusal: ProbeRefused) -> None:
        """Report it and end: the daemon starts another worker after a while."""
        self._report(canary_memory.REFUSED, f"{refusal.reason}\n{refusal}")
        os._exit(canary_memory.EXIT_REFUSED)

    def leave(self) -> None:
        """End the process, after removing the existing objects if the cluster answers at once."""
        deadline = time.monotonic() + LEAVE_WITHIN_S
        names = [name for lane in self._lanes for name in lane.leave()]
        if names:
            removal = threads.start("end", functools.partial(remove, self.pool, names, deadline=deadline), died=die)
            removal.join(LEAVE_WITHIN_S)
        os._exit(0)

    def _work(self) -> None:
        order = self.order
        self._report(canary_memory.PREPARING)
        for memory in self.memories:
            memory.preparing(time.monotonic_ns())
        try:
            cluster = connect(order.access)
        except Unavailable as unavailable:
            reason = "key-type" if isinstance(unavailable, KeyTypeUnknown) else "unreachable"
            raise ProbeRefused(reason, str(unavailable)) from None
        try:
            self.pool = cluster.pool(order.pool, namespace=order.namespace)
            sweep(self.pool, lambda name: name.startswith(f"{order.prefix}/"), within_s=SWEEP_WITHIN_S)
            chooser = ObjectChooser(self, cluster)
            chooser.choose()
        except Unavailable as unavailable:
            raise ProbeRefused("no-pool", str(unavailable)) from None
        except OSError as error:
            raise refused_by(error, order) from error
        self._lanes = [lane(self, number) for number in order.osds for lane in (WriteLane, ReadLane)]
        for memory in self.memories:
            memory.preparing(0)
        self._report(canary_memory.RUNNING, self._note)
        for lane in self._lanes:
            threads.start("lane", lane.run, died=die)
        while True:
            time.sleep(LOOK_AGAIN_S)
            try:
                chooser.look_again()
            except (OSError, ParseError):
                continue  # no monitor answers: the OSDs work without them, and so does the canary

    def say(self, text: str) -> None:
        """Report a reason and a message besides RUNNING; empty: all is as planned."""
        if text != self._note:
            self._note = text
            if self._lanes:
                self._report(canary_memory.RUNNING, text)

    def _report(self, state: int, text: str = "") -> None:
        for memory, lock in zip(self.memories, self.locks, strict=True):
            with lock:
                memory.say(state, text)


class ObjectChooser:
    """Keeps an object for each OSD while the OSD map changes."""

    def __init__(self, worker: Worker, cluster: Cluster) -> None:
        order = worker.order
        self._worker, self._cluster = worker, cluster
        self._placement = Placement(
            lambda name: placement.primary_of(cluster, order.pool, order.namespace, name),
            namespace=order.namespace,
            prefix=order.prefix,
            random=worker.random,
            pause=lambda: time.sleep(_QUESTION_GAP_S),
        )
        self._epoch = -1
        self._all_looked_at = 0.0

    def choose(self) -> None:
        """Choose objects for all OSDs that can have one, and set notes for the others."""
        order, worker = self._worker.order, self._worker
        self._epoch = placement.osdmap_epoch(self._cluster)
        osds = ask_osds(self._cluster)
        if not order.osds and not osds.chosen(order.words, order.host):
            raise ProbeRefused("no-osds", f"{order.access.conf}: no OSD runs on {order.host}; {ADVICE['no-osds']}")
        self._all_looked_at = time.monotonic()
        self._compare(osds)
        states = {number: osd.state for number, osd in osds.by_number.items()}
        usable = [number for number in order.osds if states.get(number) == ""]
        self._placement.choose(usable, placement.pool_groups(self._cluster, order.pool))
        worker.names = names = dict(self._placement.names)
        for number, memory in worker.of_osd.items():
            note = "" if number in names else states.get(number, "gone") or "no-primary"
            for stream in memory.streams:
                stream.note(NOTES.index(note))

    def look_again(self) -> None:
        """Choose again if the map changed, or after a long time."""
        late = time.monotonic() - self._all_looked_at >= LOOK_AT_ALL_S
        if late or placement.osdmap_epoch(self._cluster) != self._epoch:
            self.choose()

    def _compare(self, osds: ClusterOsds) -> None:
        order = self._worker.order
        planned = order.osds
        now = {
            number: osds.by_number[number].device_class if number in osds.by_number else planned.get(number, "")
            for number in osds.chosen(order.words, order.host)
        }
        others = sorted(now.items() ^ planned.items())
        names = ", ".join(dict.fromkeys(f"osd.{number}" for number, _ in others))
        self._worker.say(f"{OUTDATED}\n{names}: new, moved, or of another class" if others else "")


class Lane:
    """One operation at a time at random moments; arrivals during an operation are charged."""

    operations: ClassVar[tuple[str, ...]]

    def __init__(self, worker: Worker, osd: int) -> None:
        self.worker, self.osd, self.memory = worker, osd, worker.of_osd[osd]
        self._counting = worker.locks[worker.memories.index(self.memory)]
        self.streams = [self.memory.streams[OPERATIONS.index(name)] for name in self.operations]
        self.objects: set[str] = set()  # Objects of ours that may exist
        self._beginning = threading.Lock()
        self._leaving = False
        self.random = Random()  # noqa: S311
        self._rate = self.memory.rate * sum(stream.share for stream in self.streams)

    def run(self) -> None:
        try:
            while True:
                time.sleep(gap_ns(self.random, self._rate) / 1e9)
                names = self.worker.names.get(self.osd)
                if names is not None:
                    self.arrive(*names)
        except ProbeRefused as refusal:
            self.worker.refuse(refusal)

    def arrive(self, written: str, read: str) -> None:
        """Do one operation on one of the OSD's objects."""
        raise NotImplementedError

    def leave(self) -> tuple[str, ...]:
        """Create no more objects; returns those that may exist."""
        with self._beginning:
            self._leaving = True
            return tuple(self.objects)

    def begin(self, name: str) -> None:
        """Record that the object is about to be created."""
        with self._beginning:
            self.objects.add(name)
            if not self._leaving:
                return
        threading.Event().wait()  # until the process ends

    def operate(self, stream: WorkerStream, call: Callable[[], object]) -> bool:
        """Run and count ``call``; returns whether it succeeded. ``call`` returns False for a short transfer."""
        failed, whole = None, False
        started = time.monotonic_ns()
        stream.started(started)
        try:
            whole = call() is not False
        except OSError as error:
            failed = error
        latency = time.monotonic_ns() - started
        stream.started(0)
        kind = None if whole else error_index(failed, ERRORS)
        with self._counting:
            self.memory.account(stream, latency, kind, self.memory.rate, self.random, streams=self.streams)
        if failed is not None and failed.errno in (errno.ESHUTDOWN, errno.ENOTCONN):
            raise refused_by(failed, self.worker.order)  # the cluster blocked this connection: a new one may work
        return whole

    def discard(self, name: str) -> bool:
        try:
            self.worker.pool.remove(name)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                return False
        self.objects.discard(name)
        return True


class WriteLane(Lane):
    operations = ("write", "remove")

    def arrive(self, written: str, read: str) -> None:  # noqa: ARG002
        """Write the object, or remove it if it exists."""
        (write, erase), pool = self.streams, self.worker.pool
        for other in self.objects - {written}:  # left from an earlier map
            self.discard(other)
        if written not in self.objects:
            data = os.urandom(self.worker.order.object_size)
            self.begin(written)  # a write that failed may still be completed later
            if not self.operate(write, functools.partial(pool.write_full, written, data)):
                self.discard(written)
        elif self.operate(erase, functools.partial(pool.remove, written)):
            self.objects.discard(written)
        else:
            self.discard(written)


class ReadLane(Lane):
    operations = ("read",)

    def __init__(self, worker: Worker, osd: int) -> None:
        super().__init__(worker, osd)
        self._data = os.urandom(worker.order.object_size)
        self._written = ""

    def arrive(self, written: str, read: str) -> None:  # noqa: ARG002
        """Read the object; first write it, unmeasured, if it is new or was lost."""
        pool, size = self.worker.pool, self.worker.order.object_size
        if self._written != read:
            for other in self.objects - {read}:
                self.discard(other)
            self.begin(read)
            try:
                pool.write_full(read, self._data)
            except OSError:
                return  # the other lane counts such errors
            self._written = read

        def whole() -> bool:
            data = pool.read(read, size + 1)
            if len(data) == size and data != self._data:
                raise OSError(errno.EIO, "the bytes read differ from those written", read)
            return len(data) == size

        if not self.operate(self.streams[0], whole):
            self._written = ""


def _number(name: str) -> int:
    return int(name.removeprefix("osd."))


def refused_by(error: OSError, order: Order) -> ProbeRefused:
    reason = {
        errno.EACCES: "permission",
        errno.EPERM: "permission",
        errno.ENOENT: "no-pool",
        errno.ENOSPC: "no-space",
        errno.EDQUOT: "no-space",
        errno.ESHUTDOWN: "blocklisted",
    }.get(error.errno or 0, "unreachable")
    return ProbeRefused(reason, f"{order.access.conf}, pool {order.pool}: {error}; {ADVICE[reason]}")


ADVICE = {
    "blocklisted": "the cluster has blocklisted this client; see `ceph osd blocklist ls`",
    "key-type": READ_AES256K,
    "no-osds": "name OSDs, or configure this on a host with OSDs",
    "no-pool": "run `plumbline ceph setup`, or name another pool",
    "no-space": "raise the pool's quota, or free space",
    "permission": "run `plumbline ceph setup`: the user's capabilities are too narrow",
    "unreachable": "are the cluster and the network to its monitors up?",
}
"""Every reason for which the worker refuses (a label value), and what an operator can do about it."""
