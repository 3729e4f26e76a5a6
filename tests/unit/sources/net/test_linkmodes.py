"""Speed, duplex, negotiation and capability of a link."""

from __future__ import annotations

import struct

import pytest

from plumbline.errors import ParseError
from plumbline.sources.net.linkmodes import (
    SPEEDS_MBPS,
    LinkModes,
    link_modes_words,
    parse_link_settings,
    parse_linkmodes,
)
from support.ethnl_replies import bits, only, reply, u8, u32
from support.replay_network import GLINKSETTINGS, link_settings

AUTONEG, FIBRE, TP = 6, 10, 7


@pytest.mark.parametrize(
    ("attributes", "mbps"),
    [
        ((u32(5, 100_000),), 100_000),
        ((u32(5, 800_000),), 800_000),
        ((u32(5, 0xFFFFFFFF),), None),
        ((u32(5, 0),), None),
        ((), None),
    ],
)
def test_speeds_up_to_800g_and_unknown(attributes: tuple[bytes, ...], mbps: int | None) -> None:
    assert parse_linkmodes(only(reply(2, *attributes))) == (2, LinkModes(speed_mbps=mbps))


@pytest.mark.parametrize(("value", "full"), [(0, False), (1, True), (0xFF, None)])
def test_duplex(value: int, full: bool | None) -> None:
    _, link = parse_linkmodes(only(reply(2, u8(6, value))))
    assert link.full_duplex is full


@pytest.mark.parametrize(
    ("setting", "supported", "expected"),
    [
        (1, {AUTONEG}, True),
        (0, {AUTONEG}, False),
        (0, {12}, None),  # off because it can't
        (1, {12}, True),
    ],
)
def test_negotiation_that_a_port_can_not_do_is_not_off(
    setting: int, supported: set[int], expected: bool | None
) -> None:
    _, link = parse_linkmodes(only(reply(2, u8(2, setting), bits(3, (), mask=supported))))
    assert link.autonegotiation is expected


@pytest.mark.parametrize(
    ("supported", "mbps"),
    [
        ({0, 1, 2, 3, 5, TP, AUTONEG}, 1_000),
        ({5, 12, AUTONEG, FIBRE}, 10_000),
        ({31, 33}, 25_000),  # the last bit of the legacy mask, and one beyond
        ({23, 36, 38}, 100_000),
        ({57, 66}, 200_000),
        ({73, 89}, 400_000),
        ({37, 97}, 800_000),
        ({38, 200}, 100_000),  # a mode of a kernel newer than the table
        ({200}, None),
        ({AUTONEG, FIBRE, 13, 49, 50}, None),  # media, pause and FEC are no speeds
        (set(), None),
    ],
)
def test_the_fastest_supported_mode(supported: set[int], mbps: int | None) -> None:
    advertised = {38} & supported
    _, link = parse_linkmodes(only(reply(2, bits(3, advertised, mask=supported))))
    assert link.max_speed_mbps == mbps
    assert link.fibre == (FIBRE in supported)


def test_what_is_advertised_does_not_say_what_is_possible() -> None:
    _, link = parse_linkmodes(only(reply(2, bits(3, {5}, mask={5, 38}))))
    assert link.max_speed_mbps == 100_000


def test_no_mode_stands_in_the_table_twice() -> None:
    modes = [bit for bits_of_speed in SPEEDS_MBPS.values() for bit in bits_of_speed]
    assert len(modes) == len(set(modes)) == 121 - 13, "121 link modes in Linux 6.18, of which 13 are no speeds"


def test_a_verbose_bitset_is_refused() -> None:
    with pytest.raises(ParseError, match="LINKMODES_GET: bitset has no value"):
        parse_linkmodes(only(reply(2, struct.pack("=HH", 4, 3))))


def test_the_ioctl_says_the_same() -> None:
    data = link_settings(speed=100_000, port=5, supported=1 << 38 | 1 << AUTONEG | 1 << FIBRE)
    assert parse_link_settings(data) == LinkModes(
        speed_mbps=100_000, full_duplex=True, autonegotiation=True, max_speed_mbps=100_000, fibre=True, port=5
    )
    unknown = link_settings(speed=0xFFFFFFFF, duplex=0xFF, port=255, autoneg=0)
    assert parse_link_settings(unknown) == LinkModes(port=255)


def test_how_many_words_the_kernel_wants() -> None:
    assert link_modes_words(struct.pack("=I11xb32x", GLINKSETTINGS, -4)) == 4
    assert link_modes_words(struct.pack("=I11xb32x", GLINKSETTINGS, 0)) == 0


def test_a_structure_that_is_not_whole() -> None:
    with pytest.raises(ParseError, match="GLINKSETTINGS: 95 bytes, 96 expected"):
        parse_link_settings(link_settings(speed=1000)[:95])
