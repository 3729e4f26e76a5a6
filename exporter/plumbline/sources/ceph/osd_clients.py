"""Who an OSD works for: its operations in flight, by object and client.

``dump_ops_in_flight`` on the admin socket has a description of each, the same from Ceph 16 to 20
(``src/messages/MOSDOp.h``, ``MOSDRepOp.h``)::

    osd_op(client.4214.0:16481 1.3 1:c29934cb:::rbd_data.10146274584d.000000000000002c:head [write 114688~4096] …
        ondisk+write+known_if_redirected e33)
    osd_repop(client.4214.0:16808 1.1a e33/12 1:5e862387:::rbd_data.10146274584d.0000000000000009:head v 33'1127, …)

An object is ``pool:hash:namespace:key:name:snapshot`` (``src/common/hobject.cc``), with ``:``, ``%`` and ``/`` in them
escaped. The secondaries of an erasure-coded pool are not told the object (``MOSDECSubOpWrite``): theirs are left out,
and the primary of each has it. ``type_data.client_info`` has the client's address, but not for replicas.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from plumbline.errors import PlumblineError
from plumbline.sources.ceph.adminsocket import Answer, Question, ask, decode

LOOK_EVERY_S = 0.1
_IN_FLIGHT = "dump_ops_in_flight"

_OPERATION = re.compile(
    r"(?P<type>osd_op|osd_repop)\((?P<client>[a-z]+\.\d+)\.\d+:(?P<number>\d+) [^ ]+ (?:e\d+/\d+ )?"
    r"(?P<pool>\d+):[0-9a-f]+:(?P<namespace>[^: ]*):[^: ]*:(?P<name>[^: ]*):[0-9a-z]+ "
)
# what an object belongs to, by how its owner names it
_OWNERS = (
    # librbd; images with a data pool have the number of their own pool before the id
    ("image", re.compile(r"rbd_data\.(?:\d+\.)?([0-9a-f]+)\.[0-9a-f]{16}")),
    ("image", re.compile(r"rbd_(?:header|object_map)\.([0-9a-f]+)(?:\.[0-9a-f]{16})?")),
    # RADOS Gateway: the bucket's marker, then the object's name
    ("bucket", re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.\d+\.\d+)_.*")),
    # CephFS: the inode, then the number of the block
    ("file", re.compile(r"([0-9a-f]+)\.[0-9a-f]{8}")),
)


class Owner(Struct, frozen=True, order=True):
    """What an object belongs to. ``kind``: image (its id), bucket (its marker), file (its inode in hexadecimal),
    objects (a namespace, empty: the default one)."""

    pool: int
    kind: str
    name: str


class InFlight(Struct, frozen=True):
    """An operation. ``client`` and ``number`` identify it on all OSDs that work on it; ``host`` is the client's
    address, empty where it is not told."""

    client: str
    number: int
    host: str
    owner: Owner
    writes: bool


class _Client(Struct, frozen=True):
    client_addr: str = ""


class _TypeData(Struct, frozen=True):
    client_info: _Client = _Client()


class _Operation(Struct, frozen=True):
    description: str = ""
    type_data: _TypeData = _TypeData()


class _Operations(Struct, frozen=True):
    ops: tuple[_Operation, ...] = ()


def parse_in_flight(data: bytes, *, source: str) -> tuple[InFlight, ...]:
    """Parse ``dump_ops_in_flight``; :class:`ParseError` when malformed. What is no client's operation on an object is
    left out: maps, pings, recovery."""
    return tuple(
        InFlight(
            client=match["client"],
            number=int(match["number"]),
            host=_host(operation.type_data.client_info.client_addr),
            owner=owner_of(int(match["pool"]), match["namespace"], match["name"]),
            writes=match["type"] == "osd_repop" or "+write+" in operation.description,
        )
        for operation in decode(_Operations, data, source=source).ops
        if (match := _OPERATION.match(operation.description))
    )


def look(
    sockets: Mapping[str, Path], timeout_s: float, ask_all: Callable[..., list[Answer]] = ask
) -> tuple[list[InFlight], dict[str, PlumblineError]]:
    """What is in flight on these OSDs now, once for each that works on it; and by OSD why one told nothing."""
    questions = [Question(path, _IN_FLIGHT) for path in sockets.values()]
    seen: list[InFlight] = []
    faults: dict[str, PlumblineError] = {}
    for osd, question, answer in zip(sockets, questions, ask_all(questions, timeout_s=timeout_s), strict=True):
        try:
            if isinstance(answer, PlumblineError):
                raise answer
            seen += parse_in_flight(answer, source=question.source)
        except PlumblineError as error:
            faults[osd] = error
    return seen, faults


def owner_of(pool: int, namespace: str, name: str) -> Owner:
    for kind, pattern in _OWNERS:
        if match := pattern.fullmatch(name):
            return Owner(pool, kind, match[1])
    return Owner(pool, "objects", namespace)


def _host(address: str) -> str:
    """``v1:10.0.0.1:0/2992044885`` or ``[fd00::1]:0/7`` without protocol, port and nonce."""
    return re.sub(r"^(?:v[12]|any):|:\d+/\d+$", "", address).strip("[]")
