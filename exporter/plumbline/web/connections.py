"""Who is connected, who may stay, and who may be answered: no crowd keeps somebody else out.

When connections run out, one that nobody computes for goes: never one that has shown who it is before one that has
not; of these one from the address that has most; of these the one that has waited longest. So a crowd pushes itself
out, and what was opened last stays long enough for a handshake and a request.
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

_SPARE_PLACES = 8
"""For addresses for which nothing is under way, when the others have taken every place."""


class Connection:
    """What has to be known of a connection while its thread serves it. ``peer``: its address, as a crowd is counted."""

    __slots__ = ("computing", "evicted", "guard", "known", "peer", "served", "since", "sock", "under_way")

    def __init__(self, sock: socket.socket, peer: str, guard: Guard) -> None:
        self.sock = sock
        self.peer = peer
        self.guard = guard
        self.known = False
        """It has shown a certificate or a password."""
        self.under_way = False
        """A request of it is being answered, until the last byte is sent."""
        self.computing = False
        """Its answer is being made: nobody waits for the peer."""
        self.served = False
        """It has been answered before."""
        self.evicted = False
        self.since = time.monotonic()
        """When it began to wait for the peer to send or to take something; counts while nothing is computed."""

    def begins(self) -> None:
        """A request that may be answered has come."""
        self.under_way = self.computing = True

    def sends(self) -> None:
        """The answer is made."""
        self.since = time.monotonic()
        self.computing = False

    def waits(self) -> None:
        """For the next request."""
        self.since = time.monotonic()
        self.served = True
        self.under_way = self.computing = False

    def outdated(self, guard: Guard, grace_s: float) -> bool:
        """Whether it came in by other certificates than those of ``guard``, and not just now."""
        just_now = not self.served and time.monotonic() - self.since < grace_s
        return self.guard.context is not guard.context and not just_now

    def shut(self) -> None:
        """Wake whatever waits on the socket. Of an encrypted one below TLS, whose state belongs to another thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class Crowd:
    """All connections, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._connections: set[Connection] = set()
        self.turned_away = 0
        """Connections that had to go, or could not come."""

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        with self._changed:
            return iter([*self._connections])

    def admit(self, connection: Connection) -> bool:
        """Make room for it. ``False``: for all there are, an answer is being made."""
        with self._changed:
            if len(self._connections) >= self._limit and not self._evict():
                self.turned_away += 1
                return False
            self._connections.add(connection)
            return True

    def make_room(self, spared: Connection) -> bool:
        """Let another one go, because the system has run out of something. ``False``: there is none to let go."""
        with self._changed:
            return self._evict(spared)

    def swap(self, connection: Connection, make: Callable[[], socket.socket]) -> bool:
        """Replace its socket, unless it was let go meanwhile."""
        with self._changed:
            if connection.evicted:
                return False
            connection.sock = make()
            return True

    def leave(self, connection: Connection) -> None:
        """It has ended."""
        connection.sock.close()
        with self._changed:
            self._connections.discard(connection)
            self._changed.notify_all()

    def end_outdated(self, guard: Guard, grace_s: float) -> None:
        """Close those that wait and came in by other certificates; who comes just now is let come."""
        with self._changed:
            for connection in self._connections:
                if not connection.under_way and connection.outdated(guard, grace_s):
                    connection.shut()

    def end(self, timeout_s: float) -> None:
        """Close those for which nothing is under way, and after ``timeout_s`` the others."""
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
    """For requests under way: ``limit`` of them, and a few for addresses that have none."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()

    @contextlib.contextmanager
    def place(self, peer: str) -> Iterator[bool]:
        """``False``: all are taken."""
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
    """Of what ``accept()`` gives: the address, of IPv6 the network of 64 bits that one host may have whole."""
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
