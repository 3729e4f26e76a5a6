"""Operations in flight: what they are for, and for whom."""

from __future__ import annotations

import json

import pytest

from plumbline.errors import ParseError
from plumbline.sources.ceph.osd_clients import InFlight, Owner, owner_of, parse_in_flight

WRITE = (
    "osd_op(client.4214.0:16481 1.3 1:c29934cb:::rbd_data.10146274584d.000000000000002c:head [write 114688~4096] snapc"
    " 0=[] ondisk+write+known_if_redirected e33)"
)
REPLICA = (
    "osd_repop(client.4278.0:35 3.13 e33/23 3:cfff5298:::rbd_data.104211327048.0000000000000001:head v 33'2888, "
    "mlcod=33'2886)"
)
READ = "osd_op(client.9.0:7 5.1s0 5:00000001:mine:key:a%3ab:4 [read 0~4096] snapc 0=[] ondisk+read+localize_reads e33)"
MARKER = "4b1c1c2e-9d0c-4f52-a1c3-6f2b5a8f6d11.4137.2"
NO_OBJECT = (
    "MOSDECSubOpWrite(2.4s1 16/12 ECSubWrite(tid=3, reqid=client.4.0:1, at_version=16'1))",
    "osd_pg_create(e9 1.0:7)",
    "osd_op(client.4.0:1 1.3 1.a7 (undecoded) ondisk+write e33)",
    "",
)


def dump(*operations: tuple[str, str]) -> bytes:
    found = [
        {"description": text, "type_data": {"client_info": {"client_addr": host}} if host else {}}
        for text, host in operations
    ]
    return json.dumps({"ops": found, "num_ops": len(found)}).encode()


def test_a_clients_write_a_replicas_and_a_read() -> None:
    """The first two are of Ceph 16.2."""
    read = dump((WRITE, "127.0.0.1:0/2992044885"), (REPLICA, ""), (READ, "v2:[fd00::1]:0/77"))
    assert parse_in_flight(read, source="osd.0") == (
        InFlight("client.4214", 16481, "127.0.0.1", Owner(1, "image", "10146274584d"), True),
        InFlight("client.4278", 35, "", Owner(3, "image", "104211327048"), True),
        InFlight("client.9", 7, "fd00::1", Owner(5, "objects", "mine"), False),
    )


def test_what_has_no_object_is_left_out() -> None:
    assert parse_in_flight(dump(*((text, "") for text in NO_OBJECT)), source="osd.0") == ()


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("rbd_data.7.10146274584d.000000000000002c", ("image", "10146274584d")),
        ("rbd_header.10146274584d", ("image", "10146274584d")),
        ("rbd_object_map.10146274584d.0000000000000004", ("image", "10146274584d")),
        (f"{MARKER}_photos%2f1.jpg", ("bucket", MARKER)),
        ("10000000abc.00000012", ("file", "10000000abc")),
        ("benchmark_data_s1_77_object3", ("objects", "")),
        ("rbd_directory", ("objects", "")),
    ],
)  # fmt: skip
def test_whose_an_object_is(name: str, owner: tuple[str, str]) -> None:
    assert owner_of(1, "", name) == Owner(1, *owner)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"ops": [{"description": 7}]}', b'{"ops": 3}'])
def test_what_is_malformed(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"^osd\.0"):
        parse_in_flight(data, source="osd.0")
