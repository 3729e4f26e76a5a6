"""The canary at Ceph's own gateway: running, stopped in its tracks, killed, and with buckets that are not ours."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.config.probes.object import S3CanaryConfig, S3Config
from plumbline.config.types import Duration
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.probes.canary.canary import Canary
from plumbline.probes.object import s3_canary
from plumbline.probes.object.s3 import S3Probe
from plumbline.probes.run.guard import MARKER
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.reading import CanaryReading, CanaryState
from support.canaries import healthy, until
from support.ceph_cluster import S3, CephCluster, missing
from support.daemon import alive, eventually

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("botocore") is None, reason="botocore is not installed"),
]
CATALOGUE = load_catalogue()
RGW = "client.rgw.a"
BUCKET = "plumbline-canary"
HOST = SimpleNamespace(storage=Path("/var/lib/plumbline"), roots=Roots.under(Path("/")))


@pytest.fixture
def rgw(ceph: CephCluster) -> S3:
    if absent := missing("radosgw", "radosgw-admin"):
        pytest.skip(f"{', '.join(absent)} not installed")
    return ceph.start_rgw()


@pytest.fixture
def canaries() -> Iterator[list[Canary]]:
    started: list[Canary] = []
    yield started
    for one in started:
        one.stop()


def start(canaries: list[Canary], tmp_path: Path, s3: S3, **changes: Any) -> Canary:
    keys = tmp_path / "keys"
    keys.write_text(f"access_key = {s3.access_key}\nsecret_key = {s3.secret_key}\n")
    keys.chmod(0o600)
    settings = {"bucket": BUCKET, "rate": 10.0, "stuck_after": Duration(2)} | changes
    config = S3CanaryConfig(name="canary", endpoint=s3.endpoint, credentials_file=str(keys), **settings)
    plan = s3_canary.build(config, CATALOGUE.by_id[config.workload], HOST)  # type: ignore[arg-type]
    one = plan.continuous[0].make({})
    assert isinstance(one, Canary)
    canaries.append(one)
    one.start()
    return one


def client(s3: S3) -> Any:
    from botocore.session import Session

    return Session().create_client(
        "s3",
        region_name="default",
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
    )


def keys(s3: S3) -> list[str]:
    return [each["Key"] for each in client(s3).list_objects_v2(Bucket=BUCKET).get("Contents", ())]


def errors(reading: CanaryReading) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in reading.workloads:
        for error, count in each.errors.items():
            found[error] = found.get(error, 0) + count
    return {error: count for error, count in found.items() if count}


@pytest.mark.ceph
class TestAtTheGateway:
    def test_all_four_kinds_and_only_the_marker_stays(self, rgw: S3, canaries: list[Canary], tmp_path: Path) -> None:
        one = start(canaries, tmp_path, rgw)
        reading = until(one, lambda reading: all(each.latency.count > 10 for each in reading.workloads), 120)
        assert (reading.success, reading.reason, errors(reading)) == (True, "", {})
        assert [each.operation for each in reading.workloads] == ["put", "get", "list", "delete"]
        done = [each.latency.count - each.charged for each in reading.workloads]
        assert max(done) - min(done) <= 1  # each object goes through all four
        assert all(0 < quantile(each.latency, 0.5) < 60 for each in reading.workloads)
        assert len(keys(rgw)) <= 2
        assert one.stop(5)
        assert keys(rgw) == [MARKER]

    def test_its_figures_compare_with_the_periodic_probe(self, rgw: S3, canaries: list[Canary], tmp_path: Path) -> None:
        one = start(canaries, tmp_path, rgw)
        config = S3Config(name="s3", endpoint=rgw.endpoint, bucket=BUCKET, credentials_file=str(tmp_path / "keys"))
        periodic = S3Probe(config, CATALOGUE.by_id["s3-ops-4k"], "stor01").identity  # type: ignore[arg-type]
        reading = until(one, healthy, 120)
        assert {(each.layer, each.workload, each.config_hash) for each in reading.workloads} == {
            (periodic.layer, periodic.workload, periodic.config_hash)
        }
        assert reading.device_class == periodic.device_class

    def test_what_a_killed_worker_left_goes_at_the_next_start(
        self, rgw: S3, canaries: list[Canary], tmp_path: Path
    ) -> None:
        one = start(canaries, tmp_path, rgw)
        until(one, healthy, 120)
        prefix = one.plan.task.prefix  # type: ignore[attr-defined]
        left, others = f"{prefix}999999", "plumbline-probe/stor02/canary/000001"
        for key in (left, others):
            client(rgw).put_object(Bucket=BUCKET, Key=key, Body=b"x")
        assert one.pid is not None
        os.kill(one.pid, signal.SIGKILL)
        until(one, lambda reading: reading.runs == 2)
        eventually(lambda: left not in keys(rgw))
        assert others in keys(rgw)  # another host's
        client(rgw).delete_object(Bucket=BUCKET, Key=others)

    def test_a_gateway_that_hangs(self, ceph: CephCluster, rgw: S3, canaries: list[Canary], tmp_path: Path) -> None:
        """The daemon sees it without waiting; the requests time out and are errors; and then it goes on."""
        one = start(canaries, tmp_path, rgw)
        until(one, healthy, 120)
        ceph.freeze(RGW)
        stuck = until(one, lambda reading: reading.in_flight_s > 2.5)
        assert (stuck.success, stuck.reason) == (False, "stuck")
        began = time.perf_counter()
        for _ in range(20):
            one.read()
            one.poll()
        assert time.perf_counter() - began < 1
        failed = until(one, lambda reading: "timeout" in errors(reading))
        assert failed.success is False
        ceph.thaw(RGW)
        until(one, healthy, 120)
        pid = one.pid
        ceph.freeze(RGW)
        until(one, lambda reading: reading.in_flight_s > 1)
        began = time.monotonic()
        assert one.stop(2)
        assert time.monotonic() - began < 3
        assert pid is not None
        eventually(lambda: not alive(pid))

    def test_a_gateway_that_is_gone(self, ceph: CephCluster, rgw: S3, canaries: list[Canary], tmp_path: Path) -> None:
        one = start(canaries, tmp_path, S3("http://127.0.0.1:1", rgw.access_key, rgw.secret_key))
        reading = until(one, lambda reading: reading.state is CanaryState.REFUSED, 120)
        assert (reading.reason, reading.success) == ("unreachable", False)
        assert "connection failed" in reading.message
        assert rgw.secret_key not in reading.message

    def test_a_bucket_of_somebody_else(self, rgw: S3, canaries: list[Canary], tmp_path: Path) -> None:
        direct = client(rgw)
        direct.create_bucket(Bucket="letters")
        direct.put_object(Bucket="letters", Key="a", Body=b"words")
        reading = until(
            start(canaries, tmp_path, rgw, bucket="letters"), lambda reading: reading.state is CanaryState.REFUSED, 120
        )
        assert reading.reason == "not-ours"
        assert [each["Key"] for each in direct.list_objects_v2(Bucket="letters")["Contents"]] == ["a"]

    def test_keys_that_the_gateway_does_not_know(self, rgw: S3, canaries: list[Canary], tmp_path: Path) -> None:
        one = start(canaries, tmp_path, S3(rgw.endpoint, "NOSUCH", rgw.secret_key))
        reading = until(one, lambda reading: reading.state is CanaryState.REFUSED, 120)
        assert reading.reason == "permission"
        assert rgw.secret_key not in reading.message

    def test_a_bucket_that_goes_while_it_works(self, rgw: S3, canaries: list[Canary], tmp_path: Path) -> None:
        """Errors that say 4xx; after many it begins anew, and makes the bucket again."""
        one = start(canaries, tmp_path, rgw, bucket="plumbline-gone")
        until(one, healthy, 120)
        direct = client(rgw)

        def removed() -> bool:
            for each in direct.list_objects_v2(Bucket="plumbline-gone").get("Contents", ()):
                direct.delete_object(Bucket="plumbline-gone", Key=each["Key"])
            try:
                direct.delete_bucket(Bucket="plumbline-gone")
            except direct.exceptions.ClientError:
                return False  # the canary has put an object meanwhile
            return True

        eventually(removed)
        until(one, lambda reading: "4xx" in errors(reading))
        until(one, lambda reading: reading.skips["permission"] == 1)
        until(one, lambda reading: reading.runs == 2 and healthy(reading), 120)


def test_keys_that_others_can_read(canaries: list[Canary], tmp_path: Path) -> None:
    one = start(canaries, tmp_path, S3("http://127.0.0.1:1", "AKIA", "secret"))
    (tmp_path / "keys").chmod(0o644)
    reading = until(one, lambda reading: reading.state is CanaryState.REFUSED and reading.reason == "credentials", 120)
    assert "chmod 600" in reading.message
