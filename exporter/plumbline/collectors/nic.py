"""Network ports as metrics. Four collectors: ``link``, ``ethtool`` (losses and identity), ``ring``, ``pause``.

The loopback and other software links have packets, bytes and the few drops that their own code or the stack counts on
them (a full backlog shows on ``lo``), but no rings, flow control or causes. A bond repeats its members' losses, so it
has none here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector
from plumbline.metrics.spec import MetricSpec, Sample, counter, gauge, known
from plumbline.sources.net.network import LinksReading, PortLosses, PortPause, PortRings

PACKETS = counter("plumbline_nic_packets_total", "Packets received and transmitted.", ("device", "direction"))
BYTES = counter("plumbline_nic_bytes_total", "Bytes received and transmitted.", ("device", "direction"))
MTU = gauge("plumbline_nic_mtu_bytes", "Largest packet the link carries.", ("device",))
SPEED = gauge(
    "plumbline_nic_speed_bits_per_second",
    "Speed of the link; absent while it has none or the driver does not know.",
    ("device",),
)
UP = gauge("plumbline_nic_up", "1: the link is up and can carry packets.", ("device",))
CARRIER_CHANGES = counter("plumbline_nic_carrier_changes_total", "Times the carrier came or went.", ("device",))
LINK_SPECS: tuple[MetricSpec, ...] = (PACKETS, BYTES, MTU, SPEED, UP, CARRIER_CHANGES)

DROPS = counter(
    "plumbline_nic_drops_total",
    "Frames dropped, each once: ring (no descriptor, the host was too slow), fifo (the port's own buffer ran over),"
    " filter (benign: nobody wanted it), other. A cause the driver can't tell is absent.",
    ("device", "direction", "cause"),
)
ERRORS = counter(
    "plumbline_nic_errors_total",
    "Damaged or ill-sized frames: crc, length, frame, carrier, other. A cause the driver can't tell is absent.",
    ("device", "direction", "cause"),
)
INFO = gauge(
    "plumbline_nic_info",
    "Who drives the port. drop_source: driver (rules for this driver), rtnl (the kernel's fields as documented),"
    " members (a bond: see its members).",
    ("device", "driver", "firmware", "bus", "master", "drop_source"),
)
ETHTOOL_SPECS: tuple[MetricSpec, ...] = (DROPS, ERRORS, INFO)

RING_ENTRIES = gauge("plumbline_nic_ring_entries", "Descriptors per ring, as set.", ("device", "ring"))
RING_MAX_ENTRIES = gauge(
    "plumbline_nic_ring_max_entries", "Descriptors per ring the port can have.", ("device", "ring")
)
RING_SPECS: tuple[MetricSpec, ...] = (RING_ENTRIES, RING_MAX_ENTRIES)

PAUSE_FRAMES = counter(
    "plumbline_nic_pause_frames_total",
    "802.3x pause frames. Transmitted: this host could not keep up and made the sender wait.",
    ("device", "direction"),
)
PAUSE_ENABLED = gauge(
    "plumbline_nic_pause_enabled",
    "1: the port heeds (receive) or may send (transmit) pause frames.",
    ("device", "direction"),
)
PAUSE_AUTONEGOTIATE = gauge(
    "plumbline_nic_pause_autonegotiate", "1: flow control is negotiated with the other end.", ("device",)
)
PAUSE_SPECS: tuple[MetricSpec, ...] = (PAUSE_FRAMES, PAUSE_ENABLED, PAUSE_AUTONEGOTIATE)

_BITS_PER_MEGABIT = 1_000_000
_RINGS = ("rx", "rx_mini", "rx_jumbo", "tx")


def link_samples(reading: LinksReading) -> Iterator[Sample]:
    """Seven samples per link, eight where the speed is known."""
    speeds = reading.speeds_mbps
    for link in reading.links:
        name = link.name
        labels = (name,)
        stats = link.stats
        if stats is not None:
            receive, transmit = (name, "receive"), (name, "transmit")
            yield PACKETS, receive, stats.rx_packets
            yield PACKETS, transmit, stats.tx_packets
            yield BYTES, receive, stats.rx_bytes
            yield BYTES, transmit, stats.tx_bytes
        if link.mtu_bytes is not None:
            yield MTU, labels, link.mtu_bytes
        if link.carrier_changes is not None:
            yield CARRIER_CHANGES, labels, link.carrier_changes
        yield UP, labels, 1 if link.up else 0
        if link.ifindex in speeds:
            yield SPEED, labels, speeds[link.ifindex] * _BITS_PER_MEGABIT


def ethtool_samples(ports: Iterable[PortLosses]) -> Iterator[Sample]:
    """Losses by cause, and one info sample per link."""
    for port in ports:
        name = port.device
        for direction, cause, frames in port.loss.drops:
            yield DROPS, (name, direction, cause), frames
        for direction, cause, frames in port.loss.errors:
            yield ERRORS, (name, direction, cause), frames
        yield INFO, (name, port.driver, port.firmware, port.bus, port.master, port.drop_source), 1


def ring_samples(ports: Iterable[PortRings]) -> Iterator[Sample]:
    """Two samples per ring the port has."""
    for port in ports:
        for ring in _RINGS:
            entries = getattr(port.rings, ring)
            most = getattr(port.rings, f"{ring}_max")
            yield from known((port.device, ring), (RING_ENTRIES, entries), (RING_MAX_ENTRIES, most))


def pause_samples(ports: Iterable[PortPause]) -> Iterator[Sample]:
    """Settings and counters of the ports that have flow control."""
    for port in ports:
        config = port.state.config
        for direction, enabled, frames in (
            ("receive", config.receive, port.state.receive_frames),
            ("transmit", config.transmit, port.state.transmit_frames),
        ):
            yield from known((port.device, direction), (PAUSE_ENABLED, enabled), (PAUSE_FRAMES, frames))
        yield from known((port.device,), (PAUSE_AUTONEGOTIATE, config.autonegotiate))


LINK: Collector[Host, LinksReading] = Collector(
    "link",
    LINK_SPECS,
    lambda host, _skip: host.parts.network.read_links(),
    link_samples,
    origin="rtnetlink `RTM_GETLINK` with `rtnl_link_stats64`",
    sized_by=("network port",),
)
ETHTOOL: Collector[Host, tuple[PortLosses, ...]] = Collector(
    "ethtool",
    ETHTOOL_SPECS,
    lambda host, skip: host.parts.network.read_losses(skip),
    ethtool_samples,
    skip_reasons=ITEM_REASONS,
    origin="rtnetlink counters and the driver's own (`ethtool -S`), sorted by the driver table",
    sized_by=("network port",),
)
RING: Collector[Host, tuple[PortRings, ...]] = Collector(
    "ring",
    RING_SPECS,
    lambda host, _skip: host.parts.network.read_rings(),
    ring_samples,
    origin="`ETHTOOL_MSG_RINGS_GET`, or its ioctl (`ethtool -g`)",
    sized_by=("network port",),
)
PAUSE: Collector[Host, tuple[PortPause, ...]] = Collector(
    "pause",
    PAUSE_SPECS,
    lambda host, skip: host.parts.network.read_pause(skip),
    pause_samples,
    skip_reasons=ITEM_REASONS,
    origin="`ETHTOOL_MSG_PAUSE_GET` with statistics (`ethtool -I -a`)",
    sized_by=("network port",),
)
