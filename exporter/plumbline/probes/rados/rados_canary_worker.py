"""The RADOS canary's worker: librados, its threads and whatever hangs in them, in a small process of their own.

``probes/rados_canary.py`` starts it in an isolated interpreter as ``… <memory fd> <lifeline fd> <order as JSON>``. It
connects, removes what an earlier life left, chooses objects so that each OSD is primary for its own, and operates until
it is ended; every few seconds it looks whether the map of OSDs changed, and chooses anew where an OSD moved.

Each OSD has two lanes, threads of their own, so that one slow OSD delays nobody's schedule, and a thread's clock stops
when its own operation ends. One lane writes and removes: that takes the OSD *and its replicas*. The other only reads:
that is the primary alone, so where writes to several OSDs are slow and reads of one are, that one is to blame.

The main thread waits for nothing but the daemon. When that ends it, or is gone, the canary's objects are removed, as
far as that is done in a moment; the rest is the next start's.

Light modules only, besides what ``ctypes`` and librados need: its memory is what the canary costs a node.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import select
import signal
import sys
import threading
import time
from bisect import bisect_left
from random import Random

from plumbline.core import threads
from plumbline.core.memory import LIBRADOS, limit_memory
from plumbline.core.privacy import keep_memory_private
from plumbline.errors import ParseError, ProbeRefused, Unavailable
from plumbline.probes.canary import memory as canary_memory
from plumbline.probes.canary.memory import WorkerMemory, WorkerStream
from plumbline.probes.canary.pacing import charge, gap_ns
from plumbline.probes.ceph.cluster_osds import ClusterOsds, ask_osds
from plumbline.probes.ceph.librados import Access, Cluster, Pool, connect
from plumbline.probes.rados import placement
from plumbline.probes.rados.placement import Placement
from plumbline.probes.rados.rados_sweep import remove, sweep

TYPE_CHECKING = False  # as typing's, without loading typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

OPERATIONS = ("write", "read", "remove")
"""An OSD's streams, in this order."""
NOTES = ("", "choosing", "down", "out", "gone", "no-primary")
"""Why an OSD has no operations, by the number in its streams' note."""
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "ETIMEDOUT", "short", "other")
"""Kinds of failed operations; ``EDQUOT``: the pool's quota is full."""
OSDS_CHANGED = "osds-changed"
"""What the worker says besides RUNNING when its OSDs are not those that the configuration means by now."""
LOOK_AGAIN_S = 10.0
LOOK_AT_ALL_S = 300.0
"""How often OSDs' classes and hosts are looked at where no object moved."""
SWEEP_WITHIN_S = 30.0
LEAVE_WITHIN_S = 1.0
"""The daemon ends a worker that is not gone by then."""
_QUESTION_GAP_S = 0.002


def main(argv: list[str]) -> int:
    """Work until ended; never returns while it goes well."""
    keep_memory_private()  # it will hold a key
    limit_memory(LIBRADOS)
    lifeline, memory_fd, order = os.dup(int(argv[0])), int(argv[1]), Order(json.loads(argv[2]))
    try:  # contextlib is not light  # noqa: SIM105
        os.nice(10)
    except OSError:
        pass  # a sandbox forbids it: then it works at the daemon's own priority
    worker = Worker(WorkerMemory(memory_fd), order)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGTERM, lambda *_: worker.leave())
    threads.start("canary", worker.work, died=die)
    select.select((lifeline,), (), ())  # until the daemon is gone
    worker.leave()
    return 0


def die(mistake: Exception) -> None:
    """A thread that ended by a mistake ends the process: the daemon tells its last words, and starts another."""
    sys.excepthook(type(mistake), mistake, mistake.__traceback__)
    sys.stderr.flush()
    os._exit(1)


class Order:
    """What the worker is to do, as JSON in its arguments; no secrets in it."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.access = Access(**facts["access"])
        self.pool, self.namespace, self.prefix = str(facts["pool"]), str(facts["namespace"]), str(facts["prefix"])
        self.object_size = int(facts["object_size"])
        self.host = str(facts["host"])
        self.words = tuple(facts["words"])
        """``host``, ``all``, ``osd.3``: what the configuration says."""
        self.osds = tuple((int(number), str(device_class)) for number, device_class in facts["osds"])
        """What that meant when it was planned: number and CRUSH class; three streams each in the memory."""


class Worker:
    """The connection, the chosen objects, and the lanes."""

    def __init__(self, memory: WorkerMemory, order: Order) -> None:
        self.memory, self.order = memory, order
        self.lock = threading.Lock()
        """Around the memory's counts: lanes take turns."""
        self.names: dict[int, tuple[str, str]] = {}
        """OSD → the object written and removed now, and the one read, both in one placement group."""
        self.random = Random()  # noqa: S311
        self._lanes: list[Lane] = []
        self._pool: Pool | None = None
        self._said = ""

    def work(self) -> None:
        """Connect, prepare, and then look after the objects for ever; ends the process when it can't go on."""
        try:
            self._work()
        except ProbeRefused as refusal:
            self.refuse(refusal)

    def refuse(self, refusal: ProbeRefused) -> None:
        """Say so and end: the daemon starts another after a while."""
        with self.lock:
            self.memory.say(canary_memory.REFUSED, f"{refusal.reason}\n{refusal}")
        os._exit(canary_memory.EXIT_REFUSED)

    def leave(self) -> None:
        """End the process, and remove the objects that are there, if the cluster lets it at once."""
        deadline = time.monotonic() + LEAVE_WITHIN_S
        names = [name for lane in self._lanes for name in lane.leave()]
        if self._pool is not None and names:
            removal = threads.start("end", functools.partial(remove, self._pool, names, deadline=deadline), died=die)
            removal.join(LEAVE_WITHIN_S)
        os._exit(0)

    def _work(self) -> None:
        order, memory = self.order, self.memory
        memory.say(canary_memory.PREPARING)
        memory.preparing(time.monotonic_ns())
        try:
            cluster = connect(order.access)
        except Unavailable as unavailable:
            raise ProbeRefused("unreachable", str(unavailable)) from None
        try:
            self._pool = pool = cluster.pool(order.pool, namespace=order.namespace)
            mine = f"{order.prefix}/"
            sweep(pool, lambda name: name.startswith(mine), within_s=SWEEP_WITHIN_S)
            keeper = Keeper(self, cluster)
            keeper.choose()
        except Unavailable as unavailable:
            raise ProbeRefused("no-pool", str(unavailable)) from None
        except OSError as error:
            raise refused_by(error, order) from error
        streams = iter(memory.streams)
        for number, _ in order.osds:
            write, read, erase = next(streams), next(streams), next(streams)
            self._lanes += [WriteLane(self, number, (write, erase)), ReadLane(self, number, (read,))]
        memory.preparing(0)
        with self.lock:
            memory.say(canary_memory.RUNNING, self._said)
        for lane in self._lanes:
            threads.start("lane", lane.run, died=die)
        while True:
            time.sleep(LOOK_AGAIN_S)
            try:
                keeper.look_again()
            except (OSError, ParseError):
                continue  # no monitor answers: the OSDs do without, and so does the canary

    def say(self, text: str) -> None:
        """A reason and a sentence besides RUNNING; empty: all is as planned."""
        if text != self._said:
            self._said = text
            with self.lock:
                if self._lanes:
                    self.memory.say(canary_memory.RUNNING, text)

    @property
    def pool(self) -> Pool:
        """Open since before the first lane."""
        assert self._pool is not None
        return self._pool


class Keeper:
    """Keeps an object for each OSD, whatever becomes of the map."""

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
        """Objects for all OSDs that can have one, and notes for the others."""
        order, worker = self._worker.order, self._worker
        self._epoch = placement.osdmap_epoch(self._cluster)
        osds = ask_osds(self._cluster)
        if not order.osds and not osds.chosen(order.words, order.host):
            raise ProbeRefused("no-osds", f"{order.access.conf}: no OSD runs on {order.host}; {ADVICE['no-osds']}")
        self._all_looked_at = time.monotonic()
        self._compare(osds)
        able = [number for number, _ in order.osds if number in osds.by_number and osds.by_number[number].state == ""]
        self._placement.choose(able, placement.pool_groups(self._cluster, order.pool))
        worker.names = names = dict(self._placement.names)
        for index, (number, _) in enumerate(order.osds):
            note = ""
            if number not in names:
                known = osds.by_number.get(number)
                note = "gone" if known is None else known.state or "no-primary"
            for stream in worker.memory.streams[index * len(OPERATIONS) : (index + 1) * len(OPERATIONS)]:
                stream.note(NOTES.index(note))

    def look_again(self) -> None:
        """Choose anew when the map changed, or after a long time."""
        late = time.monotonic() - self._all_looked_at >= LOOK_AT_ALL_S
        if late or placement.osdmap_epoch(self._cluster) != self._epoch:
            self.choose()

    def _compare(self, osds: ClusterOsds) -> None:
        order = self._worker.order
        planned = dict(order.osds)
        now = {
            number: osds.by_number[number].device_class if number in osds.by_number else planned.get(number, "")
            for number in osds.chosen(order.words, order.host)
        }
        others = sorted(now.items() ^ planned.items())
        names = ", ".join(dict.fromkeys(f"osd.{number}" for number, _ in others))
        self._worker.say(f"{OSDS_CHANGED}\n{names}: new, moved, or of another class" if others else "")


class Lane:
    """One operation at a time at random moments; arrivals that meet one are charged."""

    def __init__(self, worker: Worker, osd: int, streams: tuple[WorkerStream, ...]) -> None:
        self.worker, self.osd, self.streams = worker, osd, streams
        self.objects: set[str] = set()
        """Those of ours that may exist."""
        self._beginning = threading.Lock()
        self._leaving = False
        self.random = Random()  # noqa: S311
        self._rate = worker.memory.rate * sum(stream.share for stream in streams)

    def run(self) -> None:
        """For ever."""
        try:
            while True:
                time.sleep(gap_ns(self.random, self._rate) / 1e9)
                names = self.worker.names.get(self.osd)
                if names is not None:
                    self.arrive(*names)
        except ProbeRefused as refusal:
            self.worker.refuse(refusal)

    def arrive(self, written: str, read: str) -> None:
        """One operation on one of the OSD's objects."""
        raise NotImplementedError

    def leave(self) -> tuple[str, ...]:
        """Make no more objects; those that there may be."""
        with self._beginning:
            self._leaving = True
            return tuple(self.objects)

    def begin(self, name: str) -> None:
        """The object is about to be made."""
        with self._beginning:
            self.objects.add(name)
            if not self._leaving:
                return
        threading.Event().wait()  # for the end

    def operate(self, stream: WorkerStream, call: Callable[[], object]) -> bool:
        """Do and count it; whether it succeeded. ``call`` gives False when too few bytes were transferred."""
        failed, whole = None, False
        started = time.monotonic_ns()
        stream.started(started)
        try:
            whole = call() is not False
        except OSError as error:
            failed = error
        latency = time.monotonic_ns() - started
        stream.started(0)
        rate = self.worker.memory.rate
        charges = [(each, charge(self.random, rate * each.share, latency, each.edges_ns)) for each in self.streams]
        with self.worker.lock:
            self.worker.memory.begin()
            if whole:
                stream.count(bisect_left(stream.edges_ns, latency), latency, time.time_ns())
            else:
                stream.count_error(error_index(failed), time.time_ns())
            for each, charged in charges:
                if charged.total:
                    each.count_charge(charged)
            self.worker.memory.end()
        if failed is not None and failed.errno in (errno.ESHUTDOWN, errno.ENOTCONN):
            raise refused_by(failed, self.worker.order)  # the cluster shut this connection out: another one may do
        return whole

    def discard(self, name: str) -> bool:
        """Remove an object outside of any measurement."""
        try:
            self.worker.pool.remove(name)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                return False
        self.objects.discard(name)
        return True


class WriteLane(Lane):
    """A write, and then its removal."""

    def arrive(self, written: str, read: str) -> None:  # noqa: ARG002
        """Write it, or remove it if it is there."""
        (write, erase), pool = self.streams, self.worker.pool
        for other in self.objects - {written}:  # of a map that is no more
            self.discard(other)
        if written not in self.objects:
            data = os.urandom(self.worker.order.object_size)
            self.begin(written)  # also a write that failed may be done later
            if not self.operate(write, functools.partial(pool.write_full, written, data)):
                self.discard(written)
        elif self.operate(erase, functools.partial(pool.remove, written)):
            self.objects.discard(written)
        else:
            self.discard(written)


class ReadLane(Lane):
    """Reads of an object that stays."""

    def __init__(self, worker: Worker, osd: int, streams: tuple[WorkerStream, ...]) -> None:
        super().__init__(worker, osd, streams)
        self._data = os.urandom(worker.order.object_size)
        self._written = ""

    def arrive(self, written: str, read: str) -> None:  # noqa: ARG002
        """Read it; write it first, unmeasured, where it is new or was lost."""
        pool, size = self.worker.pool, self.worker.order.object_size
        if self._written != read:
            for other in self.objects - {read}:
                self.discard(other)
            self.begin(read)
            try:
                pool.write_full(read, self._data)
            except OSError:
                return  # the other lane counts that
            self._written = read

        def whole() -> bool:
            data = pool.read(read, size + 1)
            if len(data) == size and data != self._data:
                raise OSError(errno.EIO, "other bytes than were written", read)
            return len(data) == size

        if not self.operate(self.streams[0], whole):
            self._written = ""


def error_index(error: OSError | None) -> int:
    """Where a failed operation is counted; without an error it was short."""
    kind = "short" if error is None else errno.errorcode.get(error.errno or 0, "")
    return ERRORS.index(kind if kind in ERRORS else "other")


def refused_by(error: OSError, order: Order) -> ProbeRefused:
    """Why it can't work now, and what to do."""
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
    "blocklisted": "the cluster shut this client out; see `ceph osd blocklist ls`",
    "no-osds": "name OSDs, or run this where OSDs are",
    "no-pool": "run `plumbline ceph setup`, or name another pool",
    "no-space": "raise the pool's quota, or free space",
    "permission": "run `plumbline ceph setup`: the user's capabilities are too narrow",
    "unreachable": "is the cluster up, and the network to its monitors?",
}
"""Every reason the worker refuses for (a label value), and what a person can do about it."""
