"""Which port leads to a peer; names; the busy port's gate; what a configuration may say."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest

from plumbline.config.model import parse
from plumbline.config.types import Endpoint, LocalAddress
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.errors import ConfigError, ParseError, PlumblineError, ProbeRefused, Unavailable
from plumbline.probes.run import schedule
from plumbline.probes.run.gates import check_nic_busy
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import Host
from plumbline.sources.net import routes
from plumbline.sources.net.links import IFF_LOOPBACK, Link
from plumbline.sources.net.netlink import Message, attribute
from plumbline.sources.net.routes import Way, parse_route, read_speed_mbps, resolve, route_request, speed_word

CATALOGUE = load_catalogue()


def link(kind: str = "", flags: int = 1, parent: str = "") -> Link:
    return Link(2, "eth0", b"eth0", kind, flags, 9000, 6, True, 1, 0, "", parent, "", None)


def reply(*attributes: bytes) -> Message:
    data = bytes(12) + b"".join(attributes)
    return Message(24, 0, 1, data, 0, len(data))


def test_the_kernel_is_asked_for_one_address_and_says_the_device() -> None:
    to, source = ipaddress.ip_address("10.0.0.2"), ipaddress.ip_address("10.0.0.1")
    request = route_request(to, source)
    assert request[:3] == bytes([socket.AF_INET, 32, 32])
    assert request[12:] == attribute(1, to.packed) + attribute(2, source.packed)
    assert route_request(ipaddress.ip_address("fd00::2"), None)[:3] == bytes([socket.AF_INET6, 128, 0])
    assert parse_route(reply(attribute(1, to.packed), attribute(4, struct.pack("=I", 7)))) == 7
    for broken in (reply(), Message(24, 0, 1, b"x", 0, 1), reply(attribute(4, b"x"))):
        with pytest.raises(ParseError):
            parse_route(broken)


@pytest.mark.parametrize(
    ("kind", "text", "speed"),
    [
        ("", "10000\n", 10000),
        ("bond", "20000\n", 20000),
        ("veth", "10000\n", None),
        ("", "-1\n", None),
        ("", None, None),
    ],
)
def test_the_speed_of_what_has_one(tmp_path: Path, kind: str, text: str | None, speed: int | None) -> None:
    directory = tmp_path / "sys" / "class" / "net" / "eth0"
    directory.mkdir(parents=True)
    if text is not None:
        (directory / "speed").write_text(text)
    assert read_speed_mbps(link(kind), Roots.under(tmp_path)) == speed
    assert read_speed_mbps(link(flags=IFF_LOOPBACK), Roots.under(tmp_path)) is None


@pytest.mark.parametrize(
    ("mbps", "word"), [(10, "10m"), (100, "100m"), (1000, "1g"), (2500, "2.5g"), (25000, "25g"), (400000, "400g")]
)
def test_a_speed_is_a_device_class(mbps: int, word: str) -> None:
    assert speed_word(mbps) == word


def test_an_address_is_its_own_answer_and_a_dead_name_server_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(resolve("fd00::0002")) == "fd00::2"
    with pytest.raises(Unavailable, match="not an IPv6 address"):
        resolve("10.0.0.2", version=6)
    assert resolve("localhost", version=4).is_loopback
    ended = threading.Event()

    def silent(*_: object) -> NoReturn:
        ended.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(routes.socket, "getaddrinfo", silent)
    try:
        with pytest.raises(Unavailable, match=r"stor02: the name can't be resolved: no answer within 0\.1 s"):
            resolve("stor02", within_s=0.1)
    finally:
        ended.set()


# --- the gate


def refusal(*readings: tuple[int, int, float]) -> ProbeRefused | None:
    try:
        check_nic_busy(iter(readings).__next__, device="eth0", speed_mbps=10000, limit=0.5, wait=lambda _s: None)
    except ProbeRefused as refused:
        return refused
    return None


def test_a_port_that_is_busy_in_either_direction() -> None:
    half = int(10e9 / 8 * 2 * 0.5)
    assert refusal((0, 0, 1.0), (half, half, 3.0)) is None
    for moved in ((half + 10**7, 0), (0, half + 10**7)):
        refused = refusal((0, 0, 1.0), (*moved, 3.0))
        assert refused is not None
        assert refused.reason == "nic-busy"
        assert "eth0 carried 50% of its 10 Gb/s in the last 2.0 s" in str(refused)


@pytest.mark.parametrize("after", [(-1, 0, 3.0), (0, -1, 3.0), (0, 0, 1.0)])
def test_counters_that_went_backwards(after: tuple[int, int, float]) -> None:
    refused = refusal((0, 0, 1.0), after)
    assert refused is not None
    assert refused.reason == "nic-busy"


def test_a_port_that_is_gone() -> None:
    def read() -> tuple[int, int, float]:
        raise PlumblineError("eth0: no longer a network device of this host")

    with pytest.raises(ProbeRefused, match="no longer a network device") as refused:
        check_nic_busy(read, device="eth0", speed_mbps=10000, limit=0.5, wait=lambda _s: None)
    assert refused.value.reason == "nic-busy"


# --- configuration


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("stor02", "stor02", None),
        ("stor02.example.org:10048", "stor02.example.org", 10048),
        ("10.0.0.12", "10.0.0.12", None),
        ("10.0.0.12:1", "10.0.0.12", 1),
        ("[fd00::12]:10048", "fd00::12", 10048),
        ("[fd00::12]", "fd00::12", None),
        ("fd00::12", "fd00::12", None),
    ],
)
def test_targets(text: str, host: str, port: int | None) -> None:
    target = Endpoint.parse(text)
    assert (target.host, target.port, str(target)) == (host, port, text)


@pytest.mark.parametrize(
    "text",
    ["", "-o", "stor02:", "stor02:0", "stor02:65536", "10.0.0.300", "a b", "fd00::12::1", "[stor02]:1", "x/y", 7],
)
def test_what_is_no_target(text: object) -> None:
    with pytest.raises(ValueError, match="expected a host"):
        Endpoint.parse(text)


def test_local_addresses() -> None:
    assert LocalAddress.parse("fd00::0:1") == "fd00::1"
    for wrong in ("eth0", "", 7):
        with pytest.raises(ValueError, match="expected an IP address of this host"):
            LocalAddress.parse(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{type: rtt, targets: []}", "give at least one target, and none twice"),
        ("{type: rtt, targets: [a, a]}", "give at least one target, and none twice"),
        ("{type: rtt, targets: ['a:1']}", "this probe uses no port"),
        ("{type: path-mtu, targets: ['a:1']}", "this probe uses no port"),
        ("{type: rtt, workload: tcp-rtt, targets: [a]}", "a TCP handshake needs host:port"),
        ("{type: rtt, targets: ['a b']}", "expected a host such as"),
        ("{type: rtt, targets: [a], bind: eth0}", "expected an IP address of this host"),
        ("{type: rtt, targets: [a], packets: 10000}", "packets × gap takes longer than the timeout"),
        ("{type: rtt, targets: [a], workload: path-mtu}", "not for this type of probe"),
        ("{type: iperf3, targets: [a], runtime: 1500ms}", "whole seconds, at least 1"),
        ("{type: iperf3, targets: [a], runtime: 30s}", "both directions take up to 66 s"),
        ("{type: iperf3, targets: [a], rate: 1}", "at least 1KiB a second"),
    ],
)
def test_network_probes_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(f"probes: [{{name: n, {text[1:]}]", where="x.yaml")


@pytest.mark.parametrize(
    ("kind", "speed", "moved", "closed"),
    [
        ("iperf3", 10000, 10**10, True),
        ("iperf3", 10000, 10**6, False),
        ("iperf3", None, 10**10, False),  # a virtual port: nobody can say how much of it is left
        ("rtt", 10000, 10**10, False),  # a hundred small packets disturb nobody, and a busy port is worth knowing
    ],
)
def test_a_heavy_probe_waits_for_a_quiet_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, speed: int | None, moved: int, closed: bool
) -> None:
    config = parse(f"probes: [{{name: n, type: {kind}, targets: [10.0.0.2]}}]", where="x")
    host = Host(
        storage=tmp_path, roots=Roots.under(tmp_path), catalogue=CATALOGUE, ceph=config.ceph, environment={},
        disk_below=lambda _path: None, disks=tuple, osd_disks=dict, way_to=lambda *_: Way("eth0", 9000, speed),
    )  # fmt: skip
    [probe] = plan_probe(config.probes[0], host).periodic
    assert probe.identity.device_class == (speed_word(speed) if speed else "unknown")
    readings = iter([(0, 0, 1.0), (moved, 0, 2.0)])
    monkeypatch.setattr(schedule, "read_device_speed_mbps", lambda *_: speed)
    monkeypatch.setattr(schedule, "nic_bytes", lambda _device: next(readings))
    _load, *gates = schedule.gates_of(
        probe, roots=Roots.under(tmp_path), rules=config.gates, cluster=None, clock=time.time, wait=lambda _s: None
    ).before
    with pytest.raises(ProbeRefused, match="eth0 carried") if closed else contextlib.nullcontext():
        for gate in gates:
            gate()
