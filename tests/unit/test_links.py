"""Links as the kernel describes them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.links import (
    RTM_GETLINK,
    RTM_NEWLINK,
    Link,
    LinkStats,
    OperState,
    label,
    parse_link,
    read_links,
)
from plumbline.sources.netlink import Netlink, attribute, parse_messages
from support.replay_network import ReplayNetlink, done, message

FIXTURES = Path(__file__).parents[1] / "fixtures"


def links_of(scenario: str) -> dict[str, Link]:
    route = Netlink(ReplayNetlink.load(FIXTURES / scenario), source="replay")
    return {link.name: link for link in read_links(route).values()}


def link_message(*attributes: bytes, flags: int = 0x1043, index: int = 7) -> bytes:
    return message(RTM_NEWLINK, struct.pack("=BxHiII", 0, 1, index, flags, 0) + b"".join(attributes))


def parse(*attributes: bytes, flags: int = 0x1043) -> Link:
    (only,) = parse_messages(link_message(*attributes, flags=flags), source="test")
    return parse_link(only, source="test")


NAME = attribute(3, b"eth7\0")


def test_a_virtual_machines_port_is_read_whole() -> None:
    links = links_of("net-virtio-guest")
    assert list(links) == ["lo", "ifb0", "ifb1", "eth0"]
    port = links["eth0"]
    assert port.stats is not None
    assert port._replace(stats=None) == Link(
        ifindex=4,
        name="eth0",
        raw_name=b"eth0",
        kind="",
        flags=0x11043,
        mtu_bytes=1400,
        operstate=OperState.UP,
        carrier=True,
        carrier_changes=2,
        master_index=0,
        address="02:fc:00:00:00:01",
        parent="virtio2",
        parent_bus="virtio",
        stats=None,
    )
    assert port.hardware
    assert port.up
    assert not links["lo"].hardware
    assert links["lo"].up, "the loopback has no operational state; its carrier says it"
    assert not links["ifb0"].hardware
    assert not links["ifb0"].up


def test_software_links_have_kinds_masters_and_any_bytes_as_names() -> None:
    links = links_of("net-software-links")
    assert {name: link.kind for name, link in links.items()} == {
        "lo": "",
        "br0": "bridge",
        "va0": "veth",
        "vb0": "veth",
        "ifb9": "ifb",
        "mv0": "macvlan",
        "café": "veth",
        "ca\\xff\\xfe": "veth",
    }
    assert links["ca\\xff\\xfe"].raw_name == b"ca\xff\xfe"
    assert links["vb0"].master_index == links["br0"].ifindex
    assert [name for name, link in links.items() if link.master_index] == ["vb0"]
    assert not any(link.hardware for link in links.values())
    assert {name for name, link in links.items() if link.up} == {"lo", "br0", "va0", "vb0"}


def test_counters_stand_in_the_kernels_order() -> None:
    values = tuple(range(100, 125))
    link = parse(NAME, attribute(23, struct.pack("=25Q", *values)))
    assert link.stats == LinkStats(*values)
    assert link.stats.rx_bytes == 102
    assert link.stats.rx_missed_errors == 115
    assert link.stats.rx_nohandler == 123
    assert link.stats.rx_otherhost_dropped == 124


@pytest.mark.parametrize(
    ("count", "nohandler", "otherhost"), [(23, None, None), (24, 123, None), (25, 123, 124), (30, 123, 124)]
)
def test_counters_of_older_and_newer_kernels(count: int, nohandler: int | None, otherhost: int | None) -> None:
    stats = parse(NAME, attribute(23, struct.pack(f"={count}Q", *range(100, 100 + count)))).stats
    assert stats is not None
    assert (stats.tx_compressed, stats.rx_nohandler, stats.rx_otherhost_dropped) == (122, nohandler, otherhost)


def test_what_the_kernel_does_not_say_is_none() -> None:
    link = parse(NAME)
    assert (link.mtu_bytes, link.carrier, link.carrier_changes, link.stats) == (None, None, None, None)
    assert (link.kind, link.master_index, link.address, link.parent) == ("", 0, "", "")


@pytest.mark.parametrize(
    ("state", "carrier", "flags", "up"),
    [
        (6, 1, 0x1, True),
        (6, 0, 0x1, True),
        (2, 1, 0x1, False),
        (5, 1, 0x1, False),
        (0, 1, 0x1, True),
        (0, 0, 0x1, False),
        (0, 1, 0x0, False),
    ],
)
def test_up_means_able_to_carry_frames(state: int, carrier: int, flags: int, up: bool) -> None:
    assert parse(NAME, attribute(16, bytes((state,))), attribute(33, bytes((carrier,))), flags=flags).up is up


@pytest.mark.parametrize(
    ("kind", "parent", "flags", "hardware"),
    [
        (b"", b"", 0x1, True),
        (b"", b"0000:3b:00.0", 0x1, True),
        (b"", b"", 0x9, False),
        (b"veth", b"", 0x1, False),
        (b"ipoib", b"", 0x1, True),
        (b"dsa", b"fixed-0:00", 0x1, True),
    ],
)
def test_hardware_is_what_has_a_driver_behind_it(kind: bytes, parent: bytes, flags: int, hardware: bool) -> None:
    info = [attribute(18 | 0x8000, attribute(1, kind + b"\0"))] if kind else []
    bus = [attribute(56, parent + b"\0")] if parent else []
    assert parse(NAME, *info, *bus, flags=flags).hardware is hardware


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ((), "link 7 has no name"),
        ((attribute(3, b"\0"),), "link 7 has no name"),
        ((NAME, attribute(23, b"\0" * 8)), "link statistics of 8 bytes, at least 184 expected"),
        ((NAME, attribute(4, b"\0\0\0")), "a number of 3 bytes"),
        ((NAME, struct.pack("=HH", 3, 4)), "attribute 4 says 3 bytes"),
        ((NAME, struct.pack("=HH", 60, 4)), "attribute 4 says 60 bytes, 4 left"),
        ((NAME, attribute(18, struct.pack("=HH", 2, 1))), "attribute 1 at byte .* says 2 bytes"),
    ],
)
def test_malformed_links_are_refused(attributes: tuple[bytes, ...], reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse(*attributes)


def test_a_message_too_short_for_a_link_is_refused() -> None:
    (only,) = parse_messages(message(RTM_NEWLINK, b"\0" * 15), source="test")
    with pytest.raises(ParseError, match="a link of 15 bytes"):
        parse_link(only)


def test_a_link_that_a_disturbed_dump_lists_twice_is_there_once() -> None:
    data = link_message(NAME, index=7) + link_message(attribute(3, b"renamed\0"), index=7) + done()
    links = read_links(Netlink(ReplayNetlink({RTM_GETLINK: data}), source="test"))
    assert [link.name for link in links.values()] == ["renamed"]


def test_no_link_at_all_is_a_fault() -> None:
    with pytest.raises(PlumblineError, match="not even a loopback"):
        read_links(Netlink(ReplayNetlink({RTM_GETLINK: done()}), source="test"))


def test_two_names_that_are_not_utf8_stay_two_labels() -> None:
    assert label(b"\xff") == "\\xff"
    assert label(b"\xfe") == "\\xfe"
    assert label("é".encode()) == "é"
