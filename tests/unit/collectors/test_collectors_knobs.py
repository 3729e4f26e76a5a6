"""Port settings as samples."""

from __future__ import annotations

from plumbline.collectors import knobs
from plumbline.sources.net.channels import Channels
from plumbline.sources.net.coalesce import Coalescing, Moderation
from plumbline.sources.net.features import Offload
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.network import PortModes


def test_channels() -> None:
    ports = (("eth0", Channels(other=1, combined=16, other_max=1, combined_max=63)), ("eth1", Channels()))
    assert list(knobs.channel_samples(ports)) == [
        (knobs.CHANNELS, ("eth0", "other"), 1),
        (knobs.MAX_CHANNELS, ("eth0", "other"), 1),
        (knobs.CHANNELS, ("eth0", "combined"), 16),
        (knobs.MAX_CHANNELS, ("eth0", "combined"), 63),
    ]


def test_coalescing_in_seconds() -> None:
    port = ("eth0", Coalescing(Moderation(8, 128, True), Moderation(0, None, False)))
    assert list(knobs.coalesce_samples((port,))) == [
        (knobs.COALESCE_SECONDS, ("eth0", "receive"), 8e-06),
        (knobs.COALESCE_FRAMES, ("eth0", "receive"), 128),
        (knobs.COALESCE_ADAPTIVE, ("eth0", "receive"), 1),
        (knobs.COALESCE_SECONDS, ("eth0", "transmit"), 0.0),
        (knobs.COALESCE_ADAPTIVE, ("eth0", "transmit"), 0),
    ]


def test_offloads() -> None:
    port = ("eth0", (Offload("generic-receive-offload", True, False), Offload("large-receive-offload", False, True)))
    assert list(knobs.offload_samples((port,))) == [
        (knobs.OFFLOAD_ENABLED, ("eth0", "generic-receive-offload"), 1),
        (knobs.OFFLOAD_ENABLED, ("eth0", "large-receive-offload"), 0),
    ]


def test_link_modes() -> None:
    modes = LinkModes(25_000, full_duplex=True, autonegotiation=False, max_speed_mbps=100_000, fibre=True)
    assert list(knobs.linkmode_samples((PortModes("eth0", modes, "rs", True),))) == [
        (knobs.FULL_DUPLEX, ("eth0",), 1),
        (knobs.AUTONEGOTIATION, ("eth0",), 0),
        (knobs.MAX_SPEED, ("eth0",), 100_000_000_000),
        (knobs.FEC, ("eth0", "rs"), 1),
        (knobs.TRANSCEIVER, ("eth0",), 1),
    ]


def test_what_is_not_known_is_absent() -> None:
    assert list(knobs.linkmode_samples((PortModes("eth0", LinkModes(), None, None),))) == []
