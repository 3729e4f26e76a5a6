"""The server for other nodes' probes where something else answers to the name of iperf3. What it does with the real
one, and for whom, is in tests/integration/test_network_probes.py."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.probes.network.iperf3_server import IperfServer, ServerPlan
from support.daemon import eventually

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
Start = Callable[..., IperfServer]


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Start:
    def start(body: str, listens_within_s: float = 30.0) -> IperfServer:
        program = tmp_path / "iperf3"
        program.write_text(f"#!/bin/sh\necho $$ >>{tmp_path}/pids\n{body}\n")
        program.chmod(0o755)
        made = IperfServer(
            ServerPlan("127.0.0.1", 10048, (LOOPBACK,)),
            os.environ,
            networks=lambda _: (LOOPBACK,),
            which=lambda _: str(program),
            listens_within_s=listens_within_s,
        )
        request.addfinalizer(lambda: made.stop(10))
        made.start()
        return made

    return start


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exec cat /dev/zero", "iperf3 wrote too much output and was stopped"),
        ("exec yes", "iperf3 wrote too much output and was stopped"),
        ("exit 137", "iperf3 ended without a message"),
        ("kill -9 $$", "iperf3 ended without a message"),
        ("head -c 5000 /dev/urandom", "iperf3 ended without a message"),
        ("echo iperf3: error - unable to start listener", "unable to start listener"),
    ],
)
def test_what_is_no_server_is_said_and_ended(server: Start, tmp_path: Path, body: str, why: str) -> None:
    made = server(body)

    eventually(lambda: made.trouble)
    assert (made.trouble, made.up, made.why_down) == (why, False, f"127.0.0.1:10048: {why}")
    assert made.stop(10)
    for pid in (tmp_path / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("body", ["exec sleep 86124", "trap '' TERM; while :; do sleep 0.1; done"])
def test_what_hangs_is_said_and_ended(server: Start, tmp_path: Path, body: str) -> None:
    made = server(body, 2)

    eventually(lambda: made.trouble)
    assert (made.trouble, made.up) == ("iperf3 does not listen within 2 s", False)
    assert made.stop(10)
    for pid in (tmp_path / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists()


def test_one_that_listens_is_up_for_as_long_as_it_likes(server: Start) -> None:
    made = server("echo Server listening on 10048; exec sleep 86124", 2)

    eventually(lambda: made.up)
    with pytest.raises(AssertionError):
        eventually(lambda: not made.up, within_s=3)
    assert (made.trouble, made.why_down) == ("", "")
