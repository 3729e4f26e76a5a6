"""The network sources against the running kernel: a namespace of our own, real links, real frames."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.collectors import nic
from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.sources.kernel.softnet import SoftnetUnwrapper, read_softnet
from plumbline.sources.net.drivers import Count, load_table
from plumbline.sources.net.ethtool import Ethtool, EthtoolSocket
from plumbline.sources.net.genetlink import resolve_family
from plumbline.sources.net.linkevents import LinkEvents
from plumbline.sources.net.links import Link, Relation, read_links
from plumbline.sources.net.netlink import Netlink, NetlinkSocket
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.portfacts import Transports
from plumbline.sources.net.roles import Role, read_roles
from support.losses import send_frames
from support.netns import Namespace, namespace

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2"),
]
HOST = Roots.under(Path("/"))


@pytest.fixture
def pair() -> Iterator[Namespace]:
    """Two veth ends, up, silent: no IPv6 that would send by itself."""
    with namespace() as ns:
        ns.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
        for device in ("va", "vb"):
            ns.ip("link", "set", device, "addrgenmode", "none", "up")
        yield ns


def make_reader(transports: Transports) -> NetworkReader:
    return NetworkReader(
        table=load_table(),
        resolve_family=resolve_family,
        scrape=transports,
        slow=transports,
        clock=time.monotonic,
    )


@pytest.fixture
def read() -> Iterator[NetworkReader]:
    """A reader; it is of the namespace in which it is first used."""
    transports = Transports.to_kernel()
    yield make_reader(transports)
    transports.close()


def links() -> dict[str, Link]:
    sock = NetlinkSocket(socket.NETLINK_ROUTE)
    try:
        return {link.name: link for link in read_links(Netlink(sock, source="live")).values()}
    finally:
        sock.close()


def proc_net_dev() -> dict[str, list[int]]:
    rows = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
    return {name.strip(): [int(value) for value in values.split()] for name, values in (r.split(":") for r in rows)}


def test_counters_are_the_frames_that_went_through(pair: Namespace) -> None:
    before = pair.run(links)
    pair.run(lambda: send_frames("va", 50, 600))
    after = pair.run(links)
    sent, got = after["va"].stats, after["vb"].stats
    was_sent, had = before["va"].stats, before["vb"].stats
    assert sent is not None
    assert got is not None
    assert was_sent is not None
    assert had is not None
    assert (sent.tx_packets - was_sent.tx_packets, sent.tx_bytes - was_sent.tx_bytes) == (50, 30_000)
    assert (got.rx_packets - had.rx_packets, got.rx_bytes - had.rx_bytes) == (50, 30_000)


def test_counters_equal_what_proc_says(pair: Namespace) -> None:
    pair.run(lambda: send_frames("vb", 7, 200))
    ours, theirs = pair.run(lambda: (links(), proc_net_dev()))
    assert set(ours) == set(theirs) == {"lo", "va", "vb"}
    for name, link in ours.items():
        stats, row = link.stats, theirs[name]
        assert stats
        assert (stats.rx_bytes, stats.rx_packets, stats.rx_errors) == tuple(row[:3])
        assert stats.rx_dropped + stats.rx_missed_errors == row[3], "this file folds the two"
        assert (stats.tx_bytes, stats.tx_packets, stats.tx_errors, stats.tx_dropped) == tuple(row[8:12])


def test_frames_that_nobody_wants_are_drops_of_the_receiving_end(pair: Namespace, read: NetworkReader) -> None:
    pair.run(read.refresh)

    def drops() -> dict[str, tuple[Count, ...]]:
        return {port.device: port.loss.drops for port in read.read_losses(pytest.fail)}

    before = pair.run(drops)
    pair.run(lambda: send_frames("va", 20, 100))
    after = pair.run(drops)
    grown = {
        (device, now.direction, now.cause): now.frames - was.frames
        for device in after
        for was, now in zip(before[device], after[device], strict=True)
        if now.frames != was.frames
    }
    assert grown == {("vb", "receive", "other"): 20}


def test_names_that_are_not_utf8_reach_the_samples(pair: Namespace, read: NetworkReader) -> None:
    pair.ip("link", "add", b"\xff\xfe", "type", "bridge")
    reading = pair.run(read.read_links)
    assert (nic.UP, ("\\xff\\xfe",), 0) in list(nic.link_samples(reading))


def test_a_bridge_is_the_master_of_its_port_and_states_follow(pair: Namespace) -> None:
    pair.ip("link", "add", "br0", "type", "bridge")
    pair.ip("link", "set", "vb", "master", "br0")
    pair.ip("link", "set", "va", "mtu", "1400")
    pair.ip("link", "set", "va", "down")
    now = pair.run(links)
    deadline = time.monotonic() + 5
    while now["vb"].up and time.monotonic() < deadline:  # the kernel lets states follow once a second at most
        time.sleep(0.05)
        now = pair.run(links)
    assert now["vb"].master_index == now["br0"].ifindex
    assert (now["br0"].kind, now["va"].mtu_bytes) == ("bridge", 1400)
    assert (now["va"].up, now["vb"].up, now["vb"].carrier) == (False, False, False)
    assert now["vb"].carrier_changes is not None
    assert now["vb"].carrier_changes >= 1


def test_a_link_that_vanishes_is_gone_from_the_next_scrape(pair: Namespace, read: NetworkReader) -> None:
    assert {link.name for link in pair.run(read.read_links).links} == {"lo", "va", "vb"}
    pair.ip("link", "del", "va")
    assert {link.name for link in pair.run(read.read_links).links} == {"lo"}


def test_a_device_that_vanishes_before_its_ioctl_is_unavailable(pair: Namespace) -> None:
    handle = EthtoolSocket()
    try:
        info = pair.run(lambda: Ethtool(handle).driver_info(b"va"))
        assert info.driver == "veth"
        names = pair.run(lambda: Ethtool(handle).strings(b"va"))
        values = pair.run(lambda: Ethtool(handle).stats(b"va", len(names)))
        assert values is not None
        assert len(values) == len(names) == info.statistics > 0
        pair.ip("link", "del", "va")
        with pytest.raises(Unavailable, match="va: ENODEV"):
            Ethtool(handle).stats(b"va", len(names))
    finally:
        handle.close()


def test_the_kernel_never_writes_past_our_buffer_when_queues_were_added(pair: Namespace) -> None:
    """More statistics than we asked for: noticed, and no value is believed."""
    pair.ip("link", "add", "vq", "numrxqueues", "4", "numtxqueues", "4", "type", "veth", "peer", "name", "vr")
    handle = EthtoolSocket()
    try:
        ethtool = pair.run(lambda: Ethtool(handle))
        names = pair.run(lambda: ethtool.strings(b"vq"))
        assert ethtool.stats(b"vq", len(names)) is not None
        assert ethtool.stats(b"vq", 1) is None
    finally:
        handle.close()


def test_a_namespace_without_hardware_says_so(pair: Namespace, read: NetworkReader) -> None:
    pair.run(read.refresh)
    with pytest.raises(Unavailable, match="rings"):
        pair.run(read.read_rings)
    with pytest.raises(Unavailable, match="flow control"):
        pair.run(lambda: read.read_pause(pytest.fail))
    assert pair.run(read.read_links).speeds_mbps == {}
    assert not read.wants_refresh


def test_a_reader_gives_its_file_descriptors_back_and_can_go_on(pair: Namespace) -> None:
    transports = Transports.to_kernel()
    read = make_reader(transports)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        pair.run(read.refresh)
        assert len(pair.run(read.read_links).links) == 3
        transports.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_link_events_come_once_a_burst_and_not_after_stop(pair: Namespace) -> None:
    calls: list[float] = []
    changed = threading.Event()

    def on_change() -> None:
        calls.append(time.monotonic())
        changed.set()

    events = LinkEvents(on_change, settle_s=0.2)
    pair.run(events.start)
    try:
        for index in range(10):
            pair.ip("link", "add", f"burst{index}", "type", "bridge")
        assert changed.wait(5)
        time.sleep(0.5)
        assert 1 <= len(calls) < 10
    finally:
        begin = time.monotonic()
        events.stop()
    assert time.monotonic() - begin < 10
    seen = len(calls)
    pair.ip("link", "del", "burst0")
    time.sleep(0.4)
    assert len(calls) == seen


def test_link_events_survive_a_burst_that_overruns_the_socket(pair: Namespace) -> None:
    """While the listener is busy the kernel drops what does not fit: the next change is still told."""
    busy, release, calls = threading.Event(), threading.Event(), []

    def on_change() -> None:
        calls.append(1)
        busy.set()
        release.wait(10)

    events = LinkEvents(on_change, settle_s=0.0)
    pair.run(events.start)
    try:
        pair.ip("link", "set", "va", "mtu", "1300")
        assert busy.wait(5)
        batch = "\n".join(f"link set va mtu {1000 + step % 400}" for step in range(600))
        pair.batch(batch)
        release.set()
        deadline = time.monotonic() + 5
        while len(calls) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(calls) >= 2
        seen = len(calls)
        time.sleep(0.2)
        pair.ip("link", "set", "va", "mtu", "1500")
        deadline = time.monotonic() + 5
        while len(calls) <= seen and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(calls) > seen
    finally:
        release.set()
        events.stop()


def test_softnet_counts_the_frames_that_loopback_carries() -> None:
    unwrapper = SoftnetUnwrapper()
    before = sum(cpu.processed for cpu in unwrapper.unwrap(read_softnet(HOST)))
    with namespace() as ns:
        ns.run(lambda: send_frames("lo", 300, 100))
    after = sum(cpu.processed for cpu in unwrapper.unwrap(read_softnet(HOST)))
    assert after - before >= 300


@pytest.fixture
def stacked() -> Iterator[Namespace]:
    """A bridge over one veth end, a macvlan on the other; addresses as an OSD node has them."""
    with namespace() as ns:
        ns.batch(
            "link add va type veth peer name vb\n"
            "link add br0 type bridge\n"
            "link set vb master br0\n"
            "link add mv0 link va type macvlan mode bridge\n"
            "addr add 192.168.1.11/24 dev br0\n"
            "addr add 192.168.122.11/24 dev mv0\n"
        )
        for device in ("va", "vb", "br0", "mv0"):
            ns.ip("link", "set", device, "addrgenmode", "none", "up")
        yield ns


def test_relations_of_real_links(stacked: Namespace, read: NetworkReader) -> None:
    expected = {Relation("br0", "vb", "bridge"), Relation("mv0", "va", "macvlan")}
    assert set(stacked.run(read.read_relations)) == expected
    stacked.ip("link", "set", "vb", "nomaster")
    stacked.ip("link", "set", "mv0", "down")
    stacked.ip("link", "set", "mv0", "name", "renamed")
    assert set(stacked.run(read.read_relations)) == {Relation("renamed", "va", "macvlan")}
    assert not [each.name for each in stacked.run(links).values() if each.bond_info]
    with pytest.raises(Unavailable, match="no network links are bonded"):
        stacked.run(lambda: read.read_bonds(pytest.fail))


def test_a_macvlan_whose_port_is_in_another_namespace_stands_on_nothing_here(
    stacked: Namespace, read: NetworkReader
) -> None:
    with namespace() as other:
        stacked.ip("link", "set", "mv0", "netns", other.name)
        moved = other.run(links)["mv0"]
        assert (moved.kind, moved.lower_index) == ("macvlan", 0)
        assert other.run(read.read_relations) == ()


def test_roles_by_the_addresses_of_real_links(stacked: Namespace, tmp_path: Path) -> None:
    conf = tmp_path / "etc" / "ceph" / "ceph.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("[global]\npublic network = 192.168.1.0/24\ncluster network = 192.168.122.0/24\n")
    sock = NetlinkSocket(socket.NETLINK_ROUTE)
    route = Netlink(sock, source="live")
    try:
        roles = stacked.run(lambda: read_roles(Roots.under(tmp_path), route, configured={}))
    finally:
        sock.close()
    assert roles == (Role("br0", "ceph_public"), Role("mv0", "ceph_cluster"))


def test_roles_by_what_listens_where(stacked: Namespace, tmp_path: Path) -> None:
    """Sockets like an OSD's and a monitor's in the namespace; their table is the thread's own."""
    (tmp_path / "var" / "lib" / "ceph").mkdir(parents=True)
    sock = NetlinkSocket(socket.NETLINK_ROUTE)
    route = Netlink(sock, source="live")
    table = Path("/proc/thread-self/net/tcp")

    def listen_and_look() -> tuple[Role, ...]:
        with contextlib.ExitStack() as opened:
            for address, port in (("192.168.1.11", 6800), ("192.168.122.11", 6801), ("192.168.1.11", 3300)):
                each = opened.enter_context(socket.socket())
                each.bind((address, port))
                each.listen()
            net = tmp_path / "proc" / "net"
            net.mkdir(parents=True)
            (net / "tcp").write_text(table.read_text())
            return read_roles(Roots.under(tmp_path), route, configured={})

    try:
        roles = stacked.run(listen_and_look)
    finally:
        sock.close()
    assert roles == (Role("br0", "ceph_public"), Role("mv0", "ceph_cluster"))
