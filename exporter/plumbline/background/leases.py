"""Announced maintenance: leases in the storage path, written by ``plumbline maintenance``, read by the daemon every few
seconds and exported until they lapse.

A second file is the daemon's answer: which leases were part of a page of metrics that somebody scraped. Prometheus
remembers those, also while the host is off.
"""

import fcntl
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from plumbline.core import jsontext
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.foreign import one_line
from plumbline.core.proofs import Content
from plumbline.core.slot import PeriodicSlot
from plumbline.core.storage_names import LEASE_FILE, SEEN_FILE
from plumbline.errors import FileRefused, ParseError, PlumblineError, StateError
from plumbline.probes.run.storage import marked

EVERY_S = 5.0
LONGEST_S = 3 * 86400.0
"""As ``maintenance.longest`` of the alerts' configuration: for so long Prometheus remembers a lease."""
KEPT_S = 86400.0  # How long a lease that ended is exported, so that a scrape sees its end
MOST, MOST_WHY, MOST_WHO = 64, 200, 64
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
CLUSTER = ""  # The host of a lease for the whole cluster
_VERSION, _MAX_BYTES = 1, 256 << 10

log = logging.getLogger(__name__)


class Lease(msgspec.Struct, frozen=True):
    """Maintenance of one host, or of the cluster; Unix seconds."""

    host: str
    why: str
    who: str
    since_ts: float
    until_ts: float

    @property
    def name(self) -> str:
        return self.host or "the cluster"

    @property
    def until(self) -> str:
        return datetime.fromtimestamp(self.until_ts, UTC).strftime("%Y-%m-%d %H:%M UTC")

    @property
    def text(self) -> str:
        return f"{self.name} until {self.until} by {self.who}: {self.why}"


class Leases(tuple[Lease, ...]):
    """Those in force, and those that ended in the last :data:`KEPT_S`."""

    def in_force(self, now: float) -> tuple[Lease, ...]:
        """Also one that begins later: the clock was set back, and what is exported is its end."""
        return tuple(lease for lease in self if now < lease.until_ts)


class _File(msgspec.Struct, frozen=True):
    version: int
    leases: tuple[Lease, ...]


class _Seen(msgspec.Struct, frozen=True):
    version: int
    seen: tuple[tuple[str, float], ...]  # host, until_ts


def parse_leases(data: bytes, *, source: str) -> tuple[Lease, ...]:
    """Raises :class:`ParseError` for whatever ``plumbline maintenance`` would not write."""
    try:
        file = jsontext.decode(data, _File)
    except (msgspec.DecodeError, ValueError) as error:
        raise ParseError(source, f"not leases of maintenance: {one_line(error)}") from error
    if file.version != _VERSION:
        raise ParseError(source, f"version {file.version}; this release reads {_VERSION}")
    if len(file.leases) > MOST:
        raise ParseError(source, f"more than {MOST} leases")
    for lease in file.leases:
        if wrong := wrong_with(lease):
            raise ParseError(source, wrong)
    return file.leases


def wrong_with(lease: Lease) -> str:
    """Why this is no lease; empty if it is one."""
    if lease.host != CLUSTER and not HOST.fullmatch(lease.host):
        return f"{lease.host!r} is no name of a host"
    for name, text, most in (("why", lease.why, MOST_WHY), ("who", lease.who, MOST_WHO)):
        if not 0 < len(text) <= most or not text.isprintable():
            return f"{name}: expected 1 to {most} printable characters"
    if not 0 <= lease.since_ts <= lease.until_ts <= lease.since_ts + LONGEST_S:
        return f"ends before it begins, or lasts longer than {LONGEST_S / 86400:.0f} days"
    return ""


def read_leases(own: OwnDirectory, now: float) -> Leases:
    """Empty where there is no file. A lease that ends later than any can was started by a wrong clock, and is none."""
    try:
        data = own.read(LEASE_FILE, _MAX_BYTES)
    except FileNotFoundError:
        return Leases()
    leases = parse_leases(data, source=own.where(LEASE_FILE))
    return Leases(lease for lease in leases if now - KEPT_S < lease.until_ts <= now + LONGEST_S)


def read_seen(own: OwnDirectory) -> frozenset[tuple[str, float]]:
    """Host and end of the leases that were scraped; empty if that is not known."""
    try:
        return frozenset(jsontext.decode(own.read(SEEN_FILE, _MAX_BYTES), _Seen).seen)
    except (FileNotFoundError, FileRefused, msgspec.DecodeError, ValueError):
        return frozenset()


LEASE_BEGINNING, SEEN_BEGINNING = b'{"version":1,"leases":[', b'{"version":1,"seen":['


def _holds(kind: type[msgspec.Struct], descriptor: int) -> bool:
    try:
        jsontext.decode(read_whole(descriptor, _MAX_BYTES, ""), kind)
    except (FileRefused, msgspec.DecodeError, ValueError):
        return False
    return True


LEASE_PROOF, SEEN_PROOF = Content(partial(_holds, _File)), Content(partial(_holds, _Seen))


@contextmanager
def opened(storage: Path) -> Iterator[OwnDirectory]:
    """The daemon's storage path, with its owner's rights: root gives its own up until the process ends.

    Raises :class:`StateError` if it is not a daemon's, and for what the system refuses."""
    try:
        owner = storage.stat()
        with OwnDirectory.at(storage, owner=owner.st_uid, follow=True) as own:
            if not marked(own):
                raise StateError(f"{storage}: no daemon has marked it; start the daemon on this node first")
            if os.geteuid() == 0 and owner.st_uid:
                os.setgroups([])
                os.setresgid(owner.st_gid, owner.st_gid, owner.st_gid)
                os.setresuid(owner.st_uid, owner.st_uid, owner.st_uid)
            yield own
    except FileRefused as error:
        raise StateError(str(error)) from error
    except OSError as error:
        raise StateError(f"{storage}: {error.strerror}; run this as root or as the daemon's user") from error


def start(own: OwnDirectory, lease: Lease) -> None:
    """Put ``lease`` into force; an earlier one of the same host ends."""
    if wrong := wrong_with(lease):
        raise StateError(wrong)
    with _alone(own):
        _write(own, (*_ended(read_leases(own, lease.since_ts), lease.host, lease.since_ts), lease), lease.since_ts)


def end(own: OwnDirectory, host: str, now: float) -> None:
    """End the lease of ``host``; :class:`StateError` if none is in force here."""
    with _alone(own):
        leases = read_leases(own, now)
        if not any(lease.host == host for lease in leases.in_force(now)):
            raise StateError(
                f"no maintenance of {host or 'the cluster'} is in force here; it ends on the node where it was started:"
                " plumbline maintenance list"
            )
        _write(own, _ended(leases, host, now), now)


@contextmanager
def _alone(own: OwnDirectory) -> Iterator[None]:
    """Of two commands at once the later one reads what the other has written."""
    fcntl.flock(own.fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(own.fd, fcntl.LOCK_UN)


def _ended(leases: Iterable[Lease], host: str, now: float) -> tuple[Lease, ...]:
    return tuple(
        msgspec.structs.replace(lease, since_ts=min(now, lease.since_ts), until_ts=now)
        if lease.host == host and lease.until_ts > now
        else lease
        for lease in leases
    )


def _write(own: OwnDirectory, leases: tuple[Lease, ...], now: float) -> None:
    if len(Leases(leases).in_force(now)) > MOST:
        raise StateError(f"{own.where(LEASE_FILE)}: more than {MOST} hosts; use --cluster")
    latest = sorted(leases, key=lambda lease: lease.until_ts)[-MOST:]
    own.replace(LEASE_FILE, jsontext.encode(_File(_VERSION, tuple(latest))), LEASE_PROOF, mode=0o640)


class LeaseWatch:
    """What the daemon exports, and which of it was scraped. ``wall``: Unix seconds."""

    def __init__(self, storage: Path, *, wall: Callable[[], float] = time.time) -> None:
        self._storage, self._wall = storage, wall
        self._lock = threading.Lock()
        self._scraped: frozenset[tuple[str, float]] = frozenset()
        self._written: frozenset[tuple[str, float]] | None = None
        self._logged = ""
        self.slot = PeriodicSlot[Leases]("maintenance", EVERY_S, "leases of maintenance", self._read)

    def scraped(self, leases: Leases) -> None:
        """These were part of a page of metrics. Any thread may call this; it does not block."""
        with self._lock:
            self._scraped = frozenset((lease.host, lease.until_ts) for lease in leases)

    def _read(self) -> Leases:
        now = self._wall()
        try:
            with OwnDirectory.at(self._storage, follow=True) as own:
                leases = read_leases(own, now)
                self._answer(own, leases)
        except FileNotFoundError:
            return Leases()
        except (OSError, FileRefused, ParseError) as error:
            reason = f"{self._storage}: {error.strerror}" if isinstance(error, OSError) else str(error)
            if reason != self._logged:
                log.warning("maintenance: %s", reason)
            self._logged = reason
            raise error if isinstance(error, PlumblineError) else StateError(reason) from error
        self._logged = ""
        return leases

    def _answer(self, own: OwnDirectory, leases: Leases) -> None:
        with self._lock:
            scraped = self._scraped
        scraped &= {(lease.host, lease.until_ts) for lease in leases}
        if scraped == (read_seen(own) if self._written is None else self._written):
            return
        own.replace(SEEN_FILE, jsontext.encode(_Seen(_VERSION, tuple(sorted(scraped)))), SEEN_PROOF, mode=0o640)
        self._written = scraped
