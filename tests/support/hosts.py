"""Whole hosts for the collectors: recorded trees, recorded or rebuilt kernel replies, probes as they stand in files."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from plumbline.collectors.probe import ProbeStatus
from plumbline.collectors.softnet import SoftnetUnwrapper
from plumbline.probes.canary_reading import CanaryReading
from plumbline.registry import Parts
from plumbline.roots import Roots
from plumbline.sources import ethnl
from plumbline.sources.block import read_block_devices
from plumbline.sources.drivers import load_table
from plumbline.sources.links import RTM_GETLINK, RTM_NEWLINK
from plumbline.sources.netlink import attribute
from plumbline.sources.network import NetworkReader
from plumbline.sources.portfacts import Transports

from .replay_network import ReplayEthtool, ReplayNetlink, done, driver_answers, message

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOW = 1_700_000_000.0
FAMILY = 21
"""Message type of ethtool netlink; the kernel gives it out at boot."""


def tree(destination: Path, *scenarios: str) -> Roots:
    """One host's trees from several scenarios, which hold different parts of it."""
    for scenario in scenarios:
        shutil.copytree(FIXTURES / scenario, destination, symlinks=True, dirs_exist_ok=True)
    return Roots.under(destination)


def recorded_network(scenario: str) -> Transports:
    """The replies in ``fixtures/<scenario>``."""
    path = FIXTURES / scenario
    netlink = ReplayNetlink.load(path)
    return Transports(netlink, netlink, ReplayEthtool.load(path))


def ixgbe_network() -> Transports:
    """Loopback and one 10 Gb/s port, with the driver's statistics of ``fixtures/net-ixgbe``, a small ring, and
    flow control on; the link's own counters are made from the same statistics."""
    text = (FIXTURES / "net-ixgbe" / "ethtool_S.txt").read_text()
    counters = {
        name.strip(): int(value) for name, _, value in (line.rpartition(": ") for line in text.splitlines()[1:])
    }
    packets = {0: counters["rx_packets"], 1: counters["tx_packets"]}
    bytes_ = {2: counters["rx_bytes"], 3: counters["tx_bytes"]}
    links = _link(1, "lo", 65536, {}) + _link(2, "eth0", 9000, packets | bytes_, bus="0000:3b:00.0")
    pause = _attributes({2: b"\0", 3: b"\1", 4: b"\1"})
    rings = _attributes({2: _u32(4096), 5: _u32(4096), 6: _u32(512), 9: _u32(512)})
    return Transports(
        ReplayNetlink({RTM_GETLINK: links + done()}),
        ReplayNetlink(
            {
                (FAMILY, ethnl.RINGS_GET): _reply(2, rings) + done(),
                (FAMILY, ethnl.PAUSE_GET): _reply(2, pause) + done(),
                (FAMILY, ethnl.LINKMODES_GET): _reply(2, _attributes({5: _u32(10000)})) + done(),
            }
        ),
        ReplayEthtool(driver_answers(b"eth0", "ixgbe", counters, firmware="0x800003df", bus="0000:3b:00.0")),
    )


def silent_network() -> Transports:
    """A kernel that does not answer."""
    return Transports(ReplayNetlink({}), ReplayNetlink({}), ReplayEthtool({}))


def parts(
    roots: Roots,
    network: Transports,
    *,
    canaries: Iterable[CanaryReading] = (),
    probes: Iterable[ProbeStatus] = (),
) -> Parts:
    """What the daemon's collectors read, with the slow tier's facts not looked up yet."""
    reader = NetworkReader(
        roots=roots,
        table=load_table(),
        resolve_family=lambda _name: FAMILY,
        scrape=network,
        slow=network,
        clock=lambda: 0.0,
    )
    return Parts(
        roots=roots,
        network=reader,
        devices=lambda: read_block_devices(roots, on_skip=lambda _item, _reason: None),
        softnet=SoftnetUnwrapper(),
        canaries=lambda: canaries,
        probes=lambda: probes,
        wall=lambda: NOW,
    )


def _link(index: int, name: str, mtu: int, stats: Mapping[int, int], *, bus: str = "") -> bytes:
    """``RTM_NEWLINK`` of a port that is up: IFLA_IFNAME 3, _MTU 4, _OPERSTATE 16, _STATS64 23, _PARENT_DEV_NAME 56."""
    words = struct.pack("=25Q", *(stats.get(number, 0) for number in range(25)))
    fields = {3: name.encode() + b"\0", 4: _u32(mtu), 16: b"\6", 23: words}
    if bus:
        fields[56] = bus.encode() + b"\0"
    flags = 1 if bus else 1 | 8  # IFF_UP, IFF_LOOPBACK
    return message(RTM_NEWLINK, struct.pack("=BxHiII", 0, 1 if bus else 772, index, flags, 0) + _attributes(fields))


def _reply(index: int, attributes: bytes) -> bytes:
    """One device's part of an ethtool netlink dump."""
    header = attribute(1 | 0x8000, attribute(1, _u32(index)))
    return message(FAMILY, b"\x10\x01\0\0" + header + attributes)


def _attributes(values: Mapping[int, bytes]) -> bytes:
    return b"".join(attribute(kind, value) for kind, value in values.items())


def _u32(value: int) -> bytes:
    return struct.pack("=I", value)
