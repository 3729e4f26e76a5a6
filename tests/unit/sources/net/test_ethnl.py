"""Ethtool over netlink: requests, rings, flow control, speed, and dumps that break off."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest

from plumbline.errors import ParseError, Unavailable
from plumbline.sources.net import ethnl
from plumbline.sources.net.linkmodes import LinkModes, parse_linkmodes
from plumbline.sources.net.netlink import Netlink, attribute
from plumbline.sources.net.port_settings import PauseConfig, PauseState, RingSizes, parse_pause, parse_rings
from support.ethnl_replies import FAMILY, only, reply, u8, u32, u64
from support.replay_network import ReplayNetlink, done, error, message

FIXTURES = Path(__file__).parents[3] / "fixtures"


def ethtool(command: int, *datagrams: bytes) -> Netlink:
    return Netlink(ReplayNetlink({(FAMILY, command): list(datagrams)}), source="test")


def no_skip(item: str, reason: str) -> None:
    raise AssertionError(f"{item} was skipped: {reason}")


def test_requests_are_the_documented_bytes() -> None:
    assert ethnl.request(15) == bytes.fromhex("0f01000004000180")
    assert ethnl.request(21, flags=4) == bytes.fromhex("150100000c0001800800030004000000")
    assert ethnl.request(21, flags=4, ifindex=2) == bytes.fromhex("150100001400018008000100020000000800030004000000")


def test_a_virtual_machines_rings_and_nothing_else() -> None:
    generic = Netlink(ReplayNetlink.load(FIXTURES / "net-virtio-guest"), source="replay")
    rings = ethnl.read_all(generic, FAMILY, ethnl.RINGS_GET, parse_rings, on_skip=no_skip)
    assert rings == {4: RingSizes(rx=256, tx=256, rx_max=256, tx_max=256)}
    assert ethnl.read_all(generic, FAMILY, ethnl.LINKMODES_GET, parse_linkmodes, on_skip=no_skip) == {4: LinkModes()}
    assert ethnl.read_all(generic, FAMILY, ethnl.PAUSE_GET, parse_pause, on_skip=no_skip) == {}


def test_software_links_claim_speeds_but_no_rings() -> None:
    generic = Netlink(ReplayNetlink.load(FIXTURES / "net-software-links"), source="replay")
    modes = ethnl.read_all(generic, FAMILY, ethnl.LINKMODES_GET, parse_linkmodes, on_skip=no_skip)
    assert {each.speed_mbps for each in modes.values()} == {10000}
    assert ethnl.read_all(generic, FAMILY, ethnl.RINGS_GET, parse_rings, on_skip=no_skip) == {}


def test_all_rings_of_a_reply() -> None:
    data = reply(2, u32(2, 8192), u32(3, 1), u32(4, 2), u32(5, 4096), u32(6, 512), u32(7, 3), u32(8, 4), u32(9, 256))
    assert parse_rings(only(data)) == (
        2,
        RingSizes(rx=512, rx_mini=3, rx_jumbo=4, tx=256, rx_max=8192, rx_mini_max=1, rx_jumbo_max=2, tx_max=4096),
    )


def test_pause_frames_are_told_by_direction() -> None:
    stats = attribute(5 | 0x8000, attribute(1, b"") + u64(2, 51) + u64(3, 1 << 40))
    data = reply(2, u8(2, 0), u8(3, 1), u8(4, 0), stats)
    assert parse_pause(only(data)) == (
        2,
        PauseState(PauseConfig(False, True, False), receive_frames=1 << 40, transmit_frames=51),
    )


def test_a_driver_that_does_not_count_pause_frames_has_none() -> None:
    data = reply(2, u8(2, 1), u8(3, 1), u8(4, 1), attribute(5 | 0x8000, b""))
    assert parse_pause(only(data)) == (2, PauseState(PauseConfig(True, True, True), None, None))


@pytest.mark.parametrize("parse", [parse_rings, parse_pause, parse_linkmodes])
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (message(FAMILY, b""), "reply names no interface"),
        (message(FAMILY, b"\x10\x01\0\0" + attribute(1, b"")), "reply names no interface"),
        (message(FAMILY, b"\x10\x01\0\0" + attribute(1, attribute(1, b"abc"))), "number of 3 bytes"),
        (reply(2, struct.pack("=HH", 9, 5)), "attribute 5 at byte .* claims 9 bytes"),
    ],
)
def test_malformed_replies(parse, data: bytes, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParseError, match=reason):
        parse(only(data))


def test_malformed_numbers() -> None:
    with pytest.raises(ParseError, match="RINGS_GET: number of 5 bytes"):
        parse_rings(only(reply(2, attribute(6, b"\0" * 5))))
    with pytest.raises(ParseError, match="PAUSE_GET: number of 0 bytes"):
        parse_pause(only(reply(2, attribute(3, b""))))
    with pytest.raises(ParseError, match="LINKMODES_GET: number of 6 bytes"):
        parse_linkmodes(only(reply(2, attribute(5, b"\0" * 6))))


class IllDevice(ReplayNetlink):
    """Three ports; the dump breaks off at the second, and so does a request for it alone."""

    def send(self, request: bytes) -> None:
        asked = request[28:32] if len(request) > 28 else b""
        self.answers[FAMILY] = {
            b"": reply(2, u32(6, 512)) + done(errno.ENODEV),
            struct.pack("=I", 3): error(errno.ENODEV),
            struct.pack("=I", 4): reply(4, u32(6, 1024)),
        }[asked]
        super().send(request)


def test_one_ill_device_does_not_hide_those_behind_it() -> None:
    skipped: list[tuple[str, str]] = []
    rings = ethnl.read_all(
        Netlink(IllDevice({}), source="test"),
        FAMILY,
        ethnl.RINGS_GET,
        parse_rings,
        expected=(2, 3, 4),
        on_skip=lambda item, reason: skipped.append((item, reason)),
    )
    assert rings == {2: RingSizes(rx=512), 4: RingSizes(rx=1024)}
    assert skipped == [("ifindex 3", "vanished")]


def test_a_dump_that_gives_nothing_but_an_error_is_that_error() -> None:
    with pytest.raises(Unavailable, match="EPERM"):
        ethnl.read_all(
            ethtool(ethnl.RINGS_GET, done(errno.EPERM)), FAMILY, ethnl.RINGS_GET, parse_rings, on_skip=no_skip
        )


def test_replies_of_other_devices_are_left_unread() -> None:
    ill = reply(7, attribute(6, b"\0" * 5))
    (rings,) = ethnl.read_all(
        ethtool(ethnl.RINGS_GET, ill + reply(2, u32(6, 512)) + ill + done()),
        FAMILY,
        ethnl.RINGS_GET,
        parse_rings,
        only=(2,),
        on_skip=no_skip,
    ).items()
    assert rings == (2, RingSizes(rx=512))


def test_a_reply_of_nobody_is_malformed_also_where_some_are_left_unread() -> None:
    nobody = message(FAMILY, b"\x10\x01\0\0" + u32(6, 512)) + done()
    with pytest.raises(ParseError, match="RINGS_GET: reply names no interface"):
        ethnl.read_all(
            ethtool(ethnl.RINGS_GET, nobody), FAMILY, ethnl.RINGS_GET, parse_rings, only=(2,), on_skip=no_skip
        )
