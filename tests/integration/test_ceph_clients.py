"""``plumbline ceph top --clients`` on a real cluster: of twenty images the one is named that makes most of the load."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from plumbline.ceph_top.clients import ENOUGH
from support.ceph_cluster import CephCluster
from support.daemon import COMMAND, eventually, running
from support.programs import need
from support.scraped import Scrape

pytestmark = [pytest.mark.integration, pytest.mark.ceph, pytest.mark.timeout(300)]

POOL = "volumes"
IMAGES = [f"volume-{number}" for number in range(20)]
GUILTY = IMAGES[7]
WRITES_PER_S = 200
LOOK = "10s"
METRIC = "plumbline_osd_client_operations"


@pytest.fixture(scope="module")
def images(shared_ceph: CephCluster) -> Iterator[CephCluster]:
    shared_ceph.add_pool(POOL, pg_num=32, application="rbd")
    for name in IMAGES:
        shared_ceph.run("rbd", "create", "--size=16M", "--object-size=1M", f"{POOL}/{name}")
    yield shared_ceph
    shared_ceph.remove_pool(POOL)


def loading(ceph: CephCluster, rates: Mapping[str, int], stack: ExitStack) -> None:
    """One fio with a job for each image, so many writes a second each."""
    common = ["--ioengine=rbd", "--clientname=admin", f"--pool={POOL}", "--bs=4k", "--rw=randwrite", "--iodepth=4"]
    jobs = [
        word
        for name, rate in rates.items()
        for word in (f"--name={name}", f"--rbdname={name}", f"--rate_iops={rate}", "--time_based", "--runtime=3600")
    ]
    argv = [need("fio"), *common, "--thread=1", *jobs]
    process = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=ceph.environment))
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)


def asked(ceph: CephCluster, folder: Path) -> dict[str, Any]:
    config = folder / "plumbline.yaml"
    config.write_text(json.dumps({"ceph": {"admin_sockets": [f"{ceph.folder}/run/*-osd.*.asok"]}, "probes": []}))
    argv = [*COMMAND, "ceph", "top", "--clients", "--interval", LOOK, "--json", "--config.file", config]
    done = subprocess.run(
        [*argv, "--conf", ceph.conf], capture_output=True, text=True, timeout=120, check=True, env=ceph.environment
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.smoke
def test_who_makes_four_fifths_of_the_writes_is_named(ceph: CephCluster, images: CephCluster, tmp_path: Path) -> None:
    rates = dict.fromkeys(IMAGES, WRITES_PER_S // 100) | {GUILTY: WRITES_PER_S * 4 // 5}
    with ExitStack() as stack:
        loading(ceph, rates, stack)
        found = eventually(lambda: asked(ceph, tmp_path), until=lambda now: now["stands_out"], within_s=120)
    assert found["stands_out"] == f"image {GUILTY} of pool {POOL}"
    assert found["loads"][0]["what"] == f"image {GUILTY} of pool {POOL}"
    assert (found["osds"], found["notes"]) == (["osd.0", "osd.1", "osd.2"], [])
    assert found["loads"][0]["load"]["hosts"] == ["127.0.0.1"]


def test_nobody_is_named_where_all_load_alike(ceph: CephCluster, images: CephCluster, tmp_path: Path) -> None:
    with ExitStack() as stack:
        loading(ceph, dict.fromkeys(IMAGES, WRITES_PER_S // len(IMAGES)), stack)
        eventually(lambda: asked(ceph, tmp_path)["operations"] >= ENOUGH, within_s=120)
        assert asked(ceph, tmp_path)["stands_out"] is None


def test_the_images_of_a_named_pool_are_series(images: CephCluster, tmp_path: Path) -> None:
    pool = json.loads(images.run("ceph", "osd", "pool", "get", POOL, "all", "--format=json"))["pool_id"]
    image = json.loads(images.run("rbd", "info", f"{POOL}/{GUILTY}", "--format=json"))["id"]
    sockets = [f"{images.folder}/run/*-osd.*.asok"]
    config = {"ceph": {"admin_sockets": sockets, "client_pools": [pool]}, "probes": []}
    rates = dict.fromkeys(IMAGES, WRITES_PER_S // 100) | {GUILTY: WRITES_PER_S * 4 // 5}
    with ExitStack() as stack:
        loading(images, rates, stack)
        daemon = stack.enter_context(running(tmp_path, config=config))

        def listed() -> list[str]:
            """Images, the one with the most operations first."""
            series = Scrape.of_text(daemon.get("/metrics").text).series(METRIC, pool_id=str(pool), kind="image")
            return [sample.labels["owner"] for sample in sorted(series, key=lambda sample: -sample.value)]

        assert eventually(listed, until=lambda now: len(now) > 1 and now[0] == image, within_s=120)
