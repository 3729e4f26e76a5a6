"""GlusterFS as the glusterd of this host knows it: ``gluster get-state``, which writes a file
(https://docs.redhat.com/en/documentation/red_hat_gluster_storage/3.5/html/administration_guide/obtaining_node_information)::

    [Global]
    MYUUID: bff5649f-3dd2-42f8-bb6a-42720f8a5bda
    [Peers]
    Peer1.primary_hostname: 10.77.0.2
    Peer1.uuid: 4687ed20-67a8-4a33-b3bc-12ea65cfbaa0
    Peer1.connected: Disconnected
    [Volumes]
    Volume1.name: rep
    Volume1.status: Started
    Volume1.brickcount: 3
    Volume1.Brick1.path: 10.77.0.1:/srv/rep
    Volume1.Brick1.status: Stopped          only of bricks of this host
    Volume1.Brick2.path: 10.77.0.2:/srv/rep
    Volume1.replica_count: 3                an arbiter counts
    Volume1.subvol_count: 1
    Volume1.disperse_count: 0
    Volume1.redundancy_count: 0
    Volume1.quorum_status: meets            does_not_meet, not_applicable; of the servers
    Volume1.options.cluster.quorum-type: auto      only options that somebody has set

It takes no lock in the cluster, unlike ``gluster volume status``: glusterd answers from its memory, and asks the file
systems of its bricks for their free space. ``gluster volume heal NAME statistics heal-count`` has no other form than
this, is refused for dispersed volumes, and holds the volume's lock meanwhile::

    Gathering count of entries to be healed on volume rep has been successful

    Brick 10.77.0.1:/srv/rep
    Status: Brick is not connected
    No gathered input for this brick

    Brick 10.77.0.2:/srv/rep
    Number of entries: 21
"""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import count

from msgspec import Struct

from plumbline.core.process import Runner
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.command import printed
from plumbline.sources.kernel.sysfs import parse_number, require

DROP_IN = "systemd/drop-ins/gluster.conf"
STATE_FILE = "plumbline-gluster-state"  # in /run, where only root makes files: no one can put a link in its place
GLUSTER = ("gluster", "--mode=script", "--log-file=/dev/null")  # the log is root's, and would say each question
WITHIN_S = 10.0

_STATE, _HEALS = "gluster get-state", "gluster volume heal"
_MAX_BYTES = 16 << 20  # 60 bytes for a brick of another host, 300 for one of this
_QUORUM = {"meets": True, "does_not_meet": False}
_ENTRIES = re.compile(r"Number of entries: ([0-9]{1,18})\s*")
_DONE = "has been successful"


class Peer(Struct, frozen=True):
    """Another host of the pool, by the name that it was probed by."""

    name: str
    uuid: str
    connected: bool


class Brick(Struct, frozen=True):
    """A brick of this host."""

    name: str  # host:/path
    subvolume: int  # Its replica or disperse set in the volume, from 0
    up: bool


class Volume(Struct, frozen=True):
    """A volume that was started. Clients can write to a subvolume while ``needed`` of its ``bricks_each`` are up."""

    name: str
    bricks_each: int
    needed: int
    replicated: bool
    server_quorum: bool | None  # ``None``: bricks don't depend on how many servers see one another
    bricks: tuple[Brick, ...]


class GlusterState(Struct, frozen=True):
    """What one glusterd knows."""

    uuid: str
    peers: tuple[Peer, ...]
    volumes: tuple[Volume, ...]

    @property
    def asks(self) -> bool:
        """Whether this host asks what concerns the whole pool: of those that see one another, one does."""
        return all(self.uuid < peer.uuid for peer in self.peers if peer.connected)


class GlusterReading(Struct, frozen=True):
    """``heals``: volume and brick → entries to be healed; empty on hosts that don't ask."""

    state: GlusterState
    heals: Mapping[tuple[str, str], int]


def parse_state(data: bytes) -> GlusterState:
    """:class:`ParseError` for a file of another form; what is not known is skipped."""
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        key, _, value = line.partition(": ")
        fields.setdefault(key, value.strip())
    if not fields.get("MYUUID"):
        raise ParseError(_STATE, "names no MYUUID")
    peers = {
        name: Peer(name, fields.get(f"{peer}.uuid", ""), fields.get(f"{peer}.connected") == "Connected")
        for peer, name in _numbered(fields, "Peer", ".primary_hostname")
    }
    volumes = {
        name: _volume(fields, name, f"{volume}.")
        for volume, name in _numbered(fields, "Volume", ".name")
        if fields.get(f"{volume}.status") == "Started"
    }
    return GlusterState(fields["MYUUID"], tuple(peers.values()), tuple(volumes.values()))


def _numbered(fields: Mapping[str, str], kind: str, key: str) -> Iterator[tuple[str, str]]:
    """``Peer1`` and the value of its ``key``, ``Peer2`` …"""
    for number in count(1):
        value = fields.get(f"{kind}{number}{key}")
        if value is None:
            return
        yield f"{kind}{number}", value


def _volume(fields: Mapping[str, str], name: str, prefix: str) -> Volume:
    def number(key: str, otherwise: str = "") -> int:
        return parse_number(fields.get(prefix + key, otherwise), source=f"{_STATE}: {prefix}{key}")

    size = number("brickcount") // max(1, number("subvol_count"))
    replicated = number("replica_count") > 1
    needed = 1
    if number("disperse_count"):
        needed = size - number("redundancy_count")
    elif replicated:
        # unless somebody has set it: auto from three bricks on; of an even number half suffices, if the first is up
        kind = fields.get(f"{prefix}options.cluster.quorum-type", "auto" if size > 2 else "none")
        fixed = number("options.cluster.quorum-count", "1") if kind == "fixed" else 1
        needed = (size + 1) // 2 if kind == "auto" else fixed
    bricks = {
        path: Brick(path, index // max(1, size), status == "Started")
        for index, (brick, path) in enumerate(_numbered(fields, f"{prefix}Brick", ".path"))
        if (status := fields.get(f"{brick}.status")) is not None
    }
    quorum = _QUORUM.get(fields.get(f"{prefix}quorum_status", ""))
    return Volume(name, size, needed, replicated, quorum, tuple(bricks.values()))


def parse_heals(data: bytes) -> dict[str, int]:
    """Brick → entries that it has to bring to others, without bricks that are down; :class:`ParseError` for no answer,
    such as while somebody else holds the volume's lock."""
    text = data.decode("utf-8", "surrogateescape")
    if _DONE not in text:
        raise ParseError(_HEALS, f"no count: {' '.join(text.split())[:200]}")
    heals, brick = dict[str, int](), ""
    for line in text.split("\n"):
        if line.startswith("Brick "):
            brick = line.removeprefix("Brick ").strip()
        elif brick and (match := _ENTRIES.fullmatch(line)):
            heals[brick] = int(match[1])
    return heals


def read_state(roots: Roots, runner: Runner) -> GlusterState:
    """Ask the glusterd of this host. :class:`Unavailable` where none was started, or where it may not be asked."""
    run = roots.udev.parent
    socket = run / "glusterd.socket"
    if not socket.exists():
        raise Unavailable("no glusterd runs here")
    if not os.access(socket, os.W_OK):
        raise Unavailable(f"{socket}: no permission to ask glusterd, see {DROP_IN}")
    argv = (*GLUSTER, "get-state", "glusterd", "odir", str(run), "file", STATE_FILE)
    printed(runner.run(argv, timeout_s=WITHIN_S), _STATE, WITHIN_S)
    return parse_state(require(run / STATE_FILE, _MAX_BYTES))


def read_heals(volume: str, runner: Runner) -> dict[str, int]:
    """:func:`parse_heals` of the answer for one volume."""
    argv = (*GLUSTER, "volume", "heal", volume, "statistics", "heal-count")
    return parse_heals(printed(runner.run(argv, timeout_s=WITHIN_S), _HEALS, WITHIN_S))
