"""Network ports as metrics. Collectors: ``link``, ``ethtool`` (losses and identity), ``ring``, ``pause``; and of the
ports' settings, read outside the scrape, ``channel``, ``coalesce``, ``offload``, ``linkmode``.

The loopback and other software links have packets, bytes and the few drops that their own code or the stack counts on
them (a full backlog shows on ``lo``), but no rings, flow control or causes. A bond repeats its members' losses, so it
has none here.
"""

from collections.abc import Iterable, Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector
from plumbline.metrics.spec import Sample, counter, gauge, known
from plumbline.sources.net.features import Offload
from plumbline.sources.net.network import (
    ChannelsReading,
    CoalescingReading,
    LinkModesReading,
    LinksReading,
    LossesReading,
    OffloadsReading,
    PauseReading,
    PortLosses,
    PortModes,
    RingsReading,
)
from plumbline.sources.net.port_settings import Channels, Coalescing, PauseState, RingSizes

PACKETS = counter("plumbline_nic_packets_total", "Packets received and transmitted.", ("device", "direction"))
BYTES = counter("plumbline_nic_bytes_total", "Bytes received and transmitted.", ("device", "direction"))
MTU = gauge("plumbline_nic_mtu_bytes", "Largest packet the link carries.", ("device",))
SPEED = gauge("plumbline_nic_speed_bytes_per_second", "Link speed; absent without a link or if unknown.", ("device",))
UP = gauge("plumbline_nic_up", "1: the link is up and can carry packets.", ("device",))
CARRIER_CHANGES = counter("plumbline_nic_carrier_changes_total", "How often the carrier came or went.", ("device",))

DROPS = counter(
    "plumbline_nic_drops_total",
    "Dropped frames, each once: ring (no descriptor, host too slow), fifo (port buffer full), filter (benign: not"
    " wanted), other. Unknown causes are absent.",
    ("device", "direction", "cause"),
)
ERRORS = counter(
    "plumbline_nic_errors_total",
    "Damaged or ill-sized frames: crc, length, frame, carrier, other. Unknown causes are absent.",
    ("device", "direction", "cause"),
)
INFO = gauge(
    "plumbline_nic_info",
    "The port's driver. drop_source: driver (rules for it), rtnl (kernel's fields), members (bond: see its members).",
    ("device", "driver", "firmware", "bus", "master", "drop_source"),
)

RING_ENTRIES = gauge("plumbline_nic_ring_entries", "Configured descriptors per ring.", ("device", "ring"))
RING_MAX_ENTRIES = gauge("plumbline_nic_ring_entries_max", "Maximum descriptors per ring.", ("device", "ring"))

PAUSE_FRAMES = counter(
    "plumbline_nic_pause_frames_total",
    "802.3x pause frames. Transmitted ones: this host was too slow and paused the sender.",
    ("device", "direction"),
)
PRIORITY_PAUSE_FRAMES = counter(
    "plumbline_nic_priority_pause_frames_total",
    "Pause frames of priority flow control (802.1Qbb, for RoCE), over all priorities, where the driver counts them.",
    ("device", "direction"),
)
PAUSE_ENABLED = gauge(
    "plumbline_nic_pause_enabled", "1: pause frames are honoured (receive) or sent (transmit).", ("device", "direction")
)
PAUSE_AUTONEGOTIATE = gauge(
    "plumbline_nic_pause_autonegotiation_enabled", "1: flow control is autonegotiated.", ("device",)
)

CHANNELS = gauge(
    "plumbline_nic_channels",
    "Channels (an interrupt and its queues) in use: receive, transmit, other, combined; one the port lacks is absent.",
    ("device", "channel"),
)
MAX_CHANNELS = gauge("plumbline_nic_channels_max", "Maximum number of channels of each kind.", ("device", "channel"))

COALESCE_SECONDS = gauge(
    "plumbline_nic_coalesce_seconds",
    "Wait for more frames before an interrupt. Adaptive: current or initial value.",
    ("device", "direction"),
)
COALESCE_FRAMES = gauge("plumbline_nic_coalesce_frames", "Frames that trigger an interrupt.", ("device", "direction"))
COALESCE_ADAPTIVE = gauge(
    "plumbline_nic_coalesce_adaptive_enabled",
    "1: the driver adapts coalescing to the traffic.",
    ("device", "direction"),
)

OFFLOAD_ENABLED = gauge("plumbline_nic_offload_enabled", "1: on. Named as in ethtool -k.", ("device", "feature"))

FULL_DUPLEX = gauge("plumbline_nic_full_duplex", "1: full duplex, 0: half; absent without a link.", ("device",))
AUTONEGOTIATION = gauge(
    "plumbline_nic_autonegotiation_enabled", "1: autonegotiation is on; absent if the port can't.", ("device",)
)
MAX_SPEED = gauge("plumbline_nic_speed_max_bytes_per_second", "Fastest link mode of port and transceiver.", ("device",))
FEC = gauge("plumbline_nic_fec_info", "Active FEC: off, rs, baser, llrs; absent if down.", ("device", "fec_mode"))
TRANSCEIVER = gauge(
    "plumbline_nic_transceiver_present", "1: module or cable plugged in, 0: empty; absent if unknown.", ("device",)
)

_BYTES_PER_MEGABIT = 125_000
_RINGS = {"receive": "rx", "receive_mini": "rx_mini", "receive_jumbo": "rx_jumbo", "transmit": "tx"}
_MICROSECONDS = 1_000_000


def link_samples(reading: LinksReading) -> Iterator[Sample]:
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
        yield from known(labels, (MTU, link.mtu_bytes), (CARRIER_CHANGES, link.carrier_changes), (UP, int(link.up)))
        if link.ifindex in speeds:
            yield SPEED, labels, speeds[link.ifindex] * _BYTES_PER_MEGABIT


def ethtool_samples(ports: Iterable[PortLosses]) -> Iterator[Sample]:
    for port in ports:
        name = port.device
        for direction, cause, frames in port.loss.drops:
            yield DROPS, (name, direction, cause), frames
        for direction, cause, frames in port.loss.errors:
            yield ERRORS, (name, direction, cause), frames
        for direction, _, frames in port.loss.priority_pause:
            yield PRIORITY_PAUSE_FRAMES, (name, direction), frames
        yield INFO, (name, port.driver, port.firmware, port.bus, port.master, port.drop_source), 1


def ring_samples(ports: Iterable[tuple[str, RingSizes]]) -> Iterator[Sample]:
    for device, sizes in ports:
        for ring, field in _RINGS.items():
            entries = getattr(sizes, field)
            most = getattr(sizes, f"{field}_max")
            yield from known((device, ring), (RING_ENTRIES, entries), (RING_MAX_ENTRIES, most))


def pause_samples(ports: Iterable[tuple[str, PauseState]]) -> Iterator[Sample]:
    for device, state in ports:
        config = state.config
        for direction, enabled, frames in (
            ("receive", config.receive, state.receive_frames),
            ("transmit", config.transmit, state.transmit_frames),
        ):
            yield from known((device, direction), (PAUSE_ENABLED, enabled), (PAUSE_FRAMES, frames))
        yield from known((device,), (PAUSE_AUTONEGOTIATE, config.autonegotiate))


def channel_samples(ports: Iterable[tuple[str, Channels]]) -> Iterator[Sample]:
    for device, channels in ports:
        for channel, count, most in (
            ("receive", channels.rx, channels.rx_max),
            ("transmit", channels.tx, channels.tx_max),
            ("other", channels.other, channels.other_max),
            ("combined", channels.combined, channels.combined_max),
        ):
            yield from known((device, channel), (CHANNELS, count), (MAX_CHANNELS, most))


def coalesce_samples(ports: Iterable[tuple[str, Coalescing]]) -> Iterator[Sample]:
    for device, coalescing in ports:
        for direction, moderation in (("receive", coalescing.receive), ("transmit", coalescing.transmit)):
            labels = (device, direction)
            if moderation.delay_us is not None:
                yield COALESCE_SECONDS, labels, moderation.delay_us / _MICROSECONDS
            yield from known(labels, (COALESCE_FRAMES, moderation.frames), (COALESCE_ADAPTIVE, moderation.adaptive))


def offload_samples(ports: Iterable[tuple[str, tuple[Offload, ...]]]) -> Iterator[Sample]:
    for device, offloads in ports:
        for offload in offloads:
            yield OFFLOAD_ENABLED, (device, offload.name), int(offload.enabled)


def linkmode_samples(ports: Iterable[PortModes]) -> Iterator[Sample]:
    for port in ports:
        labels, modes = (port.device,), port.modes
        yield from known(labels, (FULL_DUPLEX, modes.full_duplex), (AUTONEGOTIATION, modes.autonegotiation))
        if modes.max_speed_mbps is not None:
            yield MAX_SPEED, labels, modes.max_speed_mbps * _BYTES_PER_MEGABIT
        if port.fec is not None:
            yield FEC, (port.device, port.fec), 1
        yield from known(labels, (TRANSCEIVER, port.transceiver))


LINK: Collector[Host, LinksReading] = Collector(
    "link",
    (PACKETS, BYTES, MTU, SPEED, UP, CARRIER_CHANGES),
    lambda host, _skip: host.parts.network.read_links(),
    link_samples,
    origin="rtnetlink `RTM_GETLINK` with `rtnl_link_stats64`",
    sized_by=("network port",),
)
ETHTOOL: Collector[Host, LossesReading] = Collector(
    "ethtool",
    (DROPS, ERRORS, PRIORITY_PAUSE_FRAMES, INFO),
    lambda host, skip: host.parts.network.read_losses(skip),
    ethtool_samples,
    skip_reasons=ITEM_REASONS,
    origin="rtnetlink counters and the driver's own (`ethtool -S`), sorted by the driver table",
    sized_by=("network port",),
)
RING: Collector[Host, RingsReading] = Collector(
    "ring",
    (RING_ENTRIES, RING_MAX_ENTRIES),
    lambda host, _skip: host.parts.network.read_rings(),
    ring_samples,
    origin="`ETHTOOL_MSG_RINGS_GET`, or its ioctl (`ethtool -g`)",
    sized_by=("network port",),
)
PAUSE: Collector[Host, PauseReading] = Collector(
    "pause",
    (PAUSE_FRAMES, PAUSE_ENABLED, PAUSE_AUTONEGOTIATE),
    lambda host, skip: host.parts.network.read_pause(skip),
    pause_samples,
    skip_reasons=ITEM_REASONS,
    origin="`ETHTOOL_MSG_PAUSE_GET` with statistics (`ethtool -I -a`)",
    sized_by=("network port",),
)
CHANNEL: Collector[Host, ChannelsReading] = Collector(
    "channel",
    (CHANNELS, MAX_CHANNELS),
    lambda host, _skip: host.parts.network.read_channels(),
    channel_samples,
    origin="`ETHTOOL_MSG_CHANNELS_GET`, or its ioctl (`ethtool -l`)",
    sized_by=("network port",),
)
COALESCE: Collector[Host, CoalescingReading] = Collector(
    "coalesce",
    (COALESCE_SECONDS, COALESCE_FRAMES, COALESCE_ADAPTIVE),
    lambda host, _skip: host.parts.network.read_coalescing(),
    coalesce_samples,
    origin="`ETHTOOL_MSG_COALESCE_GET`, or its ioctl (`ethtool -c`)",
    sized_by=("network port",),
)
OFFLOAD: Collector[Host, OffloadsReading] = Collector(
    "offload",
    (OFFLOAD_ENABLED,),
    lambda host, _skip: host.parts.network.read_offloads(),
    offload_samples,
    origin="`ETHTOOL_MSG_FEATURES_GET`, or its ioctl (`ethtool -k`)",
    sized_by=("network port",),
)
LINKMODE: Collector[Host, LinkModesReading] = Collector(
    "linkmode",
    (FULL_DUPLEX, AUTONEGOTIATION, MAX_SPEED, FEC, TRANSCEIVER),
    lambda host, skip: host.parts.network.read_link_modes(skip),
    linkmode_samples,
    skip_reasons=ITEM_REASONS,
    origin="`ETHTOOL_MSG_LINKMODES_GET`, `FEC_GET`, `LINKINFO_GET`, or their ioctls (`ethtool`)",
    sized_by=("network port",),
)
