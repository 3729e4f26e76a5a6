"""TCP, squeezes and interrupts against the running kernel: losses that are made, then seen."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.core.roots import Roots
from plumbline.sources.kernel.interrupts import parse_interrupts, read_interrupts
from plumbline.sources.kernel.squeeze import SqueezeReader, Squeezes
from plumbline.sources.kernel.tcp import TcpReading, read_tcp
from plumbline.sources.net.nic_interrupts import read_nic_interrupts
from support.losses import flood, receive_slowly, setting
from support.netns import Namespace, namespace

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2"),
]
HOST = Roots.under(Path("/"))
# /proc/net is the process' namespace; a thread that has entered another finds its own here
THREAD = replace(HOST, proc=Path("/proc/thread-self"))


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


def overflow_a_listener() -> TcpReading:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        return read_tcp(THREAD)


def test_a_full_accept_queue(ns: Namespace) -> None:
    assert ns.run(lambda: read_tcp(THREAD)).listen_overflows == 0
    reading = ns.run(overflow_a_listener)
    assert reading.listen_overflows == reading.listen_drops == 3
    assert (reading.segments_received or 0) > 0


def ask_nobody() -> TcpReading:
    with socket.socket() as client:
        client.setblocking(False)
        client.connect_ex(("192.0.2.2", 9))
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            reading = read_tcp(THREAD)
            if reading.segments_retransmitted:
                return reading
            time.sleep(0.05)
    raise AssertionError("nothing was sent again within 5 s")


def test_segments_that_nobody_answers_are_sent_again(ns: Namespace) -> None:
    ns.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
    ns.ip("address", "add", "192.0.2.1/24", "dev", "va")
    for device in ("va", "vb"):
        ns.ip("link", "set", device, "up")
    ns.ip("neighbour", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:99", "dev", "va")
    reading = ns.run(ask_nobody)
    assert (reading.segments_retransmitted, reading.syn_retransmissions, reading.retransmission_timeouts) == (1, 1, 1)


def total(reader: SqueezeReader) -> Squeezes:
    counts = reader.latest.values()
    return Squeezes(sum(each.budget for each in counts), sum(each.time for each in counts))


@pytest.fixture
def reader() -> SqueezeReader:
    return SqueezeReader(roots=HOST, ticks_per_s=os.sysconf("SC_CLK_TCK"))


def test_a_budget_of_one_squeezes_by_budget(ns: Namespace, reader: SqueezeReader) -> None:
    with setting("net/core/netdev_budget", "1"):
        reader.refresh()
        ns.run(flood)
        reader.refresh()
    assert total(reader).budget > 50
    assert total(reader).time == 0


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="needs ethtool")
def test_packets_that_take_long_squeeze_by_time(ns: Namespace, reader: SqueezeReader) -> None:
    reader.refresh()
    ns.run(receive_slowly)
    reader.refresh()
    assert total(reader).time >= 5
    assert total(reader).budget == 0


def test_both_sources_count_the_same_interrupts_of_the_same_ports() -> None:
    ports = read_nic_interrupts(HOST, keep=lambda _: True)
    if not ports:
        pytest.skip("no port of this host has interrupts of its own")
    irqs = {irq for port in ports for irq in port.irqs}
    each = read_interrupts(HOST, irqs)
    cpus, listed = parse_interrupts((HOST.proc / "interrupts").read_bytes(), source="live", irqs=irqs)
    later = read_interrupts(HOST, irqs)
    assert each.counts.keys() == irqs
    for irq, counts in listed.items():
        shown = dict(zip(cpus, counts, strict=True))
        for cpu, low, high in zip(each.cpus, each.counts[irq], later.counts[irq], strict=True):
            assert low <= shown.get(cpu, low) <= high
