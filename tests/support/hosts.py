"""Whole hosts for the collectors: recorded trees, recorded or rebuilt kernel replies, probes as they stand in files."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from plumbline.background.ceph import OsdWatch
from plumbline.background.host import KernelWatch
from plumbline.background.storage import StorageWatch
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.checks.model import Finding
from plumbline.collectors.canary import CanariesReading
from plumbline.collectors.finding import FindingsReading
from plumbline.collectors.host import Latest
from plumbline.collectors.probe import ProbesReading
from plumbline.collectors.registry import Parts
from plumbline.core.roots import Roots
from plumbline.probes.run.reading import CanaryReading
from plumbline.probes.run.schedule import ProbeStatus
from plumbline.probes.run.state import DisksSeen
from plumbline.sources.disk.block import BlockDevices, read_block_devices
from plumbline.sources.kernel.softnet import SoftnetUnwrapper
from plumbline.sources.net import ethnl
from plumbline.sources.net.drivers import load_table
from plumbline.sources.net.links import RTM_GETLINK, RTM_NEWLINK
from plumbline.sources.net.netlink import attribute
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.port_settings import PORT_FIBRE
from plumbline.sources.net.portfacts import LinkFacts, Transports

from .ethnl_replies import bits, reply, strings, u8, u32
from .replay_network import ReplayEthtool, ReplayNetlink, done, driver_answers, message

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOW = 1_700_000_000.0
FAMILY = 21
"""Message type of ethtool netlink; the kernel gives it out at boot."""
FEATURES = ("tx-scatter-gather", "rx-gro", "rx-lro")
"""A kernel that has few."""


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
    """Loopback and one 10 Gb/s port, with the driver's statistics of ``fixtures/net-ixgbe``, a small ring,
    flow control on and large receive offload off; the link's own counters are made from the same statistics."""
    text = (FIXTURES / "net-ixgbe" / "ethtool_S.txt").read_text()
    counters = {
        name.strip(): int(value) for name, _, value in (line.rpartition(": ") for line in text.splitlines()[1:])
    }
    packets = {0: counters["rx_packets"], 1: counters["tx_packets"]}
    bytes_ = {2: counters["rx_bytes"], 3: counters["tx_bytes"]}
    links = link_message(1, "lo", 65536, {}) + link_message(2, "eth0", 9000, packets | bytes_, bus="0000:3b:00.0")
    pause = _attributes({2: b"\0", 3: b"\1", 4: b"\1"})
    rings = _attributes({2: _u32(4096), 5: _u32(4096), 6: _u32(512), 9: _u32(512)})
    return Transports(
        ReplayNetlink({RTM_GETLINK: links + done()}),
        ReplayNetlink(
            {
                (FAMILY, ethnl.RINGS_GET): _reply(2, rings) + done(),
                (FAMILY, ethnl.PAUSE_GET): _reply(2, pause) + done(),
                (FAMILY, ethnl.LINKMODES_GET): reply(
                    2, u8(2, 0), bits(3, {12}, mask={5, 10, 12, 13}), u32(5, 10_000), u8(6, 1)
                )
                + done(),
                (FAMILY, ethnl.LINKINFO_GET): reply(2, u8(2, PORT_FIBRE)) + done(),
                (FAMILY, ethnl.CHANNELS_GET): reply(2, u32(4, 1), u32(5, 63), u32(8, 1), u32(9, 16)) + done(),
                (FAMILY, ethnl.COALESCE_GET): reply(2, u32(2, 1), u32(6, 0)) + done(),
                (FAMILY, ethnl.FEC_GET): done(),
                (FAMILY, ethnl.STRSET_GET): strings(4, FEATURES),
                (FAMILY, ethnl.FEATURES_GET): reply(2, bits(2, {0, 1, 2}), bits(4, {0, 1}), bits(5, ())) + done(),
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
    findings: Iterable[Finding] = (),
) -> Parts:
    """What the daemon's collectors read, with the slow tier's facts not looked up yet."""
    reader = NetworkReader(
        table=load_table(),
        resolve_family=lambda _name: FAMILY,
        scrape=network,
        slow=network,
        clock=lambda: 0.0,
    )
    return Parts(
        roots=roots,
        network=reader,
        links=LinkFacts(roots=roots, transport=network.route, configured=dict),
        softnet=SoftnetUnwrapper(),
        kernel=KernelWatch(roots=roots, clock=lambda: 0.0, ticks_per_s=100, keep_nic=lambda _name: True),
        storage=StorageWatch(roots),
        osds=OsdWatch(tuple),
        latest=Latest(
            {
                BlockDevices: lambda: read_block_devices(roots, on_skip=lambda _item, _reason: None),
                CanariesReading: lambda: CanariesReading(tuple(canaries)),
                ProbesReading: lambda: ProbesReading(tuple(probes), NOW),
                FindingsReading: lambda: FindingsReading(findings),
                DisksSeen: DisksSeen,
                Fingerprint: Fingerprint,
            }
        ),
    )


def knowing(given: Parts, sources: Mapping[type, Callable[[], object]]) -> Parts:
    """``given`` with these latest readings as well."""
    return msgspec.structs.replace(given, latest=Latest({**given.latest.sources, **sources}))


def devices_of(given: Parts) -> BlockDevices:
    return given.latest(BlockDevices)


def link_message(index: int, name: str, mtu: int, stats: Mapping[int, int], *, bus: str = "") -> bytes:
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
