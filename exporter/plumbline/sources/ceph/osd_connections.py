"""The TCP connections of this host's OSDs to other OSDs: round-trip times, retransmits, and to whom.

A write waits for its replicas over these connections, so they tell a slow network from a slow peer. Two sources:

- ``messenger dump cluster`` on the OSD's admin socket (Ceph 19.2.1 and later)::

    {"name": "cluster", "messenger": {"connections": [{"addrvec": [{"type": "v2", "addr": "10.0.0.3:6810", "nonce": 1124659381}],
        "async_connection": {"status": {"connected": true, "loopback": false}, "conn_id": 4, "target_addr": {"addr": "10.0.0.3:6810", …},
            "peer": {"type": "osd", "id": -1, "addr": {"addrvec": [{"nonce": 1124659381, …}, …]}, …},
            "tcp_info": {"tcpi_rtt_us": 7044, "tcpi_rttvar_us": 11651, "tcpi_total_retrans": 0,
                         "tcpi_last_data_sent_ms": 1440, …}, …}}], …}}

  The side that connected has -1 for the peer's number. All of a daemon's addresses have one nonce, and those who
  connect for heartbeats say their number: ``messenger dump hb_back_server`` leads from the nonce to the number.
  https://docs.ceph.com/en/latest/rados/operations/monitoring/#messenger-status
  A dump locks the connections, so it is not asked for often, and what is not needed is left out of it.

- the kernel, for older releases (:mod:`plumbline.sources.net.sockdiag`): the OSD's connections to ports of OSDs, those
  of heartbeats among them. It knows them by the OSD's control group, and has the peer's address alone.
"""  # noqa: E501  (verbatim)

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.ceph.adminsocket import Answer, NotAllowed, Question, ask, decode
from plumbline.sources.kernel.cgroup import group_number
from plumbline.sources.net.sockdiag import TcpConnection, read_connections

T = TypeVar("T")

MESSENGER: Literal["messenger"] = "messenger"
KERNEL: Literal["kernel"] = "kernel"
RECENT_S = 60.0
"""A connection on which nothing was sent for longer has an old round-trip time."""
ASKED_AGAIN_AFTER = 4  # readings, for far ends that heartbeats did not tell
OSD_PORTS = range(6800, 7569)
"""The defaults of ``ms_bind_port_min`` and ``ms_bind_port_max``. A manager and an MDS listen there, too."""
_LAST_PORT = 65535
_SINCE = (19, 2, 1)
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,6})\.(\d{1,6})")


class Connection(msgspec.Struct, frozen=True):
    """One connection to another OSD."""

    key: tuple[int, ...]  # the same for as long as the connection lasts, never used again
    address: str  # ``10.0.0.3:6810``
    peer: int | None  # number of the OSD; ``None``: unknown
    rtt_s: float  # smoothed
    deviation_s: float  # smoothed mean deviation of the round-trip time
    retransmits: int  # segments since it was made
    idle_s: float  # since data was last sent
    nonce: int = 0  # of the peer's addresses; 0: unknown

    @property
    def surely_s(self) -> float:
        """The round-trip time without its deviation. Delayed acknowledgements (40 ms, after each exchange) raise both
        alike: on an idle loopback 11 ms with a deviation of 17 ms were seen. A slow network raises the first alone."""
        return max(self.rtt_s - self.deviation_s, 0.0)


class Far(msgspec.Struct, frozen=True):
    """An end of a connection."""

    address: str
    peer: int | None

    def __str__(self) -> str:
        return self.address if self.peer is None else f"osd.{self.peer}"


class OsdConnections(msgspec.Struct, frozen=True):
    """All connections of one OSD in figures. Times are those of connections that sent data in the last minute, ``None``
    when there are none."""

    daemon: str
    source: Literal["messenger", "kernel"]
    measured: int  # connections of the last minute
    worst_s: float | None  # round-trip time of the connection that is surely the slowest
    worst_deviation_s: float | None  # of the same connection
    worst: Far | None  # its other end
    median_s: float | None
    median_deviation_s: float | None
    retransmits: int
    """Segments of all connections, counted from the first reading on; it never goes back."""
    losing: Far | None  # whose connection had the most retransmits since the reading before; ``None``: there were none


class ConnectionsReading(msgspec.Struct, frozen=True):
    """All OSDs of this host."""

    osds: tuple[OsdConnections, ...]
    unseen: tuple[str, ...]
    """OSDs that did not answer, or whose sockets the kernel can't attribute: they share a control group with another
    OSD, the kernel has no version 2 control groups, or they are in another network namespace."""


class _Address(msgspec.Struct, frozen=True):
    addr: str = ""
    nonce: int = 0


class _Vector(msgspec.Struct, frozen=True):
    addrvec: tuple[_Address, ...] = ()


class _Peer(msgspec.Struct, frozen=True):
    type: str = ""
    id: int = -1
    addr: _Vector = _Vector()


class _TcpInfo(msgspec.Struct, frozen=True):
    tcpi_rtt_us: Annotated[int, Meta(ge=0)]
    tcpi_rttvar_us: Annotated[int, Meta(ge=0)]
    tcpi_total_retrans: Annotated[int, Meta(ge=0)]
    tcpi_last_data_sent_ms: Annotated[int, Meta(ge=0)]


class _Status(msgspec.Struct, frozen=True):
    connected: bool = False
    loopback: bool = False


class _Connection(msgspec.Struct, frozen=True):
    conn_id: int
    peer: _Peer
    status: _Status = _Status()
    tcp_info: _TcpInfo | None = None


class _Entry(msgspec.Struct, frozen=True):
    async_connection: _Connection


class _Messenger(msgspec.Struct, frozen=True):
    nonce: int = 0
    connections: tuple[_Entry, ...] = ()
    anon_conns: tuple[_Connection, ...] = ()


class _Dump(msgspec.Struct, frozen=True):
    messenger: _Messenger


class _Version(msgspec.Struct, frozen=True):
    version: str


def parse_can_dump(data: bytes, *, source: str) -> bool:
    """Whether the daemon that answered ``version`` knows ``messenger dump``; :class:`ParseError` when malformed."""
    match = _VERSION.match(decode(_Version, data, source=source).version)
    return match is not None and tuple(map(int, match.groups())) >= _SINCE


def parse_dump(data: bytes, *, source: str) -> tuple[Connection, ...]:
    """The established connections to OSDs, those that this OSD made without the peer's number; :class:`ParseError` when
    malformed."""
    messenger = decode(_Dump, data, source=source).messenger
    parsed = []
    for entry in messenger.connections:
        connection = entry.async_connection
        info = connection.tcp_info
        if (
            connection.peer.type != "osd"
            or not connection.status.connected
            or connection.status.loopback
            or info is None
        ):
            continue
        address = next(iter(connection.peer.addr.addrvec), _Address())
        parsed.append(
            Connection(
                key=(messenger.nonce, connection.conn_id),
                address=address.addr,
                peer=connection.peer.id if connection.peer.id >= 0 else None,
                rtt_s=info.tcpi_rtt_us / 1e6,
                deviation_s=info.tcpi_rttvar_us / 1e6,
                retransmits=info.tcpi_total_retrans,
                idle_s=info.tcpi_last_data_sent_ms / 1e3,
                nonce=address.nonce,
            )
        )
    return tuple(parsed)


def parse_names(data: bytes, *, source: str) -> dict[int, int]:
    """Nonce → number of the OSDs that connected for heartbeats; :class:`ParseError` when malformed."""
    messenger = decode(_Dump, data, source=source).messenger
    peers = [anon_conn.peer for anon_conn in messenger.anon_conns]
    peers += [connection.async_connection.peer for connection in messenger.connections]
    return {
        address.nonce: peer.id
        for peer in peers
        if peer.type == "osd" and peer.id >= 0
        for address in peer.addr.addrvec
        if address.nonce
    }


class ConnectionReader:
    """Reads them and adds up retransmits. ``addresses``: address and port → number of the OSD that listens there, as
    far as this host knows the cluster map. ``kernel`` returns the connections to a range of ports."""

    def __init__(
        self,
        roots: Roots | None,
        *,
        addresses: Callable[[], Mapping[str, int]] = dict,
        kernel: Callable[[range], Iterable[TcpConnection]] = read_connections,
    ) -> None:
        self._roots, self._addresses, self._kernel = roots, addresses, kernel
        self._names: dict[int, int] = {}  # nonce → number
        self._waits: dict[int, int] = {}  # nonce that heartbeats did not tell → readings until they are asked again
        self._counted: dict[str, dict[tuple[int, ...], int]] = {}  # OSD → connection → its retransmits
        self._total: dict[str, int] = {}
        self._known: frozenset[str] = frozenset()  # The addresses of OSDs at the reading before

    def read(self, sockets: Mapping[str, Path], timeout_s: float) -> ConnectionsReading:
        """:class:`NotAllowed` when no OSD may be asked. Takes three times ``timeout_s`` at most."""
        pids: dict[Path, int] = {}
        versions = _ask(sockets, _version, timeout_s, pids)
        denied = [answer for _, answer in versions.values() if isinstance(answer, NotAllowed)]
        if denied and len(denied) == len(sockets):
            raise denied[0]
        dumps = {daemon: _parsed(parse_can_dump, *versions[daemon]) for daemon in sockets}
        by_messenger = self._dumped({daemon: sockets[daemon] for daemon in sockets if dumps[daemon]}, timeout_s)
        older = {daemon: pids.get(sockets[daemon], 0) for daemon in sockets if dumps[daemon] is False}
        addresses = self._addresses()
        by_kernel = self._of_kernel(older, addresses)
        for gone in self._counted.keys() - sockets.keys():
            del self._counted[gone], self._total[gone]
        osds = (
            *(self._summed(daemon, MESSENGER, conns) for daemon, conns in by_messenger.items()),
            *(self._summed(daemon, KERNEL, conns, _wanted(self._known)) for daemon, conns in by_kernel.items()),
        )
        self._known = frozenset(addresses)
        seen = {osd.daemon for osd in osds}
        return ConnectionsReading(osds, tuple(daemon for daemon in sockets if daemon not in seen))

    def _dumped(self, sockets: Mapping[str, Path], timeout_s: float) -> dict[str, list[Connection]]:
        answers = _ask(sockets, _connections, timeout_s)
        dumps = {daemon: read for daemon in sockets if (read := _parsed(parse_dump, *answers[daemon])) is not None}
        nonces = {daemon: {conn.nonce for conn in read if conn.peer is None} for daemon, read in dumps.items()}
        self._learn(nonces, sockets, timeout_s)
        return {
            daemon: [
                conn if conn.peer is not None else replace(conn, peer=self._names.get(conn.nonce)) for conn in read
            ]
            for daemon, read in dumps.items()
        }

    def _learn(self, nonces: Mapping[str, set[int]], sockets: Mapping[str, Path], timeout_s: float) -> None:
        """Whose the nonces are, and forget all others. Who has just started does not send heartbeats yet."""
        present: set[int] = set().union(*nonces.values())
        due = {nonce for nonce in present - self._names.keys() if not self._waits.get(nonce)}
        strange = {daemon: sockets[daemon] for daemon in nonces if nonces[daemon] & due}
        names, answered = dict(self._names), set[int]()
        for daemon, (question, answer) in _ask(strange, _heartbeats, timeout_s).items():
            if (parsed := _parsed(parse_names, question, answer)) is not None:
                names |= parsed
                answered |= nonces[daemon]
        self._names = {nonce: names[nonce] for nonce in present & names.keys()}
        self._waits = {
            nonce: ASKED_AGAIN_AFTER if nonce in answered else max(self._waits.get(nonce, 0) - 1, 0)
            for nonce in present - names.keys()
        }

    def _of_kernel(self, pids: Mapping[str, int], addresses: Mapping[str, int]) -> dict[str, list[Connection]]:
        groups: dict[int, list[str]] = {}
        for daemon, pid in pids.items():
            number = group_number(self._roots, pid) if pid and self._roots else None
            if number is not None:
                groups.setdefault(number, []).append(daemon)
        # of OSDs in one control group nobody can tell whose a connection is
        owners = {number: daemons[0] for number, daemons in groups.items() if len(daemons) == 1}
        if not owners:
            return {}
        wanted = _wanted(addresses)
        by_osd: dict[str, list[Connection]] = {}
        try:
            connections = list(self._kernel(_ports(addresses)))
        except PlumblineError:
            return {}
        for connection in connections:
            owner, address = owners.get(connection.cgroup or 0), _endpoint(connection)
            if owner is not None and wanted(address):
                by_osd.setdefault(owner, []).append(
                    Connection(
                        key=(connection.cookie,),
                        address=address,
                        peer=addresses.get(address),
                        rtt_s=connection.rtt_us / 1e6,
                        deviation_s=connection.deviation_us / 1e6,
                        retransmits=connection.retransmits,
                        idle_s=connection.idle_ms / 1e3,
                    )
                )
        return by_osd

    def _summed(
        self,
        daemon: str,
        source: Literal["messenger", "kernel"],
        connections: Sequence[Connection],
        looked_at: Callable[[str], bool] = lambda _address: True,
    ) -> OsdConnections:
        """``looked_at``: whether connections to an address were read before: one that comes into view is not new."""
        before = self._counted.get(daemon)
        self._counted[daemon] = {connection.key: connection.retransmits for connection in connections}
        lost: dict[Far, int] = {}
        for connection in connections:
            if before is None or (connection.key not in before and not looked_at(connection.address)):
                seen = connection.retransmits
            else:
                seen = before.get(connection.key, 0)
            # fewer than before: Ceph keeps its connection when TCP's breaks and is made anew
            if more := connection.retransmits - (seen if seen <= connection.retransmits else 0):
                far = Far(connection.address, connection.peer)
                lost[far] = lost.get(far, 0) + more
        self._total[daemon] = self._total.get(daemon, 0) + sum(lost.values())
        recent = [connection for connection in connections if connection.idle_s <= RECENT_S]
        worst = max(recent, key=lambda connection: (connection.surely_s, connection.rtt_s), default=None)
        return OsdConnections(
            daemon=daemon,
            source=source,
            measured=len(recent),
            worst_s=worst.rtt_s if worst else None,
            worst_deviation_s=worst.deviation_s if worst else None,
            worst=Far(worst.address, worst.peer) if worst else None,
            median_s=median(connection.rtt_s for connection in recent) if recent else None,
            median_deviation_s=median(connection.deviation_s for connection in recent) if recent else None,
            retransmits=self._total[daemon],
            losing=max(lost, key=lambda far: lost[far], default=None),
        )


def _version(path: Path) -> Question:
    return Question(path, "version")


def _connections(path: Path) -> Question:
    return Question(path, "messenger dump", {"msgr": "cluster", "tcp_info": True, "dumpcontents": ["connections"]})


def _heartbeats(path: Path) -> Question:
    return Question(path, "messenger dump", {"msgr": "hb_back_server", "dumpcontents": ["anon_conns"]})


def _ask(
    sockets: Mapping[str, Path],
    question: Callable[[Path], Question],
    timeout_s: float,
    pids: dict[Path, int] | None = None,
) -> dict[str, tuple[Question, Answer]]:
    questions = [question(path) for path in sockets.values()]
    return dict(zip(sockets, zip(questions, ask(questions, timeout_s=timeout_s, pids=pids), strict=True), strict=True))


def _parsed(parse: Callable[..., T], question: Question, answer: Answer) -> T | None:
    """``None`` without an answer, or for one of another form."""
    try:
        return None if isinstance(answer, PlumblineError) else parse(answer, source=question.source)
    except ParseError:
        return None


def _ports(addresses: Iterable[str]) -> range:
    """Those between the lowest and the highest, which a site may have changed; :data:`OSD_PORTS` without any."""
    texts = (address.rpartition(":")[2] for address in addresses)
    numbers = [number for text in texts if text.isdecimal() and 0 < (number := int(text)) <= _LAST_PORT]
    return range(min(numbers), max(numbers) + 1) if numbers else OSD_PORTS


def _wanted(addresses: Collection[str]) -> Callable[[str], bool]:
    """Whether an address is an OSD's, by the cluster map; without one, by its port."""
    if addresses:
        return addresses.__contains__
    return lambda address: int(address.rpartition(":")[2]) in OSD_PORTS


def _endpoint(connection: TcpConnection) -> str:
    """As the cluster map writes it: ``10.0.0.3:6810``, ``[fd00::3]:6810``."""
    host = f"[{connection.address}]" if connection.address.version == 6 else str(connection.address)
    return f"{host}:{connection.port}"
