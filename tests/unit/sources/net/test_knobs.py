"""The settings of a host's ports: whose are read, how, and that a part that fails hides no other."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

from plumbline.sources.net import ethnl
from plumbline.sources.net.ethtool import Ethtool
from plumbline.sources.net.features import Offload
from plumbline.sources.net.knobs import Knobs, KnobsReader
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.links import Link, read_links
from plumbline.sources.net.netlink import Netlink, Refused
from plumbline.sources.net.port_settings import PORT_FIBRE, Channels, Coalescing, Moderation, PauseConfig, RingSizes
from support.ethnl_replies import FAMILY, bits, reply, strings, u8, u32
from support.replay_network import (
    GLINKSETTINGS,
    ReplayEthtool,
    ReplayNetlink,
    done,
    error,
    gstrings,
    link_settings,
    sset_info,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
NAMES = ("tx-scatter-gather", "rx-gro")
FEATURES, CHANNELS, COALESCE, LINKMODES, LINKINFO, FEC, STRSET, RINGS, PAUSE = (
    (FAMILY, command)
    for command in (
        ethnl.FEATURES_GET,
        ethnl.CHANNELS_GET,
        ethnl.COALESCE_GET,
        ethnl.LINKMODES_GET,
        ethnl.LINKINFO_GET,
        ethnl.FEC_GET,
        ethnl.STRSET_GET,
        ethnl.RINGS_GET,
        ethnl.PAUSE_GET,
    )
)
DUMPS = (FEATURES, CHANNELS, COALESCE, LINKMODES, LINKINFO, FEC, RINGS, PAUSE)


def link(index: int, name: str, kind: str = "") -> Link:
    return Link(index, name, name.encode(), kind, 0x1, 1500, 6, True, 1, 0, "", "", "", None)


def host(*links: Link) -> dict[int, Link]:
    return {each.ifindex: each for each in links}


def answers(*, ports: Iterable[int] = (2,)) -> dict[int | tuple[int, int], bytes | list[bytes]]:
    """Every port is a 100G one, alike."""

    def dump(*attributes: bytes) -> bytes:
        return b"".join(reply(index, *attributes) for index in ports) + done()

    return {
        STRSET: strings(4, NAMES),
        FEATURES: dump(bits(2, {0}), bits(4, {0})),
        CHANNELS: dump(u32(5, 63), u32(9, 16)),
        COALESCE: dump(u32(2, 8), u8(11, 1)),
        LINKMODES: dump(u8(2, 1), bits(3, (), mask={6, 10, 38}), u32(5, 25_000), u8(6, 1)),
        LINKINFO: dump(u8(2, PORT_FIBRE)),
        FEC: dump(u32(4, 50)),
        RINGS: dump(u32(2, 4096), u32(6, 512)),
        PAUSE: dump(u8(2, 1), u8(3, 1), u8(4, 0)),
    }


def read(
    generic: ReplayNetlink, links: dict[int, Link], known: Knobs | None = None, *, ioctl: ReplayEthtool | None = None
) -> Knobs:
    reader = KnobsReader(Netlink(generic, source="test"), Ethtool(ioctl or ReplayEthtool({})))
    return reader.read(FAMILY if ioctl is None else None, links, known or Knobs())


def test_everything_that_a_port_says() -> None:
    assert read(ReplayNetlink(answers()), host(link(1, "lo"), link(2, "eth0"))) == Knobs(
        rings={2: RingSizes(rx=512, rx_max=4096)},
        pause={2: PauseConfig(autonegotiate=True, receive=True, transmit=False)},
        channels={2: Channels(combined=16, combined_max=63)},
        coalescing={2: Coalescing(Moderation(8, None, True), Moderation())},
        offloads={2: (Offload("scatter-gather", True), Offload("generic-receive-offload", False))},
        linkmodes={2: LinkModes(25_000, full_duplex=True, autonegotiation=True, max_speed_mbps=100_000, fibre=True)},
        fec={2: "rs"},
        connectors={2: PORT_FIBRE},
        offload_masks={"scatter-gather": 0b01, "generic-receive-offload": 0b10},
    )


@pytest.mark.parametrize("broken", DUMPS)
def test_a_part_that_fails_hides_no_other(broken: tuple[int, int]) -> None:
    links = host(link(2, "eth0"))
    whole = read(ReplayNetlink(answers()), links)
    part = {
        FEATURES: "offloads",
        CHANNELS: "channels",
        COALESCE: "coalescing",
        LINKMODES: "linkmodes",
        LINKINFO: "connectors",
        FEC: "fec",
        RINGS: "rings",
        PAUSE: "pause",
    }[broken]
    for failure in (error(errno.EIO), reply(2, struct.pack("=HH", 9, 5)) + done()):
        found = read(ReplayNetlink({**answers(), broken: failure}), links)
        assert isinstance(getattr(found, part), Exception)
        for other in set(Knobs.__slots__) - {part}:
            assert getattr(found, other) == getattr(whole, other)


def test_features_without_names_are_the_offloads_failure_and_asked_again() -> None:
    generic = ReplayNetlink({**answers(), STRSET: error(errno.EIO)})
    found = read(generic, host(link(2, "eth0")))
    assert isinstance(found.offloads, Exception)
    assert found.channels == {2: Channels(combined=16, combined_max=63)}
    generic.answers = answers()
    assert read(generic, host(link(2, "eth0")), found).offloads


def test_the_names_of_features_are_read_once() -> None:
    generic = ReplayNetlink(answers())
    first = read(generic, host(link(2, "eth0")))
    before = len(generic.requests)
    assert read(generic, host(link(2, "eth0")), first) == first
    assert len(generic.requests) - before == len(DUMPS)


def test_a_host_with_hardware_is_not_asked_for_its_containers_ends() -> None:
    links = host(link(2, "eth0"), link(3, "bond0", "bond"), link(4, "veth1", "veth"), link(5, "tap0", "tun"))
    found = read(ReplayNetlink(answers(ports=(2, 3, 4, 5))), links)
    for part in (found.channels, found.coalescing, found.offloads, found.linkmodes):
        assert isinstance(part, dict)
        assert set(part) == {2, 3}
    assert found.fec == {2: "rs"}
    assert found.connectors == {2: PORT_FIBRE}


def test_inside_a_container_its_ends_are_the_ports_and_their_speed_is_made_up() -> None:
    links = host(link(2, "eth0", "veth"), link(3, "dummy0", "dummy"), link(4, "eth0.5", "vlan"))
    found = read(ReplayNetlink(answers(ports=(2, 3, 4))), links)
    assert isinstance(found.offloads, dict)
    assert isinstance(found.linkmodes, dict)
    assert set(found.offloads) == {2, 4}
    assert set(found.linkmodes) == {4}
    assert found.fec == {}


def test_a_kernel_without_ethtool_netlink() -> None:
    ioctl = ReplayEthtool(
        {
            (b"eth0", GLINKSETTINGS): link_settings(speed=25_000, supported=1 << 6 | 1 << 10 | 1 << 38),
            (b"eth0", 0x3C): struct.pack("=9I", 0x3C, 0, 0, 0, 63, 0, 0, 0, 16),
            (b"eth0", 0x0E): struct.pack("=23I", 0x0E, 8, *[0] * 8, 1, *[0] * 12),
            (b"eth0", 0x50): struct.pack("=4I", 0x50, 1 << 3, 0, 0),
            (b"eth0", 0x10): struct.pack("=9I", 0x10, 4096, 0, 0, 0, 512, 0, 0, 0),
            (b"eth0", 0x12): struct.pack("=4I", 0x12, 1, 1, 0),
            (b"eth0", 0x3A): struct.pack("=II8I", 0x3A, 2, 1, 1, 1, 0, 0, 0, 0, 0).ljust(72, b"\0"),
            (b"eth0", 0x37): sset_info(2),
            (b"eth0", 0x1B): gstrings(list(NAMES)),
            (b"odd0", 0x37): errno.EOPNOTSUPP,
        }
    )
    generic = ReplayNetlink({})
    found = read(generic, host(link(1, "odd0"), link(2, "eth0")), ioctl=ioctl)
    by_netlink = read(ReplayNetlink(answers()), host(link(2, "eth0")))
    assert generic.requests == []
    assert isinstance(found.linkmodes, dict)
    assert isinstance(by_netlink.linkmodes, dict)
    assert found.linkmodes[2].max_speed_mbps == by_netlink.linkmodes[2].max_speed_mbps == 100_000
    for part in ("rings", "pause", "channels", "coalescing", "offloads", "fec", "connectors", "offload_masks"):
        assert getattr(found, part) == getattr(by_netlink, part)


def test_a_command_that_the_kernel_does_not_know_yet_is_asked_by_ioctl() -> None:
    """FEC_GET came with Linux 5.13; 5.10 has the rest."""
    generic = ReplayNetlink({**answers(), FEC: error(errno.EOPNOTSUPP)})
    ioctl = ReplayEthtool({(b"eth0", 0x50): struct.pack("=4I", 0x50, 1 << 4, 0, 0)})
    reader = KnobsReader(Netlink(generic, source="test"), Ethtool(ioctl))
    found = reader.read(FAMILY, host(link(2, "eth0"), link(3, "eth1")), Knobs())
    assert found.fec == {2: "baser"}
    assert {command for _, command in ioctl.calls} == {0x50}


def test_a_refusal_of_another_sort_is_not_tried_otherwise() -> None:
    generic = ReplayNetlink({**answers(), FEC: error(errno.EPERM)})
    assert isinstance(read(generic, host(link(2, "eth0"))).fec, Refused)


def test_recorded_containers_ends() -> None:
    generic = ReplayNetlink.load(FIXTURES / "net-software-links")
    found = read(generic, read_links(Netlink(ReplayNetlink.load(FIXTURES / "net-software-links"), source="replay")))
    assert isinstance(found.channels, dict)
    assert isinstance(found.offloads, dict)
    assert found.channels == dict.fromkeys((3, 4, 7, 8), Channels(rx=1, tx=1, rx_max=2, tx_max=2))
    assert set(found.offloads) == {3, 4, 6, 7, 8}, "no bridge, no ifb, no loopback"
    assert {each.name for each in found.offloads[4] if each.enabled} >= {"scatter-gather", "tcp-segmentation-offload"}
    assert (found.coalescing, found.linkmodes, found.fec, found.connectors) == ({}, {}, {}, {})
