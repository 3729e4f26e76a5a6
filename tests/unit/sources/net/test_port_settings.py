"""Channels, coalescing, FEC, connectors, bit sets; and the settings that one published tuning of a node printed."""

from __future__ import annotations

import struct

import pytest

from plumbline.errors import ParseError
from plumbline.sources.net.ethnl import Bitset, parse_bitset
from plumbline.sources.net.netlink import attribute, parse_attributes
from plumbline.sources.net.port_settings import (
    PORT_DA,
    PORT_FIBRE,
    PORT_NONE,
    Channels,
    Coalescing,
    Moderation,
    PauseConfig,
    RingSizes,
    parse_channels,
    parse_channels_structure,
    parse_coalesce,
    parse_coalesce_structure,
    parse_fec,
    parse_fec_structure,
    parse_pause_config,
    parse_port,
    parse_rings,
    transceiver_present,
)
from support.ethnl_replies import bits, only, reply, u8, u32

# The three figures stand in chapter 5 of a thesis on a university's Ceph cluster (UNNOBA, 2020). The values are
# printed there, the replies are made from them.


def test_figure_33_flow_control_on_without_negotiation() -> None:
    data = reply(2, u8(2, 0), u8(3, 1), u8(4, 1))
    assert parse_pause_config(only(data)) == (2, PauseConfig(autonegotiate=False, receive=True, transmit=True))


def test_figure_35_adaptive_coalescing() -> None:
    data = reply(
        3,
        *(u32(kind, value) for kind, value in ((2, 8), (3, 128), (4, 0), (5, 0), (6, 8), (7, 128), (8, 0), (9, 0))),
        *(u32(10, 0), u8(11, 1), u8(12, 1), u32(13, 0), u32(18, 0), u32(23, 0)),
    )
    both = Moderation(delay_us=8, frames=128, adaptive=True)
    assert parse_coalesce(only(data)) == (3, Coalescing(receive=both, transmit=both))


def test_figure_37_a_ring_at_a_ninth_of_what_it_can_be() -> None:
    data = reply(4, u32(2, 4078), u32(5, 4078), u32(6, 453), u32(9, 4078))
    assert parse_rings(only(data)) == (4, RingSizes(rx=453, tx=4078, rx_max=4078, tx_max=4078))


def test_channels() -> None:
    combined = reply(2, u32(5, 63), u32(9, 16), u32(4, 1), u32(8, 1))
    assert parse_channels(only(combined)) == (2, Channels(other=1, combined=16, other_max=1, combined_max=63))
    separate = reply(2, u32(2, 8), u32(3, 4), u32(6, 2), u32(7, 1))
    assert parse_channels(only(separate)) == (2, Channels(rx=2, tx=1, rx_max=8, tx_max=4))


def test_channels_by_ioctl() -> None:
    data = struct.pack("=9I", 0x3C, 0, 0, 1, 63, 0, 0, 1, 0)
    assert parse_channels_structure(data) == Channels(other=1, combined=0, other_max=1, combined_max=63)
    with pytest.raises(ParseError, match="GCHANNELS: 35 bytes, 36 expected"):
        parse_channels_structure(data[:35])


def test_coalescing_that_a_driver_lacks_is_not_zero() -> None:
    data = reply(2, u32(2, 0), u32(3, 1), u8(11, 0), u32(7, 1))
    assert parse_coalesce(only(data)) == (2, Coalescing(Moderation(0, 1, False), Moderation(None, 1, None)))


def test_coalescing_by_ioctl_can_not_tell_zero_from_lacking() -> None:
    fields = [0] * 23
    fields[0:3], fields[10] = [0x0E, 50, 64], 1  # rx-usecs, rx-frames, adaptive rx
    expected = Coalescing(Moderation(50, 64, True), Moderation(None, None, None))
    assert parse_coalesce_structure(struct.pack("=23I", *fields)) == expected


@pytest.mark.parametrize(("bit", "mode"), [(49, "off"), (50, "rs"), (51, "baser"), (74, "llrs"), (140, None)])
def test_fec_by_its_link_mode(bit: int, mode: str | None) -> None:
    assert parse_fec(only(reply(2, bits(2, {50, 51}), u8(3, 1), u32(4, bit)))) == (2, mode)


def test_fec_without_a_link() -> None:
    assert parse_fec(only(reply(2, bits(2, {50}), u8(3, 1)))) == (2, None)


@pytest.mark.parametrize(("active", "mode"), [(1 << 2, "off"), (1 << 3, "rs"), (1 << 4, "baser"), (0, None), (1, None)])
def test_fec_by_ioctl(active: int, mode: str | None) -> None:
    assert parse_fec_structure(struct.pack("=4I", 0x50, active, 0, 0)) == mode


def test_connectors() -> None:
    assert parse_port(only(reply(2, u8(2, PORT_FIBRE), u8(6, 0)))) == (2, PORT_FIBRE)
    assert parse_port(only(reply(2))) == (2, None)


@pytest.mark.parametrize(
    ("port", "fibre", "carrier", "driver", "present"),
    [
        (PORT_FIBRE, True, True, "mlx5_core", True),
        (PORT_DA, True, True, "ixgbe", True),
        (PORT_FIBRE, True, False, "tg3", None),  # says so with and without a module
        (PORT_NONE, True, False, "ixgbe", False),
        (PORT_NONE, True, False, "bnx2x", False),
        (PORT_NONE, True, False, "amd-xgbe", None),  # always says so
        (PORT_NONE, False, True, "ixgbe", None),  # XAUI
        (PORT_FIBRE, True, None, "mlx5_core", None),
        (0, False, True, "igb", None),  # copper
        (None, True, True, "ixgbe", None),
    ],
)
def test_a_transceiver_is_there_or_not_or_nobody_knows(
    port: int | None, fibre: bool, carrier: bool | None, driver: str, present: bool | None
) -> None:
    assert transceiver_present(port=port, fibre=fibre, carrier=carrier, driver=driver) is present


def test_bitsets() -> None:
    whole = bits(3, {0, 31, 32, 120}, mask={38}, size=128)
    expected = Bitset(1 | 1 << 31 | 1 << 32 | 1 << 120, 1 << 38)
    assert parse_bitset(parse_attributes(whole, 4, len(whole), source="test")) == expected
    without = bits(3, {5}, size=64)
    assert parse_bitset(parse_attributes(without, 4, len(without), source="test")) == Bitset(1 << 5, None)


def test_a_bitset_of_half_a_word() -> None:
    data = attribute(4, b"\1\0")
    with pytest.raises(ParseError, match="test: bitset of 2 bytes"):
        parse_bitset(parse_attributes(data, 0, len(data), source="test"))
