"""The test cluster itself: what it says of itself is true, its faults are mended, and it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from support import ceph_cluster
from support.ceph_cluster import CephCluster
from support.daemon import alive, eventually

pytestmark = [pytest.mark.integration, pytest.mark.ceph]

ALONE = """
import sys, time
from support.ceph_cluster import ceph_cluster
with ceph_cluster() as cluster:
    daemons = ("mon.a", "mgr.x", "osd.0", "osd.1", "osd.2")
    print(cluster.folder, *(cluster.pid(name) for name in daemons), flush=True)
    sys.stdin.readline()
"""


def start_alone() -> tuple[subprocess.Popen[str], Path, list[int]]:
    tests = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(tests), *sys.path)))},
        cwd=tests.parent,
    )
    assert process.stdout is not None
    folder, *pids = process.stdout.readline().split()
    return process, Path(folder), [int(pid) for pid in pids]


@pytest.mark.smoke
def test_it_serves_the_managers_metrics(ceph: CephCluster) -> None:
    eventually(lambda: "ceph_osd_metadata{" in ceph.metrics())  # the manager collects every few seconds
    assert ceph.ceph_json("osd", "tree")["nodes"][0]["name"] == "default"


def test_osds_stop_crash_freeze_and_come_back(ceph: CephCluster) -> None:
    assert sorted(ceph.osd_pids) == [0, 1, 2]
    ceph.stop_osd(0)
    assert sorted(ceph.osd_pids) == [1, 2]
    assert "OSD_DOWN" in ceph.ceph_json("health")["checks"]
    ceph.start_osd(0)
    ceph.kill_osd(1)
    ceph.freeze_osd(2)
    ceph.heal()
    assert sorted(ceph.osd_pids) == [0, 1, 2]
    assert ceph.health() == "HEALTH_OK"


@pytest.mark.parametrize("how", ["ended", signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(how: str | signal.Signals) -> None:
    process, folder, pids = start_alone()
    with process:
        assert folder.is_dir()
        assert all(map(alive, pids))
        if isinstance(how, str):
            process.communicate("\n")
        else:
            process.send_signal(how)
            process.wait()
    eventually(lambda: not any(map(alive, pids)))
    if how != "ended":
        ceph_cluster.sweep()  # as the next start does
    assert not folder.exists()


def test_without_a_cluster_all_fail_at_once_and_say_why(tmp_path: Path) -> None:
    """Each test is tried twice, and each could wait minutes for a cluster of its own."""
    broken = tmp_path / "ceph-mon"
    broken.write_text(f"#!/bin/sh\necho start >>{tmp_path}/starts\necho no space left >&2\nexit 1\n")
    broken.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/integration/test_librados.py"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, cwd=Path(__file__).parents[2],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no Ceph cluster in 2 starts, the last: ceph-mon -i a --mkfs" in done.stdout
    assert "no space left" in done.stdout
    assert (tmp_path / "starts").read_text().split() == ["start"] * 2


@pytest.mark.skipif(ceph_cluster.missing("radosgw", "radosgw-admin") != [], reason="radosgw is not installed")
def test_an_s3_gateway(ceph: CephCluster) -> None:
    s3 = ceph.start_rgw()
    with urllib.request.urlopen(s3.endpoint, timeout=60) as answer:
        assert b"ListAllMyBucketsResult" in answer.read()
    assert s3.access_key
    assert s3.secret_key
