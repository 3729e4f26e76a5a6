"""The S3 probe with Ceph's own gateway, and with a server that misbehaves."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.probes.object import S3Config
from plumbline.config.types import Duration
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.object.s3 import S3Probe
from plumbline.probes.run.guard import MARKER, MARKER_TEXT
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, ProbeResult
from support.ceph_cluster import S3, CephCluster, missing

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("botocore") is None, reason="botocore is not installed"),
]
CATALOGUE = load_catalogue()
KEYS = S3("", "AKIAPLUMBLINE", "wJalrXUtnFEMIK7MDENGbPxRfiCY")


def probe(tmp_path: Path, s3: S3, *, host: str = "stor01", workload: str = "s3-ops-4k", **changes: Any) -> S3Probe:
    keys = tmp_path / "keys"
    keys.write_text(f"access_key = {s3.access_key}\nsecret_key = {s3.secret_key}\n")
    keys.chmod(0o600)
    settings = {"bucket": "plumbline-test", "operations": 10, "timeout": Duration(60)} | changes
    config = S3Config(name="s3", endpoint=s3.endpoint, credentials_file=str(keys), **settings)
    return S3Probe(config, CATALOGUE.by_id[workload], host)


def context() -> Run:
    return Run(runner=ProcessRunner(os.environ), clock=time.time, stopping=threading.Event())


def client(s3: S3) -> Any:
    from botocore.session import Session

    return Session().create_client(
        "s3",
        region_name="default",
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
    )


@pytest.fixture
def rgw(ceph: CephCluster) -> S3:
    if absent := missing("radosgw", "radosgw-admin"):
        pytest.skip(f"{', '.join(absent)} not installed")
    return ceph.start_rgw()


@pytest.mark.ceph
@pytest.mark.parametrize(("workload", "operations"), [("s3-ops-4k", 20), ("s3-ops-4m", 3)])
def test_measures_and_leaves_only_its_marker(rgw: S3, tmp_path: Path, workload: str, operations: int) -> None:
    result = probe(tmp_path, rgw, workload=workload, operations=operations).run(context())
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    assert result.tool_version
    assert [each.operation for each in result.operations] == ["put", "get", "list", "delete"]
    for each in result.operations:
        assert each.iops > 0
        assert sum(count for _, count in each.bins) == operations
        assert 0 < each.latency["p50"] <= each.latency["max"] < 60
    left = client(rgw).list_objects_v2(Bucket="plumbline-test")["Contents"]
    assert [each["Key"] for each in left] == [MARKER]


@pytest.mark.ceph
def test_leftovers_of_this_host_go_and_others_stay(rgw: S3, tmp_path: Path) -> None:
    ours, others = probe(tmp_path, rgw), "plumbline-probe/stor02/s3/000001"
    assert ours.run(context()).outcome is Outcome.SUCCESS
    direct = client(rgw)
    for key in (*(f"{ours.prefix}{number:06d}" for number in range(5)), others):
        direct.put_object(Bucket="plumbline-test", Key=key, Body=b"x")
    ours.clean_up(context())
    left = [each["Key"] for each in direct.list_objects_v2(Bucket="plumbline-test")["Contents"]]
    assert left == [MARKER, others]
    direct.delete_object(Bucket="plumbline-test", Key=others)


@pytest.mark.ceph
def test_a_bucket_of_somebody_else_is_refused(rgw: S3, tmp_path: Path) -> None:
    direct = client(rgw)
    direct.create_bucket(Bucket="thesis")
    direct.put_object(Bucket="thesis", Key="chapter-1", Body=b"words")
    theirs = probe(tmp_path, rgw, bucket="thesis")
    for act in (theirs.run, theirs.clean_up):
        with pytest.raises(ProbeRefused, match="holds objects but no") as refusal:
            act(context())
        assert refusal.value.reason == "not-ours"
    direct.put_object(Bucket="thesis", Key=MARKER, Body=b"another marker")
    with pytest.raises(ProbeRefused, match="is not ours"):
        theirs.run(context())
    assert direct.get_object(Bucket="thesis", Key="chapter-1")["Body"].read() == b"words"


@pytest.mark.ceph
def test_clean_up_makes_no_bucket(rgw: S3, tmp_path: Path) -> None:
    probe(tmp_path, rgw, bucket="never-made").clean_up(context())
    assert "never-made" not in [each["Name"] for each in client(rgw).list_buckets()["Buckets"]]


@pytest.mark.ceph
def test_a_bucket_with_versions_is_refused(rgw: S3, tmp_path: Path) -> None:
    direct = client(rgw)
    direct.create_bucket(Bucket="versions")
    direct.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    with pytest.raises(ProbeRefused) as refusal:
        probe(tmp_path, rgw, bucket="versions").run(context())
    assert refusal.value.reason == "versioned"


@pytest.mark.ceph
@pytest.mark.parametrize(
    ("wrong", "says"), [({"access_key": "NOSUCH"}, "403"), ({"secret_key": "wJalrXUtnFEMIK7MDENG"}, "403")]
)
def test_wrong_keys_fail_without_showing_them(rgw: S3, tmp_path: Path, wrong: dict[str, str], says: str) -> None:
    keys = S3(rgw.endpoint, wrong.get("access_key", rgw.access_key), wrong.get("secret_key", rgw.secret_key))
    result = probe(tmp_path, keys).run(context())
    assert result.outcome is Outcome.FAILURE
    assert says in result.message
    assert keys.secret_key not in result.message
    assert keys.access_key not in result.message


class Stub:
    """A server for the shapes of trouble that a healthy gateway does not have."""

    def __init__(self, behave: dict[str, Any]) -> None:
        self.requests: list[str] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(length)
                stub.requests.append(f"{self.command} {self.path}")
                key = self.path.partition("?")[0].removeprefix("/plumbline-test").removeprefix("/")
                what = f"{self.command} {'marker' if key == MARKER else 'object' if key else 'bucket'}"
                status, body = behave.get(what, (200, b"<r/>"))
                if status == 0:
                    time.sleep(body)
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.s3 = S3(f"http://127.0.0.1:{self.server.server_port}", KEYS.access_key, KEYS.secret_key)


@pytest.fixture
def stubs() -> Iterator[list[Stub]]:
    made: list[Stub] = []
    yield made
    for each in made:
        each.server.shutdown()
        each.server.server_close()


@pytest.mark.parametrize(
    ("behave", "outcome", "says"),
    [
        ({"GET object": (200, b"something else")}, Outcome.FAILURE, "its content is not what was put"),
        ({"HEAD bucket": (0, 30)}, Outcome.TIMEOUT, "no answer, or not all of it, within 1 s"),
        ({"PUT object": (503, b"<Error><Code>SlowDown</Code></Error>")}, Outcome.FAILURE, "SlowDown (HTTP 503)"),
        ({"PUT object": (500, b"not xml at all")}, Outcome.FAILURE, "500"),
        ({"HEAD bucket": (403, b"")}, Outcome.FAILURE, "its keys and its policy"),
        ({"GET marker": (200, b"x" * 100_000)}, None, "is not ours"),
    ],
)
def test_trouble(stubs: list[Stub], tmp_path: Path, behave: dict[str, Any], outcome: Outcome | None, says: str) -> None:
    stub = Stub({"GET marker": (200, MARKER_TEXT)} | behave)
    stubs.append(stub)
    which = probe(tmp_path, stub.s3, request_timeout=Duration(1))
    if outcome is None:
        with pytest.raises(ProbeRefused, match=says):
            which.run(context())
        return
    result: ProbeResult = which.run(context())
    assert result.outcome is outcome
    assert says in result.message
    assert KEYS.secret_key not in result.message
    puts = [each for each in stub.requests if each.startswith("PUT") and "000000" in each]
    assert len(puts) <= 1  # nothing is tried again
    assert [each for each in stub.requests if each.startswith("DELETE")] == [
        each.replace("PUT", "DELETE") for each in puts
    ]


def test_nobody_listens(tmp_path: Path) -> None:
    result = probe(tmp_path, S3("http://127.0.0.1:1", KEYS.access_key, KEYS.secret_key)).run(context())
    assert result.outcome is Outcome.FAILURE
    assert "connection failed" in result.message
