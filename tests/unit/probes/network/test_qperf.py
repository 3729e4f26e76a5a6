"""The probe by qperf with a runner that plays recorded outputs, and against a real server."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.config.probes.network import QperfConfig
from plumbline.config.types import Duration, Endpoint, FieldError, LocalAddress
from plumbline.config.workloads import Messages, load_catalogue
from plumbline.core.process import Completed, ProcessRunner, Runner
from plumbline.errors import ParseError
from plumbline.probes.network.peer import Peer
from plumbline.probes.network.qperf import QperfProbe, parse_output
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.tool import QPERF
from support.daemon import eventually
from support.ports import free_port
from support.programs import need

FIXTURES = Path(__file__).parents[3] / "fixtures" / "qperf"
CATALOGUE = load_catalogue()


class Played:
    """Answers each command but the one for the version with the same bytes."""

    def __init__(self, name: str) -> None:
        self._answer, self.argv = (FIXTURES / name).read_bytes(), ()

    def run(self, argv: Sequence[str], **_more: object) -> Completed:
        if argv[1:] == ("--version",):
            return Completed(tuple(argv), 0, b"qperf 0.4.11\n")
        self.argv = tuple(argv)
        return Completed(tuple(argv), 0, self._answer)


def probe(workload: str, where: str = "10.0.0.2") -> QperfProbe:
    target = Endpoint(where)
    config = QperfConfig(name="net", targets=(target,), workload=workload, runtime=Duration(1.0))
    chosen = CATALOGUE.by_id[workload]
    assert isinstance(chosen, Messages)
    return QperfProbe(config, chosen, Peer(target, None, "ib0", "56g"), replace(QPERF, which=lambda _: "/x"))


def run(runner: Runner, made: QperfProbe) -> ProbeResult:
    return made.run(Run(runner, lambda: 1e9, threading.Event()))


def test_a_latency_by_tcp() -> None:
    runner = Played("tcp_lat.txt")
    result = run(runner, probe("tcp-lat-64"))
    assert (result.outcome, result.tool, result.tool_version) == (Outcome.SUCCESS, "qperf", "0.4.11")
    (operation,) = result.operations
    assert operation == OperationResult(operation="one-way", latency={"mean": pytest.approx(28.1136e-6)})
    assert runner.argv == (*("qperf", "-uu", "-e", "6", "-lp", "19765", "-t", "1", "-m", "64", "10.0.0.2", "tcp_lat"),)


def test_rdma_goes_by_the_connection_manager() -> None:
    runner = Played("rc_rdma_write_bw.txt")
    result = run(runner, probe("rdma-write-bw-64k", "10.0.0.2:7"))
    assert result.operations == (OperationResult(operation="transmit", throughput=316406.0),)
    assert runner.argv[5:] == ("7", "-t", "1", "-m", "65536", "-cm1", "10.0.0.2", "rc_rdma_write_bw")


def test_what_went_wrong() -> None:
    for name, message in (
        ("refused.txt", "127.0.0.1: failed to connect; does qperf run there, at port 19765?"),
        ("no-device.txt", "rdma_create_event_channel failed"),
    ):
        result = run(Played(name), probe("rdma-write-lat-64"))
        assert (result.outcome, result.message) == (Outcome.FAILURE, message)


@pytest.mark.parametrize(
    ("name", "leading"),
    [("tcp_bw.txt", ("throughput", 479363072.0)), ("rc_rdma_write_lat.txt", ("mean", 2689747e-9))],
)
def test_the_other_outputs(name: str, leading: tuple[str, float]) -> None:
    assert parse_output((FIXTURES / name).read_text(), "x").leading == leading


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tcp_lat:\n    latency  =  0 ns\n",
        "tcp_lat:\n    latency  =  3 us\n",
        "tcp_bw:\n    bw  =  1e999 bytes/sec\n",
        "x:\n    bw  =  1 bytes/sec\n    bw  =  2 bytes/sec\n",
    ],
)
def test_no_figure_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match="no figure in"):
        parse_output(text, "one-way")


def test_a_local_address_cannot_be_chosen() -> None:
    with pytest.raises(FieldError, match="qperf has no such option"):
        QperfConfig(name="net", targets=(Endpoint("10.0.0.2"),), bind=LocalAddress("10.0.0.1"))


def test_a_real_server() -> None:
    port = free_port()
    runner = ProcessRunner(os.environ)
    with subprocess.Popen([need("qperf"), "-lp", str(port)]) as server:
        try:
            for workload in ("tcp-lat-64", "tcp-bw-64k"):
                made = probe(workload, f"127.0.0.1:{port}")
                result = eventually(lambda made=made: run(runner, made), until=lambda seen: seen.operations)
                assert result.outcome is Outcome.SUCCESS
                (operation,) = result.operations
                assert operation.leading is not None
        finally:
            server.kill()
