"""The Ceph cluster as the probes see it: whether it is fit, and the lock that allows one heavy probe at a time in it.

It is RADOS' own lock: advisory and exclusive, on an object of ours, with a lease that the OSD expires by its own clock.
A thread renews it while it is held; a holder that is dead or cut off loses it within the lease. A holder counts its
lease from the moment it *requested* it, and stops :data:`SAFETY` of it before the end: two never run at a time.

On a node without a cluster, or without a key to it, probes that need no cluster run with this host's lock alone.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from plumbline.config.model import CephConfig, GatesConfig
from plumbline.core import threads
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.ceph.ceph_access import KEY_TYPE, NAMESPACE, SETUP, CephAccess
from plumbline.probes.ceph.ceph_session import CephSession, strerror
from plumbline.probes.ceph.ceph_status import closed, maintenance_flags, parse_status, raised_checks

log = logging.getLogger(__name__)

UNREACHABLE, LOCKED, LOCK_LOST, NO_POOL = "unreachable", "locked", "lock-lost", "no-pool"
LOCK_OBJECT, LOCK_NAME = "heavy-probe", "plumbline"
LEASE_S = 60.0
SAFETY = 1 / 3
"""Share of a lease left unused at its end, so that a probe can be stopped within it."""
FRESH_S = 4.0
"""An answer is reused for this long."""


class ClusterView(Struct, frozen=True):
    """The last known state of the cluster. ``closed``: each closed gate and why; empty if it did not answer."""

    reachable: bool
    closed: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    """Why it was not reachable: a label value."""
    message: str = ""
    """The same in words."""
    lock_held: bool = False
    """Whether this node held the lock for heavy probes."""
    flags: tuple[tuple[str, str], ...] = ()
    """Host and flag of announced maintenance; no host: the whole cluster."""
    checks: tuple[tuple[str, str, int], ...] = ()
    """Health checks that are raised: name, severity, count."""


class Lease:
    def __init__(self, lease_s: float, clock: Callable[[], float]) -> None:
        self._usable_s, self._clock = lease_s * (1 - SAFETY), clock
        self._until: float | None = None
        self._lost = ""

    def begin(self, asked_at: float) -> None:
        """The lease was granted; it counts from the time of the request."""
        self._until = asked_at + self._usable_s

    def lose(self, why: str) -> None:
        """Record that the lock is no longer ours, and why."""
        self._lost = why

    def check(self) -> None:
        """Raise :class:`ProbeRefused` (``lock-lost``) as soon as another process may hold it."""
        if not self._lost and self._until is not None and self._clock() >= self._until:
            self._lost = "it could not be renewed in time"
        if self._lost:
            raise ProbeRefused(LOCK_LOST, f"the cluster's lock for heavy probes is lost: {self._lost}")


class CephGuard:
    """Implements :class:`~plumbline.probes.run.model.ClusterGuard`. All methods may be called from any thread; call
    :meth:`configure` at each reload."""

    def __init__(
        self,
        ceph: CephConfig,
        gates: GatesConfig,
        *,
        host: str,
        lease_s: float = LEASE_S,
        clock: Callable[[], float] = time.monotonic,
        session: Callable[[CephAccess], CephSession] = lambda access: CephSession(access.librados()),
    ) -> None:
        self._host, self._lease_s, self._clock, self._make_session = host, lease_s, clock, session
        self._access = CephAccess.of(ceph)
        self._session: CephSession | None = None
        self._view: tuple[float, ClusterView] | None = None
        self._looking = threading.Lock()
        self._held = 0
        self.configure(ceph, gates)

    def configure(self, ceph: CephConfig, gates: GatesConfig) -> None:
        """Apply a new configuration. A held lock stays in the session that took it."""
        access = CephAccess.of(ceph)
        self._gates = gates
        if access != self._access:
            session, self._access = self._session, access
            self._session = None
            if session is not None and not self._held:
                session.close()
        self._view = None

    @property
    def held(self) -> bool:
        return bool(self._held)

    @property
    def session_pid(self) -> int | None:
        return self._session.pid if self._session else None

    def close(self, timeout_s: float = 1.0) -> None:
        """End the session; held locks are released if the cluster answers in time."""
        if self._session is not None:
            self._session.close(timeout_s)

    # -- gates

    def check(self) -> None:
        """Raise :class:`ProbeRefused`: ``no-cluster``, ``no-key``, ``key-type``, ``unreachable``, or the first closed
        gate of ``maintenance``, ``full``, ``recovery``, ``health``."""
        view = self.look()
        if not view.reachable:
            raise ProbeRefused(view.reason, view.message)
        for gate, why in view.closed.items():
            raise ProbeRefused(gate, f"the cluster is not fit for a probe: {why}")

    def look(self) -> ClusterView:
        """The cluster's state, at most a few seconds old; raises :class:`ProbeRefused` if this node has no cluster."""
        self._access.check()
        with self._looking:
            if self._view is None or self._clock() - self._view[0] >= FRESH_S:
                view = self._ask()
                self._view = (self._clock(), view)
            return self._view[1]

    def _ask(self) -> ClusterView:
        try:
            answer = self._open().ask("status")
            status = parse_status(answer["status"], answer["detail"])
        except (OSError, ParseError) as error:
            message = strerror(error) if isinstance(error, OSError) else str(error)
            reason = KEY_TYPE if _is_key_type(error) else UNREACHABLE
            return ClusterView(False, reason=reason, message=message, lock_held=self.held)
        pools = (self._access.pool, self._access.rbd_pool)
        flags = maintenance_flags(status.checks)
        checks = raised_checks(status.checks)
        return ClusterView(True, closed(status, self._gates, pools), lock_held=self.held, flags=flags, checks=checks)

    def _open(self) -> CephSession:
        if self._session is None:
            self._session = self._make_session(self._access)
        return self._session

    # -- the lock

    @contextlib.contextmanager
    def hold(self, holder: str) -> Iterator[Lease]:
        """Hold the lock. Raises :class:`ProbeRefused`: ``locked``, ``unreachable``, ``key-type``, ``no-pool``,
        ``full``, ``not-allowed``.

        On a node without a cluster there is nothing to hold: its lease is never lost.
        """
        if not self._access.usable:
            yield Lease(self._lease_s, self._clock)
            return
        session = self._open()
        with _Lock(session, self._access, f"{holder}@{self._host}", self._lease_s, self._clock) as lock:
            self._held += 1
            try:
                yield lock.lease
            finally:
                self._held -= 1
        if session is not self._session:  # the configuration changed meanwhile
            session.close()


class _Lock:
    def __init__(
        self, session: CephSession, access: CephAccess, about: str, lease_s: float, clock: Callable[[], float]
    ) -> None:
        self._session, self._access, self._clock = session, access, clock
        self._where = {"pool": access.pool, "namespace": NAMESPACE, "oid": LOCK_OBJECT, "name": LOCK_NAME}
        # visible to others: librados reports a lock's cookie with its holders, but not its description
        self._mine = {"cookie": f"{about} pid {os.getpid()} {os.urandom(4).hex()}"}
        self._terms = {"about": about, "lease_s": lease_s}
        self._every_s = lease_s / 6
        self._over = threading.Event()
        self.lease = Lease(lease_s, clock)

    def __enter__(self) -> _Lock:
        asked_at = self._clock()
        try:
            if not self._session.ask("lock", **self._where, **self._mine, **self._terms):
                raise ProbeRefused(
                    LOCKED, f"another heavy probe is running: {self._holder()}; the next run tries again"
                )
        except OSError as error:
            raise _refused(error, self._access) from error
        self.lease.begin(asked_at)
        threads.start("lease", self._renew, until=self._over)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        try:
            self._session.ask("unlock", **self._where, **self._mine)
        except OSError as error:
            log.warning("the cluster's lock could not be released; it expires with its lease: %s", strerror(error))

    def _renew(self) -> None:
        while not self._over.wait(self._every_s):
            asked_at = self._clock()
            try:
                ours = self._session.ask("renew", **self._where, **self._mine, **self._terms)
            except OSError as error:
                log.warning("the cluster's lock could not be renewed: %s", strerror(error))
                continue  # the lease expires when it is too late
            if self._over.is_set():
                return
            if not ours:
                self.lease.lose("somebody removed it, or the session that held it ended")
                return
            self.lease.begin(asked_at)

    def _holder(self) -> str:
        try:
            holders = self._session.ask("lockers", **self._where)
        except OSError:
            holders = []
        return ", ".join(f"{holder['cookie']} ({holder['address']})" for holder in holders) or "held by another node"


def _refused(error: OSError, access: CephAccess) -> ProbeRefused:
    message = strerror(error)
    if _is_key_type(error):
        return ProbeRefused(KEY_TYPE, message)
    if error.errno == errno.ENOENT:
        return ProbeRefused(NO_POOL, f"{message}; {SETUP}")
    if error.errno in (errno.EDQUOT, errno.ENOSPC):
        return ProbeRefused("full", f"{message}: the pool has reached its quota, or its OSDs are full")
    if error.errno in (errno.EPERM, errno.EACCES):
        return ProbeRefused("not-allowed", f"{message}: {access.user} lacks the capability for the lock; {SETUP}")
    return ProbeRefused(UNREACHABLE, message)


def _is_key_type(error: Exception) -> bool:
    """Whether the session's librados can't read our key (``ceph_worker.py``)."""
    return isinstance(error, OSError) and error.errno == errno.EKEYREJECTED
