"""The reader: what one scrape reads, shares, skips and remembers."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.net import ethnl, ethtool
from plumbline.sources.net.drivers import Count, NicLoss, load_table
from plumbline.sources.net.features import Offload
from plumbline.sources.net.links import RTM_GETLINK, RTM_NEWLINK, LinkStats
from plumbline.sources.net.netlink import Refused, attribute
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.port_settings import Channels, PauseConfig, PauseState, RingSizes
from plumbline.sources.net.portfacts import Transports
from support.ethnl_replies import FAMILY, bits, reply, strings, u8, u32
from support.replay_network import (
    GLINKSETTINGS,
    ReplayEthtool,
    ReplayNetlink,
    done,
    driver_answers,
    error,
    gstats,
    link_settings,
    message,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
RINGS, PAUSE, LINKMODES = (FAMILY, 15), (FAMILY, 21), (FAMILY, 4)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Host:
    """A reader over replayed kernels; ``route``, ``generic`` and ``ioctl`` serve both tiers."""

    def __init__(
        self,
        route: ReplayNetlink,
        generic: ReplayNetlink,
        ioctl: ReplayEthtool,
        *,
        resolve: Callable[[str], int] = lambda _name: FAMILY,
        keep: Callable[[str], bool] = lambda _device: True,
    ) -> None:
        self.route, self.generic, self.ioctl, self.clock = route, generic, ioctl, Clock()
        transports = Transports(route, generic, ioctl)
        self.skipped: list[tuple[str, str]] = []
        self.reader = NetworkReader(
            table=load_table(),
            resolve_family=resolve,
            scrape=transports,
            slow=transports,
            clock=self.clock,
            keep=keep,
        )

    def skip(self, item: str, reason: str) -> None:
        self.skipped.append((item, reason))


def recorded(scenario: str, **options: object) -> Host:
    path = FIXTURES / scenario
    ioctl = ReplayEthtool.load(path) if (path / "ioctl").exists() else ReplayEthtool({})
    return Host(ReplayNetlink.load(path), ReplayNetlink.load(path), ioctl, **options)  # type: ignore[arg-type]


def link(
    index: int, name: str, stats: LinkStats | None = None, *, kind: str = "", master: int = 0, more: bytes = b""
) -> bytes:
    values = stats or LinkStats(*[0] * 25)
    parts = [attribute(3, name.encode() + b"\0"), attribute(23, struct.pack("=25Q", *values)), attribute(16, b"\x06")]
    if kind:
        parts.append(attribute(18, attribute(1, kind.encode() + b"\0")))
    if master:
        parts.append(attribute(10, struct.pack("=I", master)))
    return message(RTM_NEWLINK, struct.pack("=BxHiII", 0, 1, index, 1, 0) + b"".join(parts) + more)


IXGBE = {
    "rx_no_dma_resources": 11,
    "rx_missed_errors": 22,
    "rx_crc_errors": 3,
    "rx_length_errors": 4,
    "rx_long_length_errors": 5,
    "rx_short_length_errors": 6,
    "rx_flow_control_xon": 1,
    "rx_flow_control_xoff": 2,
    "tx_flow_control_xon": 10,
    "tx_flow_control_xoff": 20,
}


def ixgbe_host(**options: object) -> Host:
    """Two bonded ixgbe ports and a driver nobody knows."""
    links = link(2, "eth0", master=5) + link(3, "eth1", master=5) + link(4, "odd0") + link(5, "bond0", kind="bond")
    answers = {
        **driver_answers(b"eth0", "ixgbe", IXGBE, firmware="0x800003df", bus="0000:3b:00.0"),
        **driver_answers(b"eth1", "ixgbe", IXGBE, firmware="0x800003df", bus="0000:3b:00.1"),
        **driver_answers(b"odd0", "odd", {"rx_weird": 9}),
    }
    enabled = (u8(2, 0), u8(3, 1), u8(4, 1))
    generic = {
        RINGS: reply(2, u32(2, 4096), u32(6, 512)) + reply(3, u32(2, 4096), u32(6, 4096)) + done(),
        PAUSE: reply(2, *enabled) + reply(3, *enabled) + done(),
        LINKMODES: reply(2, u32(5, 10000)) + reply(3, u32(5, 0xFFFFFFFF)) + reply(5, u32(5, 10000)) + done(),
    }
    return Host(
        ReplayNetlink({RTM_GETLINK: links + done()}),
        ReplayNetlink(generic),
        ReplayEthtool(answers),
        **options,  # type: ignore[arg-type]
    )


def test_a_virtual_machine_from_its_recording() -> None:
    host = recorded("net-virtio-guest")
    host.reader.refresh()
    assert not host.reader.wants_refresh
    losses = {port.device: port for port in host.reader.read_losses(host.skip)}
    assert set(losses) == {"lo", "ifb0", "ifb1", "eth0"}
    eth0 = losses["eth0"]
    assert (eth0.driver, eth0.firmware, eth0.bus, eth0.drop_source) == ("virtio_net", "", "0000:00:03.0", "driver")
    assert eth0.loss.drops == (
        Count("receive", "other", 0),
        Count("receive", "filter", 0),
        Count("transmit", "other", 0),
    )
    assert (losses["lo"].driver, losses["ifb0"].driver, losses["lo"].drop_source) == ("loopback", "ifb", "rtnl")
    assert host.reader.read_rings() == (("eth0", RingSizes(rx=256, tx=256, rx_max=256, tx_max=256)),)
    assert host.reader.read_links().speeds_mbps == {}
    with pytest.raises(Unavailable, match=r"no network port has 802\.3x flow control"):
        host.reader.read_pause(host.skip)
    assert host.skipped == []


def test_a_namespace_of_software_links_asks_no_driver_and_believes_no_speed() -> None:
    host = recorded("net-software-links")
    host.reader.refresh()
    reading = host.reader.read_links()
    assert len(reading.links) == 8
    assert reading.speeds_mbps == {}, "the veths' 10 Gb/s are made up"
    masters = {port.device: port.master for port in host.reader.read_losses(host.skip)}
    assert masters["vb0"] == "br0"
    assert host.ioctl.calls == []
    with pytest.raises(Unavailable, match="reports the size of its rings"):
        host.reader.read_rings()


def test_bonded_ports_have_losses_and_their_bond_has_not() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    ports = {port.device: port for port in host.reader.read_losses(host.skip)}
    assert ports["eth0"].loss.drops == (
        Count("receive", "ring", 11),
        Count("receive", "fifo", 22),
        Count("receive", "filter", 0),
        Count("transmit", "other", 0),
    )
    assert ports["eth0"].loss.errors == (Count("receive", "crc", 3), Count("receive", "length", 15))
    assert (ports["eth1"].master, ports["eth1"].bus, ports["eth1"].firmware) == (
        "bond0",
        "0000:3b:00.1",
        "0x800003df",
    )
    assert (ports["bond0"].drop_source, ports["bond0"].loss) == ("members", NicLoss())
    assert (ports["odd0"].driver, ports["odd0"].drop_source) == ("odd", "rtnl")
    assert host.reader.read_links().speeds_mbps == {2: 10000, 5: 10000}


def test_pause_frames_come_from_the_driver_where_netlink_does_not_count_them() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    config = PauseConfig(autonegotiate=False, receive=True, transmit=True)
    expected = PauseState(config, receive_frames=3, transmit_frames=30)
    assert host.reader.read_pause(host.skip) == (("eth0", expected), ("eth1", expected))
    stats = attribute(5, attribute(2, struct.pack("=Q", 7)) + attribute(3, struct.pack("=Q", 8)))
    host.generic.answers[PAUSE] = reply(2, u8(3, 1), stats) + done()
    ((_, state),) = host.reader.read_pause(host.skip)
    assert state == PauseState(PauseConfig(None, True, None), receive_frames=8, transmit_frames=7)


def test_one_scrape_is_one_dump_and_one_call_per_port() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    host.route.requests.clear()
    host.ioctl.calls.clear()
    for _ in range(2):
        host.reader.read_links()
        host.reader.read_losses(host.skip)
        host.reader.read_rings()
        host.reader.read_pause(host.skip)
    assert len(host.route.requests) == 2, "asking for the links again begins the next scrape"
    assert host.ioctl.calls == [(b"eth0", 0x1D), (b"eth1", 0x1D)] * 2


def test_what_is_older_than_a_second_is_not_shared() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    host.route.requests.clear()
    host.reader.read_links()
    host.clock.now += 1.5
    host.reader.read_rings()
    assert len(host.route.requests) == 2


def test_a_failed_dump_is_not_remembered() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    host.reader.read_links()
    answer = host.route.answers.pop(RTM_GETLINK)
    with pytest.raises(PlumblineError, match="no reply"):
        host.reader.read_links()
    host.route.answers[RTM_GETLINK] = answer
    assert len(host.reader.read_losses(host.skip)) == 4


@pytest.mark.parametrize(
    ("answer", "reason"), [(errno.ENODEV, "vanished"), (errno.EBUSY, "busy"), (b"\x1d\0\0", "malformed")]
)
def test_a_port_that_vanishes_between_listing_and_reading_is_skipped_alone(answer: bytes | int, reason: str) -> None:
    host = ixgbe_host()
    host.reader.refresh()
    host.ioctl.answers[b"eth0", ethtool.ETHTOOL_GSTATS] = answer
    assert [port.device for port in host.reader.read_losses(host.skip)] == ["eth1", "odd0", "bond0"]
    assert host.skipped == [("eth0", reason)]
    assert not host.reader.wants_refresh


def test_a_port_whose_statistics_changed_is_skipped_until_the_next_refresh() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    more = {**IXGBE, "rx_queue_0_packets": 1}
    host.ioctl.answers[b"eth0", ethtool.ETHTOOL_GSTATS] = gstats(list(more.values()))
    assert "eth0" not in [port.device for port in host.reader.read_losses(host.skip)]
    assert host.skipped == [("eth0", "changed")]
    assert host.reader.wants_refresh
    host.ioctl.answers.update(driver_answers(b"eth0", "ixgbe", more))
    host.reader.refresh()
    assert not host.reader.wants_refresh
    assert "eth0" in [port.device for port in host.reader.read_losses(host.skip)]


def test_names_are_asked_for_once_while_driver_and_count_stay() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    host.reader.refresh()
    asked = [device for device, command in host.ioctl.calls if command == ethtool.ETHTOOL_GSTRINGS]
    assert asked == [b"eth0", b"eth1"], "and never for a driver without rules"


def test_a_new_port_waits_for_the_refresh_it_asks_for() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    host.route.answers[RTM_GETLINK] = link(9, "new0") + done()
    host.ioctl.answers.update(driver_answers(b"new0", "ixgbe", IXGBE))
    assert host.reader.read_losses(host.skip) == ()
    assert host.skipped == [("new0", "unknown")]
    assert host.reader.wants_refresh
    host.reader.refresh()
    assert [port.device for port in host.reader.read_losses(host.skip)] == ["new0"]


def test_a_port_that_cannot_be_asked_is_skipped_and_does_not_ask_for_refreshes() -> None:
    host = ixgbe_host()
    host.ioctl.answers[b"odd0", ethtool.ETHTOOL_GDRVINFO] = errno.EPERM
    host.reader.refresh()
    assert "odd0" not in [port.device for port in host.reader.read_losses(host.skip)]
    assert host.skipped == [("odd0", "permission")]
    assert not host.reader.wants_refresh


def test_a_driver_without_ethtool_still_has_the_kernels_counters() -> None:
    host = ixgbe_host()
    host.ioctl.answers[b"odd0", ethtool.ETHTOOL_GDRVINFO] = errno.EOPNOTSUPP
    host.reader.refresh()
    odd = next(port for port in host.reader.read_losses(host.skip) if port.device == "odd0")
    assert (odd.driver, odd.drop_source, odd.loss.drops[0]) == ("", "rtnl", Count("receive", "ring", 0))


def test_excluded_devices_are_neither_read_nor_shown() -> None:
    host = ixgbe_host(keep=lambda device: device != "eth0")
    host.reader.refresh()
    assert [link.name for link in host.reader.read_links().links] == ["eth1", "odd0", "bond0"]
    assert [port.device for port in host.reader.read_losses(host.skip)] == ["eth1", "odd0", "bond0"]
    assert [device for device, _ in host.reader.read_rings()] == ["eth1"]
    assert [device for device, _ in host.reader.read_pause(host.skip)] == ["eth1"]
    assert b"eth0" not in {device for device, _ in host.ioctl.calls}


def test_a_kernel_without_ethtool_netlink_is_asked_by_ioctl() -> None:
    def no_family(_name: str) -> int:
        raise Refused(errno.ENOENT, "generic netlink family ethtool")

    host = ixgbe_host(resolve=no_family)
    host.ioctl.answers[b"eth0", GLINKSETTINGS] = link_settings(speed=25_000)
    host.ioctl.answers[b"eth0", ethtool.ETHTOOL_GRINGPARAM] = struct.pack("=9I", 16, 4096, 0, 0, 4096, 512, 0, 0, 512)
    host.ioctl.answers[b"eth0", ethtool.ETHTOOL_GPAUSEPARAM] = struct.pack("=4I", 18, 0, 1, 0)
    host.ioctl.answers[b"eth1", ethtool.ETHTOOL_GPAUSEPARAM] = errno.EOPNOTSUPP
    host.reader.refresh()
    assert host.reader.read_rings() == (("eth0", RingSizes(rx=512, tx=512, rx_max=4096, tx_max=4096)),)
    assert host.reader.read_pause(host.skip) == (
        ("eth0", PauseState(PauseConfig(False, True, False), receive_frames=3, transmit_frames=30)),
    )
    assert host.reader.read_links().speeds_mbps == {2: 25000}
    assert host.generic.requests == []


def test_a_broken_dump_of_rings_is_the_rings_collectors_error_and_nobody_elses() -> None:
    host = ixgbe_host()
    host.generic.answers[RINGS] = message(FAMILY, b"\x10\x01\0\0") + done()
    host.reader.refresh()
    for _ in range(2):
        with pytest.raises(PlumblineError, match="RINGS_GET: reply names no interface") as raised:
            host.reader.read_rings()
        assert len(raised.traceback) == 4, "the stored error must not collect the tracebacks of every scrape"
    assert len(host.reader.read_losses(host.skip)) == 4
    assert len(host.reader.read_pause(host.skip)) == 2


def virtio_port(stats: LinkStats, drops: int) -> tuple[bytes, dict[tuple[bytes, int], bytes | int]]:
    statistics = {"rx_drops": drops, "rx_xdp_drops": 0, "tx_xdp_tx_drops": 0}
    return link(2, "eth0", stats) + done(), driver_answers(b"eth0", "virtio_net", statistics)


def filtered(host: Host) -> int:
    (port,) = host.reader.read_losses(host.skip)
    return next(count.frames for count in port.loss.drops if count.cause == "filter")


def test_a_difference_of_counters_falls_only_when_the_driver_reset_them() -> None:
    zero = LinkStats(*[0] * 25)
    links, answers = virtio_port(zero._replace(rx_packets=1000, rx_dropped=35), drops=30)
    host = Host(
        ReplayNetlink({RTM_GETLINK: links}),
        ReplayNetlink({key: done() for key in (RINGS, PAUSE, LINKMODES)}),
        ReplayEthtool(answers),
    )
    host.reader.refresh()
    assert filtered(host) == 5
    for packets, dropped, drops, expected in ((1010, 36, 33, 5), (1020, 40, 33, 7), (3, 2, 0, 2)):
        links, answers = virtio_port(zero._replace(rx_packets=packets, rx_dropped=dropped), drops=drops)
        host.route.answers[RTM_GETLINK] = links
        host.ioctl.answers.update(answers)
        assert filtered(host) == expected


def knobs_host() -> Host:
    """Two ixgbe ports at 10 Gb/s, the second's cage empty."""
    ports = {
        2: (u8(2, 0), bits(3, (), mask={10, 12}), u32(5, 10_000), u8(6, 1)),
        3: (u8(2, 0), bits(3, (), mask={10, 12}), u32(5, 0xFFFFFFFF), u8(6, 0xFF)),
    }
    host = ixgbe_host()
    host.generic.answers.update(
        {
            LINKMODES: b"".join(reply(index, *attributes) for index, attributes in ports.items()) + done(),
            (FAMILY, ethnl.LINKINFO_GET): reply(2, u8(2, 3)) + reply(3, u8(2, 0xEF)) + done(),
            (FAMILY, ethnl.FEC_GET): reply(2, u32(4, 49)) + reply(3) + done(),
            (FAMILY, ethnl.CHANNELS_GET): reply(2, u32(5, 63), u32(9, 16)) + done(),
            (FAMILY, ethnl.COALESCE_GET): done(),
            (FAMILY, ethnl.FEATURES_GET): reply(2, bits(2, {0}), bits(4, {0})) + done(),
            (FAMILY, ethnl.STRSET_GET): strings(4, ("rx-gro",)),
        }
    )
    carrier = attribute(33, b"\1")
    host.route.answers[RTM_GETLINK] = link(2, "eth0", more=carrier) + link(3, "eth1") + done()
    return host


def test_settings_are_served_from_the_last_refresh() -> None:
    host = knobs_host()
    host.reader.refresh()
    asked = len(host.generic.requests)
    assert host.reader.read_channels() == (("eth0", Channels(combined=16, combined_max=63)),)
    assert host.reader.read_offloads() == (("eth0", (Offload("generic-receive-offload", True),)),)
    with pytest.raises(Unavailable, match="no network port reports its interrupt coalescing"):
        host.reader.read_coalescing()
    eth0, eth1 = host.reader.read_link_modes(host.skip)
    assert (eth0.device, eth0.modes.full_duplex, eth0.modes.max_speed_mbps) == ("eth0", True, 10_000)
    assert (eth0.fec, eth0.transceiver) == ("off", True)
    assert (eth1.modes.full_duplex, eth1.fec, eth1.transceiver) == (None, None, False)
    assert len(host.generic.requests) == asked, "a scrape asks nothing of the ports for these"
    assert host.skipped == []


def test_settings_share_the_scrapes_dump_of_links_and_follow_names() -> None:
    host = knobs_host()
    host.reader.refresh()
    before = len(host.route.requests)
    host.reader.read_links()
    host.reader.read_channels()
    host.reader.read_offloads()
    host.reader.read_link_modes(host.skip)
    assert len(host.route.requests) - before == 1
    host.route.answers[RTM_GETLINK] = link(2, "lan0") + done()
    assert [device for device, _ in host.reader.read_channels()] == ["lan0"]
    assert [port.device for port in host.reader.read_link_modes(host.skip)] == ["lan0"], "eth1 has gone"


def test_fec_and_connectors_that_fail_are_skipped_and_the_link_is_told() -> None:
    host = knobs_host()
    for command in (ethnl.FEC_GET, ethnl.LINKINFO_GET):
        host.generic.answers[FAMILY, command] = error(errno.EPERM)
    host.reader.refresh()
    ports = host.reader.read_link_modes(host.skip)
    assert [(port.modes.full_duplex, port.fec, port.transceiver) for port in ports] == [(True, None, None), (None,) * 3]
    assert host.skipped == [("fec", "permission"), ("connector", "permission")]


def test_a_broken_dump_of_channels_is_the_channel_collectors_error_and_nobody_elses() -> None:
    host = knobs_host()
    host.generic.answers[FAMILY, ethnl.CHANNELS_GET] = message(FAMILY, b"\x10\x01\0\0") + done()
    host.reader.refresh()
    with pytest.raises(PlumblineError, match="CHANNELS_GET: reply names no interface"):
        host.reader.read_channels()
    assert len(host.reader.read_offloads()) == 1
    assert len(host.reader.read_link_modes(host.skip)) == 2


# --- conditions of the driver table

MLX5 = {"rx_out_of_buffer": 0, "rx_discards_phy": 100}


def mlx5_host(stats: LinkStats) -> Host:
    ioctl = ReplayEthtool(driver_answers(b"eth0", "mlx5_core", MLX5))
    return Host(ReplayNetlink({RTM_GETLINK: link(2, "eth0", stats) + done()}), ReplayNetlink({}), ioctl)


def test_what_a_kernel_field_holds_is_settled_at_the_refresh_and_stays_settled() -> None:
    host = mlx5_host(LinkStats(*[0] * 25)._replace(rx_dropped=130))
    host.reader.refresh()
    assert filtered(host) == 30, "the port's 100 may be in there"
    host.route.answers[RTM_GETLINK] = link(2, "eth0", LinkStats(*[0] * 25)._replace(rx_dropped=99)) + done()
    host.reader.refresh()
    host.clock.now += 60
    assert filtered(host) == 99, "below the port's 100: they are not"
    host.route.answers[RTM_GETLINK] = link(2, "eth0", LinkStats(*[0] * 25)._replace(rx_dropped=140)) + done()
    dumps = len(host.route.requests)
    host.reader.refresh()
    assert len(host.route.requests) == dumps + 1, "nothing is open any more: no second look at the links"
    host.clock.now += 60
    assert filtered(host) == 140


@pytest.mark.parametrize("answer", [errno.EOPNOTSUPP, gstats([1])], ids=["refused", "other count"])
def test_a_port_whose_counters_cannot_be_had_stays_unsettled(answer: bytes | int) -> None:
    host = mlx5_host(LinkStats(*[0] * 25))
    stats = host.ioctl.answers[b"eth0", ethtool.ETHTOOL_GSTATS]
    host.ioctl.answers[b"eth0", ethtool.ETHTOOL_GSTATS] = answer
    host.reader.refresh()
    host.ioctl.answers[b"eth0", ethtool.ETHTOOL_GSTATS] = stats
    assert filtered(host) == 0


# --- one port, explained


def test_ports_are_read_with_their_rules_and_who_counts_their_pause_frames() -> None:
    host = ixgbe_host()
    host.reader.refresh()
    ports = {port.link.name: port for port in host.reader.read_ports(host.skip)}
    assert list(ports) == ["eth0", "eth1", "odd0", "bond0"]
    eth0 = ports["eth0"]
    assert (eth0.master, eth0.drop_source, eth0.names, eth0.values) == (
        "bond0",
        "driver",
        tuple(IXGBE),
        tuple(IXGBE.values()),
    )
    assert (eth0.pause_source, eth0.pause) == ("driver", PauseState(PauseConfig(False, True, True), 3, 30))
    assert eth0.rings == RingSizes(rx=512, rx_max=4096)
    assert (ports["odd0"].drop_source, ports["odd0"].names, ports["odd0"].pause_source) == ("rtnl", (), "")
    assert (ports["bond0"].info, ports["bond0"].drop_source) == (None, "members")
    assert host.skipped == []


def test_a_port_that_cannot_be_asked_is_named_with_the_reason() -> None:
    host = ixgbe_host()
    host.ioctl.answers[b"eth1", ethtool.ETHTOOL_GDRVINFO] = errno.EPERM
    host.reader.refresh()
    assert "eth1" not in [port.link.name for port in host.reader.read_ports(host.skip)]
    assert host.skipped == [("eth1", "permission")]
