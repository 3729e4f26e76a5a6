"""Which connections are open, which may stay, and which requests are answered: no number of clients can keep others
out.

When connections run out, one with no answer being computed is evicted: unauthenticated ones first, then one from the
address that has most, then the one that has waited longest. So an address that opens too many evicts its own.
"""

import contextlib
import ipaddress
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from plumbline.web.guard import Guard

# For addresses with no request in progress, when the others have taken every slot
_SPARE_SLOTS = 8


class Connection:
    """A connection's state while its thread serves it. ``peer``: its address, as :func:`counted_as` groups it."""

    __slots__ = ("authenticated", "computing", "evicted", "guard", "in_progress", "peer", "served", "since", "sock")

    def __init__(self, sock: socket.socket, peer: str, guard: Guard) -> None:
        self.sock, self.peer, self.guard = sock, peer, guard
        self.authenticated = False  # by certificate or password
        self.in_progress = False  # one of its requests is being answered, until the last byte is sent
        self.computing = False  # its answer is being computed: nothing waits for the peer
        self.served = False  # at least one of its requests has been answered
        self.evicted = False
        self.since = time.monotonic()  # When it began to wait for the peer; valid while nothing is computed

    def begins(self) -> None:
        """A request that may be answered has arrived."""
        self.in_progress = self.computing = True

    def sends(self) -> None:
        """The answer is ready to be sent."""
        self.since = time.monotonic()
        self.computing = False

    def waits(self) -> None:
        self.since = time.monotonic()
        self.served = True
        self.in_progress = self.computing = False

    def outdated(self, guard: Guard, grace_s: float) -> bool:
        """Whether it was accepted under other certificates than those of ``guard``, and not just now."""
        just_now = not self.served and time.monotonic() - self.since < grace_s
        return self.guard.context is not guard.context and not just_now

    def shut(self) -> None:
        """Wake whatever waits on the socket. Shuts it down below TLS, whose state belongs to another thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class ConnectionPool:
    """All connections, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._connections: set[Connection] = set()
        self.rejected = 0  # Connections that were evicted or not admitted

    def admit(self, connection: Connection) -> bool:
        """Make room for a connection. ``False``: every other one has an answer being computed."""
        with self._changed:
            if len(self._connections) >= self._limit and not self._evict():
                self.rejected += 1
                return False
            self._connections.add(connection)
            return True

    def make_room(self, spared: Connection) -> None:
        """Evict another connection, if any may go, because the system has run out of something."""
        with self._changed:
            self._evict(spared)

    def swap(self, connection: Connection, make: Callable[[], socket.socket]) -> bool:
        """Replace its socket; ``False`` when it has been evicted meanwhile."""
        with self._changed:
            if not connection.evicted:
                connection.sock = make()
            return not connection.evicted

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
                if not connection.in_progress and connection.outdated(guard, grace_s):
                    connection.shut()

    def end(self, timeout_s: float) -> None:
        """Close connections with no request in progress, and the others after ``timeout_s``."""
        with self._changed:
            for connection in self._connections:
                if not connection.in_progress:
                    connection.shut()
            self._changed.wait_for(lambda: not self._connections, timeout_s)
            for connection in self._connections:
                connection.shut()

    def _evict(self, spared: Connection | None = None) -> bool:
        waiting = [
            connection for connection in self._connections if not connection.computing and connection is not spared
        ]
        if not waiting:
            return False
        count = Counter(connection.peer for connection in self._connections)
        evicted = min(
            waiting, key=lambda connection: (connection.authenticated, -count[connection.peer], connection.since)
        )
        evicted.evicted = True
        evicted.shut()
        self._connections.discard(evicted)
        self.rejected += 1
        return True


class RequestSlots:
    """Slots for requests in progress: ``limit`` of them, and a few more for addresses that have none."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    @contextlib.contextmanager
    def slot(self, peer: str) -> Iterator[bool]:
        """Take a slot; yields ``False`` when all are taken."""
        with self._lock:
            total = self._taken.total()
            free = total < self._limit or (not self._taken[peer] and total < self._limit + _SPARE_SLOTS)
            if free:
                self._taken[peer] += 1
        try:
            yield free
        finally:
            with self._lock:
                if free:
                    self._taken[peer] -= 1
                if not self._taken[peer]:
                    del self._taken[peer]


def counted_as(address: object) -> str:
    """Group what ``accept()`` gives: by address, for IPv6 by the 64-bit network that one host may own."""
    host = str(address[0]) if isinstance(address, tuple) and address else ""
    try:
        parsed = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return str(ipaddress.ip_network((parsed, 64), strict=False))
        return str(parsed.ipv4_mapped)
    return str(parsed)
