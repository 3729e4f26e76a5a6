"""Network readings as samples."""

from __future__ import annotations

from msgspec.structs import replace

from plumbline.collectors import nic
from plumbline.sources.net.drivers import Count, NicLoss
from plumbline.sources.net.links import Link, LinkStats
from plumbline.sources.net.network import LinksReading, PortLosses
from plumbline.sources.net.port_settings import PauseConfig, PauseState, RingSizes

STATS = LinkStats(*range(1, 26))
ETH0 = Link(2, "eth0", b"eth0", "", 0x1, 9000, 6, True, 4, 0, "", "", "", STATS)


def test_a_link() -> None:
    assert list(nic.link_samples(LinksReading((ETH0,), {2: 100_000}))) == [
        (nic.PACKETS, ("eth0", "receive"), 1),
        (nic.PACKETS, ("eth0", "transmit"), 2),
        (nic.BYTES, ("eth0", "receive"), 3),
        (nic.BYTES, ("eth0", "transmit"), 4),
        (nic.MTU, ("eth0",), 9000),
        (nic.CARRIER_CHANGES, ("eth0",), 4),
        (nic.UP, ("eth0",), 1),
        (nic.SPEED, ("eth0",), 12_500_000_000),
    ]


def test_what_a_link_does_not_say_is_absent() -> None:
    link = replace(ETH0, mtu_bytes=None, carrier_changes=None, stats=None, operstate=2)
    assert list(nic.link_samples(LinksReading((link,), {9: 1000}))) == [(nic.UP, ("eth0",), 0)]


def test_losses_and_identity() -> None:
    loss = NicLoss((Count("receive", "ring", 0), Count("transmit", "other", 7)), (Count("receive", "crc", 1),))
    port = PortLosses("eth0", "ixgbe", "0x800003df", "0000:3b:00.0", "bond0", "driver", loss)
    assert list(nic.ethtool_samples((port,))) == [
        (nic.DROPS, ("eth0", "receive", "ring"), 0),
        (nic.DROPS, ("eth0", "transmit", "other"), 7),
        (nic.ERRORS, ("eth0", "receive", "crc"), 1),
        (nic.INFO, ("eth0", "ixgbe", "0x800003df", "0000:3b:00.0", "bond0", "driver"), 1),
    ]


def test_rings_that_exist() -> None:
    port = ("eth0", RingSizes(rx=512, rx_jumbo=0, tx=256, rx_max=4096, rx_jumbo_max=64, tx_max=4096))
    assert list(nic.ring_samples((port,))) == [
        (nic.RING_ENTRIES, ("eth0", "receive"), 512),
        (nic.RING_MAX_ENTRIES, ("eth0", "receive"), 4096),
        (nic.RING_ENTRIES, ("eth0", "receive_jumbo"), 0),
        (nic.RING_MAX_ENTRIES, ("eth0", "receive_jumbo"), 64),
        (nic.RING_ENTRIES, ("eth0", "transmit"), 256),
        (nic.RING_MAX_ENTRIES, ("eth0", "transmit"), 4096),
    ]


def test_flow_control_as_set_and_as_counted() -> None:
    counted = ("eth0", PauseState(PauseConfig(False, True, True), receive_frames=0, transmit_frames=51))
    silent = ("eth1", PauseState(PauseConfig(None, False, None)))
    assert list(nic.pause_samples((counted, silent))) == [
        (nic.PAUSE_ENABLED, ("eth0", "receive"), 1),
        (nic.PAUSE_FRAMES, ("eth0", "receive"), 0),
        (nic.PAUSE_ENABLED, ("eth0", "transmit"), 1),
        (nic.PAUSE_FRAMES, ("eth0", "transmit"), 51),
        (nic.PAUSE_AUTONEGOTIATE, ("eth0",), 0),
        (nic.PAUSE_ENABLED, ("eth1", "receive"), 0),
    ]
