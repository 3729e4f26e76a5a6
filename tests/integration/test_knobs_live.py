"""Port settings on the running kernel: changed with ethtool, in namespaces of our own, and seen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plumbline.collectors import nic
from plumbline.errors import Unavailable
from plumbline.sources.net import ethnl
from plumbline.sources.net.drivers import load_table
from plumbline.sources.net.ethtool import Ethtool
from plumbline.sources.net.genetlink import resolve_family, settings_group
from plumbline.sources.net.knobs import Knobs, KnobsReader
from plumbline.sources.net.linkevents import LinkEvents
from plumbline.sources.net.linkmodes import SPEEDS_MBPS
from plumbline.sources.net.links import read_links
from plumbline.sources.net.netlink import U32, Netlink, attribute
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.portfacts import Transports
from support.netns import Namespace, namespace

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2"),
]
needs_ethtool = pytest.mark.skipif(shutil.which("ethtool") is None, reason="needs ethtool to change settings")
needs_tun = pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="needs the tun driver")
ETH_SS_LINK_MODES = 9


@pytest.fixture
def pair() -> Iterator[Namespace]:
    """Two veth ends with four queues each way and one in use, and no hardware port: as in a container."""
    with namespace() as ns:
        queues = ("numrxqueues", "4", "numtxqueues", "4")
        ns.ip("link", "add", "va", *queues, "type", "veth", "peer", "name", "vb", *queues)
        for device in ("va", "vb"):
            ns.ip("link", "set", device, "up")
            ethtool(ns, "-L", device, "rx", "1", "tx", "1")
        yield ns


@pytest.fixture
def transports() -> Iterator[Transports]:
    """Of the namespace in which they are first used."""
    made = Transports.to_kernel()
    yield made
    made.close()


@pytest.fixture
def read(transports: Transports) -> NetworkReader:
    return NetworkReader(
        table=load_table(),
        resolve_family=resolve_family,
        scrape=transports,
        slow=transports,
        clock=time.monotonic,
    )


def ethtool(ns: Namespace, *arguments: str) -> str:
    argv = ["ip", "netns", "exec", ns.name, "ethtool", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def offloads_of(read: NetworkReader, device: str) -> dict[str, bool]:
    return {each.name: each.enabled for each in dict(read.read_offloads())[device]}


@needs_ethtool
def test_an_offload_turned_off_is_seen_after_the_next_look(pair: Namespace, read: NetworkReader) -> None:
    pair.run(read.refresh)
    assert pair.run(lambda: offloads_of(read, "va"))["tcp-segmentation-offload"]
    for short, name in (("gro", "generic-receive-offload"), ("tso", "tcp-segmentation-offload")):
        for setting in ("on", "off"):
            ethtool(pair, "-K", "va", short, setting)
            pair.run(read.refresh)
            assert pair.run(lambda: offloads_of(read, "va"))[name] == (setting == "on")
    samples = list(nic.offload_samples(pair.run(read.read_offloads)))
    assert (nic.OFFLOAD_ENABLED, ("va", "generic-receive-offload"), 0) in samples
    assert (nic.OFFLOAD_ENABLED, ("vb", "tcp-segmentation-offload"), 1) in samples


@needs_ethtool
def test_offloads_are_what_ethtool_prints(pair: Namespace, read: NetworkReader) -> None:
    pair.run(read.refresh)
    printed = dict(re.findall(r"^\t?([\w-]+): (on|off)", ethtool(pair, "-k", "va"), re.MULTILINE))
    ours = pair.run(lambda: offloads_of(read, "va"))
    assert len(ours) >= 12
    assert {name: printed[name] == "on" for name in ours} == ours


@needs_ethtool
def test_channels_follow(pair: Namespace, read: NetworkReader) -> None:
    for count in (1, 4, 2):
        ethtool(pair, "-L", "va", "rx", str(count), "tx", str(count))
        pair.run(read.refresh)
        channels = dict(pair.run(read.read_channels))["va"]
        assert (channels.rx, channels.tx, channels.rx_max, channels.tx_max) == (count, count, 4, 4)


@needs_ethtool
@needs_tun
def test_coalescing_follows(pair: Namespace, read: NetworkReader) -> None:
    with pytest.raises(Unavailable, match="no network port reports its interrupt coalescing"):
        pair.run(read.read_coalescing)
    pair.ip("tuntap", "add", "tap0", "mode", "tap")
    for frames in (0, 32):
        ethtool(pair, "-C", "tap0", "rx-frames", str(frames))
        pair.run(read.refresh)
        coalescing = dict(pair.run(read.read_coalescing))["tap0"]
        assert (coalescing.receive.frames, coalescing.receive.delay_us, coalescing.transmit.frames) == (
            frames,
            None,
            None,
        )


@needs_ethtool
@needs_tun
def test_a_setting_that_no_link_event_tells_of_is_heard_at_once(pair: Namespace) -> None:
    pair.ip("tuntap", "add", "tap0", "mode", "tap")
    heard = {"links only": threading.Event(), "settings too": threading.Event()}
    listeners = [
        LinkEvents(heard["links only"].set, settle_s=0.0),
        LinkEvents(heard["settings too"].set, settings_group=settings_group, settle_s=0.0),
    ]
    for each in listeners:
        pair.run(each.start)
    try:
        time.sleep(0.2)  # what the new link itself has told
        for event in heard.values():
            event.clear()
        ethtool(pair, "-C", "tap0", "rx-frames", "16")
        assert heard["settings too"].wait(5)
        assert not heard["links only"].is_set()
    finally:
        for each in listeners:
            each.stop()


def test_a_kernel_without_the_settings_group_still_tells_of_links(pair: Namespace) -> None:
    def no_group() -> int:
        raise Unavailable("generic netlink family ethtool: ENOENT")

    heard = threading.Event()
    events = LinkEvents(heard.set, settings_group=no_group, settle_s=0.0)
    pair.run(events.start)
    try:
        pair.ip("link", "set", "va", "mtu", "1400")
        assert heard.wait(5)
    finally:
        events.stop()


@needs_tun
def test_the_ioctls_say_what_netlink_says(pair: Namespace, transports: Transports) -> None:
    """On this host's own ports, and in a namespace where the container's ends are the ports."""
    pair.ip("tuntap", "add", "tap0", "mode", "tap")
    host = Transports.to_kernel()
    try:
        for run, via in ((lambda function: function(), host), (pair.run, transports)):
            _compare(run, via)
    finally:
        host.close()


def _compare(run: Callable[[Callable[[], Knobs]], Knobs], via: Transports) -> None:
    reader = KnobsReader(Netlink(via.generic, source="live"), Ethtool(via.ioctl))
    route = Netlink(via.route, source="live")
    family = resolve_family(ethnl.FAMILY)
    by_netlink = run(lambda: reader.read(family, read_links(route), Knobs()))
    by_ioctl = run(lambda: reader.read(None, read_links(route), Knobs()))
    assert isinstance(by_netlink.offloads, dict)
    assert isinstance(by_netlink.linkmodes, dict)
    assert isinstance(by_ioctl.linkmodes, dict)
    assert by_netlink.offload_masks
    for part in ("channels", "offloads", "fec", "connectors", "offload_masks"):
        assert getattr(by_ioctl, part) == getattr(by_netlink, part)
    for index, modes in by_netlink.linkmodes.items():
        other = by_ioctl.linkmodes[index]
        assert (modes.speed_mbps, modes.full_duplex, modes.autonegotiation, modes.max_speed_mbps) == (
            other.speed_mbps,
            other.full_duplex,
            other.autonegotiation,
            other.max_speed_mbps,
        )


def test_the_table_of_link_modes_agrees_with_this_kernels_names(transports: Transports) -> None:
    """``100000baseCR4/Full`` is a mode of 100 Gb/s; the kernel names all it knows."""
    generic = Netlink(transports.generic, source="live")
    string_set = attribute(1 | 0x8000, attribute(1, U32.pack(ETH_SS_LINK_MODES)))
    reply = generic.get(
        resolve_family(ethnl.FAMILY), ethnl.request(ethnl.STRSET_GET) + attribute(2 | 0x8000, string_set)
    )
    assert reply
    data = reply.data[reply.start : reply.end]
    names = {}
    for match in re.finditer(rb"\x08\x00\x01\x00(....).{4}([\w/.]+)\0", data, re.DOTALL):
        names[U32.unpack(match[1])[0]] = match[2].decode()
    assert len(names) >= 92, "Linux 5.16 had as many"
    table = {bit: mbps for mbps, modes in SPEEDS_MBPS.items() for bit in modes}
    for bit, name in names.items():
        speed = re.match(r"(\d+)base", name)
        if bit <= max(table):  # beyond: a kernel newer than the table
            assert table.get(bit) == (int(speed[1]) if speed else None), name
