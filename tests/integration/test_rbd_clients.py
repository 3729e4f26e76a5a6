"""What the admin socket of a real librbd client says, with its cache and without."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.sources.ceph.rbd_clients import RbdClient, read_rbd_clients
from support.ceph_cluster import CephCluster, missing
from support.daemon import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing()), reason="Ceph is not installed"),
]
POOL, IMAGE = "client-images", "disk-1"


@pytest.fixture(scope="module")
def images(shared_ceph: CephCluster) -> Iterator[str]:
    shared_ceph.add_pool(POOL, application="rbd")
    shared_ceph.run("rbd", "pool", "init", POOL)
    shared_ceph.run("rbd", "create", "--size", "16M", f"{POOL}/{IMAGE}")
    yield POOL
    shared_ceph.remove_pool(POOL)


@pytest.mark.parametrize(("cache", "policy"), [("true", "writeback"), ("false", "none")])
def test_a_client_that_writes(ceph: CephCluster, images: str, tmp_path: Path, cache: str, policy: str) -> None:
    sockets = f"{ceph.folder}/run/guest-{cache}.*.asok"
    argv = ["rbd", "--conf", str(ceph.conf), "bench", "--io-type", "write", "--io-total", "1T", f"{images}/{IMAGE}"]
    options = {"admin-socket": sockets.replace("*", "$pid"), "rbd-cache": cache, "rbd-cache-policy": "writeback"}
    argv += [f"--{name}={value}" for name, value in options.items()]

    def client() -> RbdClient | None:
        try:
            (only,) = read_rbd_clients([sockets], Roots.under(tmp_path)).clients
        except (Unavailable, ValueError):
            return None
        write = only.operations["write"]
        return only if write.avgcount > 10 and write.sum > 0 else None  # librbd measures with a clock of ticks

    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=os.environ | {"CEPH_ARGS": ""}) as bench:
        try:
            seen = eventually(client, within_s=60)
        finally:
            bench.kill()
    assert seen is not None
    assert (seen.pool, seen.image, seen.cache) == (POOL, IMAGE, policy)
    assert seen.until_flush is (False if cache == "true" else None)  # `rbd bench` itself sets it so
    assert seen.octets["write"] >= seen.operations["write"].avgcount * 4096
    assert seen.octets["read"] == 0
