"""The cluster map and this host's OSDs, queried in the background: the scrape shows the latest answers.

A separate process queries the map and exits (``probes/ceph_task.py``): if it hangs it is killed, and the session that
renews the cluster's lock never waits for the manager.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

from plumbline.config.model import Config
from plumbline.core.foreign import Limits, parse_json
from plumbline.core.process import ProcessRunner, Runner
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import PeriodicSlot
from plumbline.errors import ParseError, PlumblineError, ProbeRefused, Unavailable
from plumbline.probes.ceph import ceph_task
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.sources.ceph.ceph_osds import head_daemon
from plumbline.sources.ceph.cephmap import CephMap, parse_cephmap
from plumbline.sources.ceph.osd_clients import LOOK_EVERY_S, Owner, look
from plumbline.sources.ceph.osd_connections import ConnectionReader
from plumbline.sources.ceph.osds import TIMEOUT_S, osds_here, read_osds, read_stores
from plumbline.sources.kernel.cgroup import GroupLimits, read_limits

log = logging.getLogger(__name__)

CEPH_MAP, CEPH_MAP_EVERY_S = "ceph map", 60.0  # a minute's delay is acceptable even for a host that dies
KEPT_S = 300.0
"""How long to keep showing the last map when the cluster answers partly or not at all: a change of manager takes half a
minute after a crash, and nothing is lost by it. The map's age is exported."""
OSDS_EVERY_S = 15.0  # for histograms, heartbeats and blocked operations: a usual scrape interval
OSD_STORES_EVERY_S = 300.0
"""Fragmentation walks the OSD's free list and holds its lock meanwhile; settings only change when an admin does it."""
OSD_CONNECTIONS_EVERY_S = 30.0
"""An OSD locks its connections while it lists them."""

OSD_CLIENTS_EVERY_S = 15.0
OSD_CLIENTS_LOOKS = 10
OSD_CLIENTS_RUNS, OSD_CLIENTS_MOST = 8, 20
"""Means of two minutes, so that those listed change rarely; at most so many series."""

LIMITS_EVERY_S = 60.0
"""For the control groups of OSDs, whose limits an admin sets: reading those of 60 OSDs takes as long as half a look."""

_MAP_COMMANDS = 7
_MAX_BYTES = 64 << 20  # about 1 KiB an OSD
_MAX_REASON_CHARS = 300


class OsdWatch:
    """The slots; each job limits its own run time. ``patterns`` returns the active globs of admin sockets; with
    ``roots`` the limits of the OSDs' control groups are read as well. ``addresses``: see :class:`ConnectionReader`.
    ``client_pools``: see :class:`ClientReader`."""

    def __init__(
        self,
        patterns: Callable[[], Sequence[str]],
        *,
        addresses: Callable[[], Mapping[str, int]] = dict,
        client_pools: Callable[[], Sequence[int]] = tuple,
        roots: Roots | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        reader = ConnectionReader(roots, addresses=addresses)
        limits = None if roots is None else LimitsMemory(roots).of
        self.osds = PeriodicSlot(
            "osds",
            OSDS_EVERY_S,
            "the OSDs' admin sockets",
            lambda: read_osds(osds_here(patterns()), timeout_s, limits=limits),
            serves=("osd",),
        )
        self.stores = PeriodicSlot(
            "osd stores",
            OSD_STORES_EVERY_S,
            "the OSDs' stores",
            lambda: read_stores(osds_here(patterns()), timeout_s),
            serves=("osd",),
        )
        self.connections = PeriodicSlot(
            "osd connections",
            OSD_CONNECTIONS_EVERY_S,
            "the OSDs' connections",
            lambda: reader.read(osds_here(patterns()), timeout_s),
            serves=("osdtcp",),
        )
        clients = ClientReader(client_pools)
        self.clients = PeriodicSlot(
            "osd clients",
            OSD_CLIENTS_EVERY_S,
            "the OSDs' clients",
            lambda: clients.read(patterns, timeout_s),
            serves=("osd",),
            cancel=clients.stopping.set,
        )

    def jobs(self) -> list[Job]:
        return [self.osds.job, self.stores.job, self.connections.job, self.clients.job]


class ClientReader:
    """Who has how many operations in flight on this host's OSDs, those received as a replica included: the mean of the
    last looks. ``pools`` returns the numbers of the pools that are listed. For one thread; ``stopping`` ends a wait."""

    def __init__(self, pools: Callable[[], Sequence[int]]) -> None:
        self._pools = pools
        self._runs: deque[Counter[Owner]] = deque(maxlen=OSD_CLIENTS_RUNS)
        self.stopping = threading.Event()

    def read(self, patterns: Callable[[], Sequence[str]], timeout_s: float) -> Mapping[Owner, float]:
        """Those with the most. An OSD that does not answer is asked again in the next run; :class:`Unavailable` without
        pools or OSDs."""
        pools = frozenset(self._pools())
        if not pools:
            self._runs.clear()
            raise Unavailable("ceph.client_pools has no pool")
        sockets = osds_here(patterns())
        run: Counter[Owner] = Counter()
        for _ in range(OSD_CLIENTS_LOOKS):
            operations, faults = look(sockets, timeout_s)
            run.update(operation.owner for operation in operations)
            for osd, fault in faults.items():
                if isinstance(fault, ParseError):
                    raise fault
                del sockets[osd]
            if self.stopping.wait(LOOK_EVERY_S):
                break
        self._runs.append(run)
        total = sum(self._runs, Counter[Owner]())
        looks = len(self._runs) * OSD_CLIENTS_LOOKS
        listed = [(owner, count) for owner, count in total.most_common() if owner.pool in pools]
        return {owner: count / looks for owner, count in listed[:OSD_CLIENTS_MOST]}


class LimitsMemory:
    """The limits of processes' control groups, read again after :data:`LIMITS_EVERY_S`. For one thread."""

    def __init__(self, roots: Roots, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._roots, self._clock = roots, clock
        self._known: dict[int, tuple[float, GroupLimits | None]] = {}

    def of(self, pid: int) -> GroupLimits | None:
        """As :func:`read_limits`, errors included: those are not kept."""
        now = self._clock()
        self._known = {other: known for other, known in self._known.items() if now - known[0] < LIMITS_EVERY_S}
        if pid not in self._known:
            self._known[pid] = (now, read_limits(self._roots, pid))
        return self._known[pid][1]


class CephMapWatch:
    """The slot and the job that fills it. ``config`` returns the active configuration, ``wall`` Unix seconds,
    ``clock`` monotonic ones."""

    def __init__(
        self,
        config: Callable[[], Config],
        *,
        roots: Roots,
        environment: Mapping[str, str],
        runner: Runner | None = None,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._roots, self._wall, self._clock = config, roots, wall, clock
        self._processes = ProcessRunner(environment)
        self._runner: Runner = runner or self._processes
        self._latest: tuple[CephAccess, CephMap, float] | None = None  # and when it was read, monotonic
        self._complete = True
        self.map = PeriodicSlot(CEPH_MAP, CEPH_MAP_EVERY_S, "the cluster map's parts", self._read, serves=("cephmap",))

    def stop(self) -> None:
        self._processes.stop()

    def osd_addresses(self) -> Mapping[str, int]:
        """Those of the last map, however old: an address that has changed is of an OSD that was restarted."""
        return self.map.last.osd_addresses if self.map.last is not None else {}

    def _read(self) -> CephMap:
        """:class:`Unavailable` if this node should not query the cluster, has no cluster or has no key."""
        config = self._config()
        if config.ceph.map == "never":
            raise Unavailable("ceph.map is never")
        if config.ceph.map == "auto" and not head_daemon(self._roots):
            raise Unavailable("no monitor or manager is set up on this host; ceph.map: always queries the map anyway")
        access = CephAccess.of(config.ceph)
        try:
            access.check()
        except ProbeRefused as refusal:
            raise Unavailable(str(refusal)) from refusal
        last = self._last(access)
        try:
            cephmap = self._query(access)
        except PlumblineError as error:
            if last is None:
                raise
            return self._kept(last, str(error))
        if cephmap.unread and last is not None and not last.unread:
            return self._kept(last, cephmap.unread)
        self._latest, self._complete = (access, cephmap, self._clock()), True
        return cephmap

    def _query(self, access: CephAccess) -> CephMap:
        librados = access.librados()
        limit_s = librados.connect_timeout_s + _MAP_COMMANDS * librados.operation_timeout_s + 1.0
        began_ts = self._wall()
        done = self._runner.run(ceph_task.argv(librados, "map"), timeout_s=limit_s, max_output_bytes=_MAX_BYTES)
        if done.cancelled:
            raise Unavailable("the daemon is stopping")
        if done.returncode != 0:
            reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:_MAX_REASON_CHARS]
            raise PlumblineError(f"the cluster map can't be read: {reason or f'no answer within {limit_s:g} s'}")
        answers = parse_json(done.stdout, source="the cluster map", limits=Limits(_MAX_BYTES, max_values=5_000_000))
        return parse_cephmap(answers, read_ts=began_ts)

    def _last(self, access: CephAccess) -> CephMap | None:
        if self._latest is None or self._latest[0] != access or self._clock() - self._latest[2] > KEPT_S:
            return None
        return self._latest[1]

    def _kept(self, last: CephMap, reason: str) -> CephMap:
        if self._complete:
            log.info("%s; the last map is shown for up to %.0f s", reason, KEPT_S)
        self._complete = False
        return last
