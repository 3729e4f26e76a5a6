"""Settings of network ports as metrics. Four collectors: ``channel``, ``coalesce``, ``offload``, ``linkmode``.

All of them are read outside the scrape, when something changes and every few minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector
from plumbline.metrics.spec import MetricSpec, Sample, gauge, known
from plumbline.sources.net.channels import Channels
from plumbline.sources.net.coalesce import Coalescing
from plumbline.sources.net.features import Offload
from plumbline.sources.net.network import PortModes

CHANNELS = gauge(
    "plumbline_nic_channels",
    "Channels (an interrupt and its queues) in use: rx, tx, other, combined. A sort the port lacks is absent.",
    ("device", "channel"),
)
MAX_CHANNELS = gauge(
    "plumbline_nic_max_channels", "Channels of each sort that the port can have.", ("device", "channel")
)
CHANNEL_SPECS: tuple[MetricSpec, ...] = (CHANNELS, MAX_CHANNELS)

COALESCE_SECONDS = gauge(
    "plumbline_nic_coalesce_seconds",
    "How long the port waits for more frames before it interrupts. Where adaptive: of the moment, or the start.",
    ("device", "direction"),
)
COALESCE_FRAMES = gauge(
    "plumbline_nic_coalesce_frames",
    "After how many frames the port interrupts without waiting longer.",
    ("device", "direction"),
)
COALESCE_ADAPTIVE = gauge(
    "plumbline_nic_coalesce_adaptive", "1: the driver adapts the coalescing to the traffic.", ("device", "direction")
)
COALESCE_SPECS: tuple[MetricSpec, ...] = (COALESCE_SECONDS, COALESCE_FRAMES, COALESCE_ADAPTIVE)

OFFLOAD_ENABLED = gauge(
    "plumbline_nic_offload_enabled",
    "1: the offload is on. Features are named as ethtool -k prints them.",
    ("device", "feature"),
)
OFFLOAD_SPECS: tuple[MetricSpec, ...] = (OFFLOAD_ENABLED,)

FULL_DUPLEX = gauge("plumbline_nic_full_duplex", "1: full duplex, 0: half; absent without a link.", ("device",))
AUTONEGOTIATION = gauge(
    "plumbline_nic_autonegotiation_enabled",
    "1: the port negotiates with the other end; absent where it is off because the port can't.",
    ("device",),
)
MAX_SPEED = gauge(
    "plumbline_nic_max_speed_bits_per_second",
    "Speed of the fastest link mode that the port supports, with the transceiver it has where the driver looks at it.",
    ("device",),
)
FEC = gauge(
    "plumbline_nic_fec_info",
    "Forward error correction in force: off, rs, baser, llrs. Absent without a link.",
    ("device", "mode"),
)
TRANSCEIVER = gauge(
    "plumbline_nic_transceiver_present",
    "1: a transceiver or cable is plugged in, 0: the cage is empty; absent where that is not known for sure.",
    ("device",),
)
LINKMODE_SPECS: tuple[MetricSpec, ...] = (FULL_DUPLEX, AUTONEGOTIATION, MAX_SPEED, FEC, TRANSCEIVER)

_BITS_PER_MEGABIT = 1_000_000
_MICROSECONDS = 1_000_000


def channel_samples(ports: Iterable[tuple[str, Channels]]) -> Iterator[Sample]:
    """Two samples per kind of channel that the port has."""
    for device, channels in ports:
        for channel, count, most in (
            ("rx", channels.rx, channels.rx_max),
            ("tx", channels.tx, channels.tx_max),
            ("other", channels.other, channels.other_max),
            ("combined", channels.combined, channels.combined_max),
        ):
            yield from known((device, channel), (CHANNELS, count), (MAX_CHANNELS, most))


def coalesce_samples(ports: Iterable[tuple[str, Coalescing]]) -> Iterator[Sample]:
    """Up to three samples per direction."""
    for device, coalescing in ports:
        for direction, moderation in (("receive", coalescing.receive), ("transmit", coalescing.transmit)):
            labels = (device, direction)
            if moderation.delay_us is not None:
                yield COALESCE_SECONDS, labels, moderation.delay_us / _MICROSECONDS
            yield from known(labels, (COALESCE_FRAMES, moderation.frames), (COALESCE_ADAPTIVE, moderation.adaptive))


def offload_samples(ports: Iterable[tuple[str, tuple[Offload, ...]]]) -> Iterator[Sample]:
    """One sample per offload that the kernel knows."""
    for device, offloads in ports:
        for offload in offloads:
            yield OFFLOAD_ENABLED, (device, offload.name), int(offload.enabled)


def linkmode_samples(ports: Iterable[PortModes]) -> Iterator[Sample]:
    """What is known of each port's link."""
    for port in ports:
        labels, modes = (port.device,), port.modes
        yield from known(labels, (FULL_DUPLEX, modes.full_duplex), (AUTONEGOTIATION, modes.autonegotiation))
        if modes.max_speed_mbps is not None:
            yield MAX_SPEED, labels, modes.max_speed_mbps * _BITS_PER_MEGABIT
        if port.fec is not None:
            yield FEC, (port.device, port.fec), 1
        yield from known(labels, (TRANSCEIVER, port.transceiver))


CHANNEL: Collector[Host, tuple[tuple[str, Channels], ...]] = Collector(
    "channel",
    CHANNEL_SPECS,
    lambda host, _skip: host.parts.network.read_channels(),
    channel_samples,
    origin="`ETHTOOL_MSG_CHANNELS_GET`, or its ioctl (`ethtool -l`)",
    sized_by=("network port",),
)
COALESCE: Collector[Host, tuple[tuple[str, Coalescing], ...]] = Collector(
    "coalesce",
    COALESCE_SPECS,
    lambda host, _skip: host.parts.network.read_coalescing(),
    coalesce_samples,
    origin="`ETHTOOL_MSG_COALESCE_GET`, or its ioctl (`ethtool -c`)",
    sized_by=("network port",),
)
OFFLOAD: Collector[Host, tuple[tuple[str, tuple[Offload, ...]], ...]] = Collector(
    "offload",
    OFFLOAD_SPECS,
    lambda host, _skip: host.parts.network.read_offloads(),
    offload_samples,
    origin="`ETHTOOL_MSG_FEATURES_GET`, or its ioctl (`ethtool -k`)",
    sized_by=("network port",),
)
LINKMODE: Collector[Host, tuple[PortModes, ...]] = Collector(
    "linkmode",
    LINKMODE_SPECS,
    lambda host, skip: host.parts.network.read_link_modes(skip),
    linkmode_samples,
    skip_reasons=ITEM_REASONS,
    origin="`ETHTOOL_MSG_LINKMODES_GET`, `FEC_GET`, `LINKINFO_GET`, or their ioctls (`ethtool`)",
    sized_by=("network port",),
)
