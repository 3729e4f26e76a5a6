"""Port settings as samples."""

from __future__ import annotations

from plumbline.collectors import nic
from plumbline.sources.net.features import Offload
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.network import PortModes
from plumbline.sources.net.port_settings import Channels, Coalescing, Moderation


def test_channels() -> None:
    ports = (("eth0", Channels(other=1, combined=16, other_max=1, combined_max=63)), ("eth1", Channels()))
    assert list(nic.channel_samples(ports)) == [
        (nic.CHANNELS, ("eth0", "other"), 1),
        (nic.MAX_CHANNELS, ("eth0", "other"), 1),
        (nic.CHANNELS, ("eth0", "combined"), 16),
        (nic.MAX_CHANNELS, ("eth0", "combined"), 63),
    ]


def test_coalescing_in_seconds() -> None:
    port = ("eth0", Coalescing(Moderation(8, 128, True), Moderation(0, None, False)))
    assert list(nic.coalesce_samples((port,))) == [
        (nic.COALESCE_SECONDS, ("eth0", "receive"), 8e-06),
        (nic.COALESCE_FRAMES, ("eth0", "receive"), 128),
        (nic.COALESCE_ADAPTIVE, ("eth0", "receive"), 1),
        (nic.COALESCE_SECONDS, ("eth0", "transmit"), 0.0),
        (nic.COALESCE_ADAPTIVE, ("eth0", "transmit"), 0),
    ]


def test_offloads() -> None:
    port = ("eth0", (Offload("generic-receive-offload", True), Offload("large-receive-offload", False)))
    assert list(nic.offload_samples((port,))) == [
        (nic.OFFLOAD_ENABLED, ("eth0", "generic-receive-offload"), 1),
        (nic.OFFLOAD_ENABLED, ("eth0", "large-receive-offload"), 0),
    ]


def test_link_modes() -> None:
    modes = LinkModes(25_000, full_duplex=True, autonegotiation=False, max_speed_mbps=100_000, fibre=True)
    assert list(nic.linkmode_samples((PortModes("eth0", modes, "rs", True),))) == [
        (nic.FULL_DUPLEX, ("eth0",), 1),
        (nic.AUTONEGOTIATION, ("eth0",), 0),
        (nic.MAX_SPEED, ("eth0",), 12_500_000_000),
        (nic.FEC, ("eth0", "rs"), 1),
        (nic.TRANSCEIVER, ("eth0",), 1),
    ]


def test_what_is_not_known_is_absent() -> None:
    assert list(nic.linkmode_samples((PortModes("eth0", LinkModes(), None, None),))) == []
