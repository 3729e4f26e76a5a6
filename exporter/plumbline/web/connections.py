"""Which connections are open, which may stay, and which requests are answered: no crowd can keep others out.

When connections run out, one with no answer being computed is evicted: an unauthenticated one before an authenticated
one; among those one from the address that has most; among those the one that has waited longest. So a crowd evicts
itself, and a new connection stays long enough for a handshake and a request.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from plumbline.web.guard import Guard

# For addresses with no request under way, when the others have taken every place
_SPARE_PLACES = 8


class Connection:
    """A connection's state while its thread serves it. ``peer``: its address, as :func:`counted_as` groups it."""

    __slots__ = ("computing", "evicted", "guard", "known", "peer", "served", "since", "sock", "under_way")

    def __init__(self, sock: socket.socket, peer: str, guard: Guard) -> None:
        self.sock = sock
        self.peer = peer
        self.guard = guard
        self.known = False
        """Its client has authenticated, by certificate or password."""
        self.under_way = False
        """One of its requests is being answered, until the last byte is sent."""
        self.computing = False
        """Its answer is being computed: nothing waits for the peer."""
        self.served = False
        """At least one of its requests has been answered."""
        self.evicted = False
        self.since = time.monotonic()
        """When it began to wait for the peer to send or receive; valid while nothing is computed."""

    def begins(self) -> None:
        """A request that may be answered has arrived."""
        self.under_way = self.computing = True

    def sends(self) -> None:
        """The answer is ready to be sent."""
        self.since = time.monotonic()
        self.computing = False

    def waits(self) -> None:
        """It now waits for the next request."""
        self.since = time.monotonic()
        self.served = True
        self.under_way = self.computing = False

    def outdated(self, guard: Guard, grace_s: float) -> bool:
        """Whether it was accepted under other certificates than those of ``guard``, and not just now."""
        just_now = not self.served and time.monotonic() - self.since < grace_s
        return self.guard.context is not guard.context and not just_now

    def shut(self) -> None:
        """Wake whatever waits on the socket. Shuts it down below TLS, whose state belongs to another thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class Crowd:
    """All connections, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._connections: set[Connection] = set()
        self.turned_away = 0
        """Connections that were evicted or not admitted."""

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        with self._changed:
            return iter([*self._connections])

    def admit(self, connection: Connection) -> bool:
        """Make room for a connection. ``False``: every other one has an answer being computed."""
        with self._changed:
            if len(self._connections) >= self._limit and not self._evict():
                self.turned_away += 1
                return False
            self._connections.add(connection)
            return True

    def make_room(self, spared: Connection) -> bool:
        """Evict another connection, because the system has run out of something. ``False``: there is none to evict."""
        with self._changed:
            return self._evict(spared)

    def swap(self, connection: Connection, make: Callable[[], socket.socket]) -> bool:
        """Replace its socket; ``False`` when it has been evicted meanwhile."""
        with self._changed:
            if connection.evicted:
                return False
            connection.sock = make()
            return True

    def leave(self, connection: Connection) -> None:
        """Close and forget a connection that has ended."""
        connection.sock.close()
        with self._changed:
            self._connections.discard(connection)
            self._changed.notify_all()

    def end_outdated(self, guard: Guard, grace_s: float) -> None:
        """Close waiting connections that were accepted under other certificates, except new ones."""
        with self._changed:
            for connection in self._connections:
                if not connection.under_way and connection.outdated(guard, grace_s):
                    connection.shut()

    def end(self, timeout_s: float) -> None:
        """Close connections with no request under way, and the others after ``timeout_s``."""
        with self._changed:
            for connection in self._connections:
                if not connection.under_way:
                    connection.shut()
            self._changed.wait_for(lambda: not self._connections, timeout_s)
            for connection in self._connections:
                connection.shut()

    def _evict(self, spared: Connection | None = None) -> bool:
        waiting = [each for each in self._connections if not each.computing and each is not spared]
        if not waiting:
            return False
        of = Counter(each.peer for each in self._connections)
        goes = min(waiting, key=lambda each: (each.known, -of[each.peer], each.since))
        goes.evicted = True
        goes.shut()
        self._connections.discard(goes)
        self.turned_away += 1
        return True


class Places:
    """Places for requests under way: ``limit`` of them, and a few more for addresses that have none."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()

    @contextlib.contextmanager
    def place(self, peer: str) -> Iterator[bool]:
        """Take a place; yields ``False`` when all are taken."""
        with self._lock:
            taken = self._of.total()
            free = taken < self._limit or (not self._of[peer] and taken < self._limit + _SPARE_PLACES)
            if free:
                self._of[peer] += 1
        try:
            yield free
        finally:
            with self._lock:
                if free:
                    self._of[peer] -= 1
                if not self._of[peer]:
                    del self._of[peer]


def counted_as(address: object) -> str:
    """Group what ``accept()`` gives: by address, for IPv6 by the 64-bit network that one host may own."""
    host = str(address[0]) if isinstance(address, tuple) and address else ""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
