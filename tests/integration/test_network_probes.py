"""The network's probes over real links: namespaces, a switch that is too small, a router, a slow and lossy wire."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.model import Config
from plumbline.config.probes import ProbeConfig
from plumbline.config.probes.network import IperfConfig, PathMtuConfig, RttConfig
from plumbline.config.types import Duration, Endpoint, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import ProbeRefused
from plumbline.probes.run.model import PeriodicProbe, Run
from plumbline.probes.run.plan import make_plan
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from support.iperf3 import iperf3_server
from support.netns import Namespace, namespace
from support.programs import need
from support.wire import DEVICE, wire

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2"),
]
HOST = Roots.under(Path("/"))
ENVIRONMENT = {"PATH": os.environ["PATH"]}
CATALOGUE = load_catalogue()
PEER = "10.77.0.2"
PORT = 10048
NOBODY, EVERYBODY = "1 0", "0 2147483647"
"""Groups that may open ping sockets (``net.ipv4.ping_group_range``); where none may, root has its raw ones."""


def plan(config: ProbeConfig, ns: Namespace, tmp_path: Path) -> list[PeriodicProbe]:
    """The probes that ``config`` means in ``ns``."""
    made = ns.run(lambda: make_plan(Config(probes=(config,)), storage=tmp_path, roots=HOST, environment=ENVIRONMENT))
    return list(made.periodic)


def run(config: ProbeConfig, ns: Namespace, tmp_path: Path, stopping: threading.Event | None = None) -> ProbeResult:
    """One run of the one probe that ``config`` means, in ``ns``."""
    [probe] = plan(config, ns, tmp_path)
    stop = stopping or threading.Event()
    runner = ProcessRunner(ENVIRONMENT).within(stop)
    return ns.run(lambda: probe.run(Run(runner=runner, clock=time.time, stopping=stop)))


def only(result: ProbeResult) -> OperationResult:
    assert result.outcome is Outcome.SUCCESS, result.message
    [operation] = result.operations
    return operation


def rtt(**more: Any) -> RttConfig:
    return RttConfig(**({"name": "rtt", "targets": (Endpoint(PEER),), "gap": Duration(0.005)} | more))


def path_mtu(target: str = PEER, **more: Any) -> PathMtuConfig:
    return PathMtuConfig(name="mtu", targets=(Endpoint(target),), **more)


def iperf(**more: Any) -> IperfConfig:
    return IperfConfig(**({"name": "net", "targets": (Endpoint(f"{PEER}:{PORT}"),), "runtime": Duration(2.0)} | more))


@pytest.fixture
def joined() -> Iterator[tuple[Namespace, Namespace]]:
    """Two nodes on one cable of MTU 9000."""
    with namespace() as one, namespace() as other:
        one.ip(
            "link",
            "add",
            "eth0",
            "mtu",
            "9000",
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "mtu",
            "9000",
            "netns",
            other.name,
        )
        for ns, number in ((one, 1), (other, 2)):
            ns.ip("addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            ns.ip("addr", "add", f"fd77::{number}/64", "dev", "eth0", "nodad")
            ns.ip("link", "set", "eth0", "up")
        yield one, other


@pytest.fixture
def switched() -> Iterator[tuple[Namespace, Namespace, Namespace]]:
    """Two nodes with an MTU of 9000 on a switch: ports ``p1`` and ``p2`` of a bridge, 9000 as well."""
    with namespace() as one, namespace() as other, namespace() as switch:
        switch.ip("link", "add", "br0", "type", "bridge")
        for number, ns in enumerate((one, other), start=1):
            port = f"p{number}"
            switch.ip(
                "link",
                "add",
                port,
                "mtu",
                "9000",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "mtu",
                "9000",
                "netns",
                ns.name,
            )
            switch.ip("link", "set", port, "master", "br0", "up")
            ns.ip("addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            ns.ip("addr", "add", f"fd77::{number}/64", "dev", "eth0", "nodad")
            ns.ip("link", "set", "eth0", "up")
        switch.ip("link", "set", "br0", "up")
        yield one, other, switch


# --- path MTU


@pytest.mark.parametrize("peer", [PEER, "fd77::2"])
def test_a_path_that_carries_what_the_port_does(joined: tuple[Namespace, Namespace], tmp_path: Path, peer: str) -> None:
    result = run(path_mtu(peer), joined[0], tmp_path)
    assert (only(result).mtu_bytes, result.message) == (9000, "")


@pytest.mark.parametrize("peer", [PEER, "fd77::2"])
@pytest.mark.parametrize(("small", "groups"), [(1500, NOBODY), (1500, EVERYBODY), (4074, EVERYBODY)])
def test_the_one_switch_port_without_jumbo_frames_is_found(
    switched: tuple[Namespace, Namespace, Namespace], tmp_path: Path, peer: str, small: int, groups: str
) -> None:
    """By a raw socket, and by a ping socket that needs no privilege."""
    one, _, switch = switched
    _who_may_ping(one, groups)
    assert only(run(path_mtu(peer), one, tmp_path)).mtu_bytes == 9000
    switch.ip("link", "set", "p2", "mtu", str(small))
    result = run(path_mtu(peer), one, tmp_path)
    assert only(result).mtu_bytes == small
    assert result.message == (
        f"eth0 has an MTU of 9000, the path carries {small}: no router reports it: a switch drops larger packets"
    )
    switch.ip("link", "set", "p2", "mtu", "9000")
    assert only(run(path_mtu(peer), one, tmp_path)).mtu_bytes == 9000, "nothing is remembered"


@pytest.mark.parametrize("groups", [NOBODY, EVERYBODY])
def test_a_router_says_what_it_can_carry(tmp_path: Path, groups: str) -> None:
    with namespace() as one, namespace() as other, namespace() as router:
        _who_may_ping(one, groups)
        for ns, number, mtu in ((one, 1, "9000"), (other, 2, "1400")):
            router.ip(
                "link",
                "add",
                f"r{number}",
                "mtu",
                mtu,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "mtu",
                mtu,
                "netns",
                ns.name,
            )
            router.ip("addr", "add", f"10.78.{number}.254/24", "dev", f"r{number}")
            router.ip("link", "set", f"r{number}", "up")
            ns.ip("addr", "add", f"10.78.{number}.1/24", "dev", "eth0")
            ns.ip("link", "set", "eth0", "up")
            ns.ip("route", "add", "default", "via", f"10.78.{number}.254")
        router.run(lambda: Path("/proc/sys/net/ipv4/ip_forward").write_text("1"))
        result = run(path_mtu("10.78.2.1"), one, tmp_path)
        assert only(result).mtu_bytes == 1400
        assert "reported by 10.78.1.254" in result.message
        router.ip("link", "set", "r2", "mtu", "9000")
        other.ip("link", "set", "eth0", "mtu", "9000")
        assert only(run(path_mtu("10.78.2.1"), one, tmp_path)).mtu_bytes == 9000, "past what the kernel remembers"


def test_nobody_answers(joined: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    for config in (path_mtu("10.77.0.9"), rtt(targets=(Endpoint("10.77.0.9"),))):
        result = run(config, joined[0], tmp_path)
        assert result.outcome is Outcome.FAILURE
        assert "10.77.0.9: no answer to" in result.message


# --- round trips


@pytest.mark.parametrize("peer", [PEER, "fd77::2"])
@pytest.mark.parametrize("groups", [NOBODY, EVERYBODY])
def test_round_trips_of_a_cable(joined: tuple[Namespace, Namespace], tmp_path: Path, peer: str, groups: str) -> None:
    _who_may_ping(joined[0], groups)
    result = run(rtt(targets=(Endpoint(peer),)), joined[0], tmp_path)
    figures = only(result)
    assert set(figures.latency) == {"mean", "p50", "p95", "p99", "max"}
    assert 0 < figures.latency["p50"] <= figures.latency["p95"] <= figures.latency["p99"] <= figures.latency["max"]
    assert figures.loss_ratio == 0
    assert result.probe == f"rtt/{peer}"


def test_round_trips_of_a_slow_wire_are_its_delay(tmp_path: Path) -> None:
    with namespace() as one, namespace() as other, wire(one, other, delay_s=0.02):
        _addresses(one, other)
        for config in (rtt(packets=20), rtt(packets=20, workload="tcp-rtt", targets=(Endpoint(f"{PEER}:9"),))):
            with _listening(other, 9):
                figures = only(run(config, one, tmp_path))
            assert 0.040 <= figures.latency["p50"] < 0.060
            assert figures.loss_ratio == 0


def test_every_fourth_packet_is_lost(tmp_path: Path) -> None:
    seen = 0

    def carries(packet: bytes) -> bool:
        nonlocal seen
        if packet[0] >> 4 == 4 and packet[20] == 8:  # echo requests
            seen += 1
            return seen % 4 != 0
        return packet[0] >> 4 == 4

    with namespace() as one, namespace() as other, wire(one, other, carries=carries):
        _addresses(one, other)
        figures = only(run(rtt(packets=20), one, tmp_path))
    assert figures.loss_ratio == pytest.approx(0.25)
    assert figures.latency["max"] < 1


def test_a_port_that_refuses_is_no_round_trip(joined: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    config = rtt(workload="tcp-rtt", targets=(Endpoint(f"{PEER}:9"),))
    result = run(config, joined[0], tmp_path)
    assert (result.outcome, result.message) == (
        Outcome.FAILURE,
        f"{PEER}:9: no answer to 10 packets; Connection refused",
    )


def test_a_run_that_is_stopped_ends_at_once(joined: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    for config in (rtt(packets=10_000), path_mtu("10.77.0.9"), iperf(runtime=Duration(20.0))):
        stopping = threading.Event()
        with _server(joined[1]) if isinstance(config, IperfConfig) else contextlib.nullcontext():
            threading.Timer(1.0, stopping.set).start()
            began = time.monotonic()
            with pytest.raises(ProbeRefused) as refused:
                run(config, joined[0], tmp_path, stopping)
        assert refused.value.reason == "stopped"
        assert time.monotonic() - began < 12


def test_a_user_without_any_right_is_told_what_to_do(joined: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    """In a process of its own, because a user is a property of the whole process here."""
    script = (
        "import os, threading, ipaddress, sys\n"
        "from plumbline.probes.network.echo import EchoSocket\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "with EchoSocket(ipaddress.ip_address('10.77.0.2'), stopping=threading.Event()) as echo:\n"
        "    print(echo.exchange(56, 5.0))\n"
    )
    import sys

    def ask() -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment
        )

    _who_may_ping(joined[0], NOBODY)
    denied = joined[0].run(ask)
    assert "user 65534 may not send ICMP echoes: allow it with sysctl" in denied.stderr
    _who_may_ping(joined[0], EVERYBODY)
    answered = joined[0].run(ask)
    assert answered.stdout.startswith("Answer(seconds="), answered.stderr


# --- throughput


def test_throughput_of_a_limited_link_in_both_directions(joined: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    need("iperf3")
    one, other = joined
    _limit(one, "100mbit")
    _limit(other, "50mbit")
    with _server(other):
        result = run(iperf(runtime=Duration(4.0)), one, tmp_path)
    assert result.outcome is Outcome.SUCCESS, result.message
    transmit, receive = result.operations
    # what tbf lets through is frames; what arrives is their payload
    payload = (9000 - 52) / (9000 + 14)
    # not more than that and its burst; less where the machine is late for more than the burst bridges
    for operation, rate in ((transmit, 100e6), (receive, 50e6)):
        assert operation.throughput is not None
        assert 0.85 < operation.throughput / (rate / 8 * payload) < 1.08
    assert transmit.retransmits is not None
    assert receive.retransmits is not None


def test_several_streams_are_summed_and_a_cap_holds_for_all_of_them(
    joined: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    need("iperf3")
    one, other = joined
    rate = Size(4 * 2**20)
    with _server(other):
        result = run(iperf(workload="tcp-throughput-s4", rate=rate, runtime=Duration(3.0)), one, tmp_path)
    assert result.outcome is Outcome.SUCCESS, result.message
    for operation in result.operations:
        assert operation.throughput == pytest.approx(rate, rel=0.1)
    assert result.config_hash != CATALOGUE.by_id["tcp-throughput-s4"].config_hash()


def test_a_busy_server_and_one_that_is_not_there(joined: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    program = need("iperf3")
    one, other = joined
    result = run(iperf(), one, tmp_path)
    assert result.outcome is Outcome.FAILURE
    assert "Connection refused; does plumbline-iperf3.service run there?" in result.message
    with _server(other):
        argv = ["ip", "netns", "exec", one.name, program, "-c", PEER, "-p", str(PORT), "-t", "30"]
        first = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(2)
            with pytest.raises(ProbeRefused) as refused:
                run(iperf(), one, tmp_path)
        finally:
            first.terminate()
            first.wait()
    assert refused.value.reason == "peer-busy"


def test_a_server_that_dies_under_way_fails_the_run(joined: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    program = need("iperf3")
    one, other = joined
    argv = ["ip", "netns", "exec", other.name, program, "-s", "-B", PEER, "-p", str(PORT)]
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(lambda: _answers(one, PORT), 10)
        threading.Timer(2.0, lambda: os.kill(server.pid, signal.SIGKILL)).start()
        result = run(iperf(runtime=Duration(8.0)), one, tmp_path)
    finally:
        server.kill()
        server.wait()
    assert result.outcome is Outcome.FAILURE
    assert result.message.startswith("transmit: ")


def test_the_port_towards_a_peer_is_the_one_that_routing_takes(
    joined: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """A veth has no speed that means anything, so the class is unknown unless the site says one."""
    [probe] = plan(rtt(), joined[0], tmp_path)
    assert (probe.identity.device, probe.identity.device_class) == ("eth0", "unknown")
    [probe] = plan(rtt(device_class="10g"), joined[0], tmp_path)
    assert probe.identity.device_class == "10g"
    [probe] = plan(rtt(targets=(Endpoint("10.77.0.1"),)), joined[0], tmp_path)
    assert probe.identity.device == "lo"
    [probe] = plan(rtt(targets=(Endpoint("192.0.2.1"),)), joined[0], tmp_path)
    assert probe.identity.device == ""


# --- helpers


def _addresses(one: Namespace, other: Namespace) -> None:
    for ns, number in ((one, 1), (other, 2)):
        ns.ip("addr", "add", f"10.77.0.{number}/24", "dev", DEVICE)
        ns.ip("link", "set", DEVICE, "up")


def _who_may_ping(ns: Namespace, groups: str) -> None:
    ns.run(lambda: Path("/proc/sys/net/ipv4/ping_group_range").write_text(groups))


def _limit(ns: Namespace, rate: str) -> None:
    argv = [
        "tc",
        "-n",
        ns.name,
        "qdisc",
        "add",
        "dev",
        "eth0",
        "root",
        "tbf",
        "rate",
        rate,
        "burst",
        "400kb",
        "latency",
        "20ms",
    ]
    subprocess.run(argv, check=True, capture_output=True)
    # segments as big as frames, as on a wire
    subprocess.run(
        ["ip", "netns", "exec", ns.name, "ethtool", "-K", "eth0", "tso", "off", "gso", "off"],
        check=True,
        capture_output=True,
    )


def _server(ns: Namespace) -> contextlib.AbstractContextManager[int]:
    return iperf3_server(PEER, PORT, ("ip", "netns", "exec", ns.name))


@contextlib.contextmanager
def _listening(ns: Namespace, port: int) -> Iterator[None]:
    def listen() -> socket.socket:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((PEER, port))
        sock.listen(100)
        return sock

    with ns.run(listen):
        yield


def _answers(ns: Namespace, port: int) -> bool:
    def connect() -> bool:
        with socket.socket() as sock:
            return sock.connect_ex((PEER, port)) == 0

    return ns.run(connect)


def _await(holds: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
