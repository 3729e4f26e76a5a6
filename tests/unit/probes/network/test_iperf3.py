"""The throughput probe with a runner that plays recorded reports."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.config.probes.network import IperfConfig
from plumbline.config.types import Duration, Endpoint, LocalAddress, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import Completed
from plumbline.errors import ProbeRefused
from plumbline.probes.network.iperf3 import IperfProbe
from plumbline.probes.network.peer import Peer
from plumbline.probes.run.model import Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.tool import IPERF3

FIXTURES = Path(__file__).parents[3] / "fixtures" / "iperf3"
VERSION = Completed(("iperf3",), 0, b"iperf 3.12 (cJSON 1.7.15)\nLinux \xff vm\n")
WORKLOAD = load_catalogue().by_id["tcp-throughput-s1"]


def says(name: str) -> Completed:
    return Completed(("iperf3",), 0, (FIXTURES / name).read_bytes())


class Runner:
    """Plays one answer a command, the last one for ever."""

    def __init__(self, *answers: Completed) -> None:
        self._answers, self.argvs = list(answers), []

    def run(self, argv: Sequence[str], *, timeout_s: float, **_more: object) -> Completed:
        self.argvs.append(tuple(argv))
        assert timeout_s > 0
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def probe(**more: object) -> IperfProbe:
    settings = {"name": "net", "targets": (Endpoint("10.0.0.2"),), "runtime": Duration(2.0)} | more
    config = IperfConfig(**settings)  # type: ignore[arg-type]
    return IperfProbe(
        config, WORKLOAD, Peer(config.targets[0], config.bind, "eth0", "10g"), replace(IPERF3, which=lambda _: "/x")
    )


def run(runner: Runner, made: IperfProbe | None = None, seen: list[Progress] | None = None) -> ProbeResult:
    stopping = threading.Event()
    progress = (lambda _each: None) if seen is None else seen.append
    return (made or probe()).run(Run(runner, lambda: 1e9, stopping, progress=progress))


def test_both_directions_one_after_the_other() -> None:
    runner, seen = Runner(VERSION, says("transmit-s1.json"), says("receive-s1.json")), []
    result = run(runner, seen=seen)
    assert result.outcome is Outcome.SUCCESS
    assert result.tool_version == "3.12"
    assert result.operations == (
        OperationResult(operation="transmit", throughput=191467142.1660543 / 8, retransmits=5466),
        OperationResult(operation="receive", throughput=95822746.9010656 / 8, retransmits=4084),
    )
    assert [("--reverse" in argv) for argv in runner.argvs[1:]] == [False, True]
    assert [each.done for each in seen] == [0, 0.5, 0.5, 1]
    assert seen[-1].figures == "receive 95.8 Mb/s"


def test_the_command_line() -> None:
    made = probe(runtime=Duration(5.0), bind=LocalAddress("fd00::1"), rate=Size(1_000_000))
    made = replace(made, workload=load_catalogue().by_id["tcp-throughput-s4"])
    assert " ".join(made.argv(ipaddress.ip_address("fd00::2"), "receive")) == (
        "iperf3 --client fd00::2 --port 10048 --json --time 5 --parallel 4 --connect-timeout 3000"
        " --bind fd00::1 --bitrate 2000000 --reverse"
    )


def test_the_default_port_and_the_cap() -> None:
    runner = Runner(VERSION, says("transmit-s1.json"))
    made = probe(rate=Size(2000), bind=LocalAddress("10.0.0.1"))
    run(runner, made)
    assert "--port 10048" in " ".join(runner.argvs[1])
    assert made.identity.config_hash == WORKLOAD.config_hash(rate_iops=2000) != WORKLOAD.config_hash()
    assert (made.identity.target, made.identity.probe, made.identity.device) == ("10.0.0.2", "net/10.0.0.2", "eth0")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "refused.json",
            "transmit: 10.0.0.2 port 10048: unable to connect to server: Connection refused;"
            " does plumbline-iperf3.service run there?",
        ),
        ("unreachable.json", "transmit: 10.0.0.2 port 10048: unable to connect to server: Connection timed out"),
        ("gone.json", "transmit: 10.0.0.2 port 10048: control socket has closed unexpectedly"),
        ("server-terminated.json", "transmit: 10.0.0.2 port 10048: the server has terminated"),
        ("transmit-s4.json", "transmit: 4 of 1 streams, nothing arrived"),
    ],
)
def test_what_goes_wrong_is_said(name: str, message: str) -> None:
    result = run(Runner(VERSION, says(name)))
    assert (result.outcome, result.operations, result.message) == (Outcome.FAILURE, (), message)


def test_a_server_that_serves_another_is_a_skip() -> None:
    with pytest.raises(ProbeRefused, match="serves another client") as refused:
        run(Runner(VERSION, says("busy.json")))
    assert refused.value.reason == "peer-busy"


def test_a_server_that_starts_anew_between_the_directions_is_waited_for() -> None:
    runner = Runner(VERSION, says("transmit-s1.json"), says("refused.json"), says("receive-s1.json"))
    assert run(runner).outcome is Outcome.SUCCESS
    assert len(runner.argvs) == 4


def test_it_hangs() -> None:
    result = run(Runner(VERSION, Completed((), -9, timed_out=True)))
    assert result.outcome is Outcome.TIMEOUT
    assert "transmit: iperf3 did not end within 10 s" in result.message


def test_it_is_stopped() -> None:
    with pytest.raises(ProbeRefused) as refused:
        run(Runner(VERSION, Completed((), None, cancelled=True)))
    assert refused.value.reason == "stopped"


def test_it_floods() -> None:
    result = run(Runner(VERSION, Completed((), -15, b"\0" * 5000, truncated=True)))
    assert (result.outcome, result.message) == (
        Outcome.FAILURE,
        "transmit: iperf3 wrote too much output and was stopped",
    )


def test_words_instead_of_a_report() -> None:
    result = run(Runner(VERSION, Completed((), 1, b"", b"iperf3: unrecognized option '--x'\nUsage")))
    assert result.message == "transmit: iperf3: unrecognized option '--x'"


def test_no_iperf3() -> None:
    made = IperfProbe(probe().config, WORKLOAD, probe().peer, replace(IPERF3, which=lambda _: None))
    with pytest.raises(ProbeRefused, match="install the package iperf3") as refused:
        run(Runner(VERSION), made)
    assert refused.value.reason == "tool-missing"


def test_a_name_that_nobody_knows() -> None:
    config = probe(targets=(Endpoint("no-such-host.invalid"),)).config
    made = IperfProbe(
        config, WORKLOAD, Peer(config.targets[0], None, "", "unknown"), replace(IPERF3, which=lambda _: "/x")
    )
    with pytest.raises(ProbeRefused, match=r"no-such-host\.invalid: the name can't be resolved") as refused:
        run(Runner(VERSION), made)
    assert refused.value.reason == "unresolved"
