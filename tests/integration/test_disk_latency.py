"""Latency histograms of real devices: against fio's own percentiles, diskstats' counts, and another BPF program.

The device is a loop device over a file on this machine's disk, read and written around the page cache, so that its
latencies are a disk's. zram would be no subject: it takes bios and has no requests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from plumbline.sources.latencymaps import OPERATIONS
from support.disks import disk_folder
from support.filesystems import Mounts
from support.latency import During, Watch, bucket, bucket_of, run, watching
from support.programs import need

pytestmark = pytest.mark.needs_root


@pytest.fixture(scope="module")
def watch() -> Iterator[Watch]:
    with watching() as opened:
        yield opened


@pytest.fixture
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A loop device over a 320 MiB file on a disk, with direct I/O, its partitions shown."""
    with ExitStack() as undo:
        image = undo.enter_context(disk_folder(tmp_path_factory)) / "image"
        with image.open("wb") as file:
            file.truncate(320 * 2**20)
        made = subprocess.run(
            [need("losetup"), "--find", "--show", "--direct-io=on", "--partscan", image],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            pytest.skip(f"no loop device here: {made.stderr.strip()}")
        device = Path(made.stdout.strip())
        undo.callback(run, "losetup", "--detach", device)
        run(need("fio"), *JOB, f"--filename={device}", "--rw=write", "--bs=1M", "--size=300M")  # no holes
        yield device


JOB = ("--name=job", "--output-format=json", "--direct=1", "--ioengine=libaio", "--group_reporting")


def fio(device: str | Path, *options: str) -> dict[str, Any]:
    """One fio run; its group's figures."""
    said = run(need("fio"), *JOB, f"--filename={device}", "--size=300M", *options)
    result: dict[str, Any] = json.loads(said[said.index("{") :])["jobs"][0]
    return result


def assert_all_accounted_for(during: During) -> None:
    """Each request that diskstats counts is in a histogram, or among those said not to be timed.

    But for one kind: a write without data that only asks for a flush. It never goes to the device; diskstats counts it
    as a write, and the flush that it brings about besides.
    """
    untimed = sum(during.untimed.values())
    timed, counted = during.timed, during.counted
    empty_writes = counted["flush"]
    assert timed["flush"] == counted["flush"]
    together = sum(timed.values())
    assert sum(counted.values()) - empty_writes <= together + untimed
    assert together <= sum(counted.values())
    for operation in OPERATIONS:
        assert timed[operation] <= counted[operation]


@pytest.mark.parametrize("operation", ["read", "write"])
def test_percentiles_are_fio_s_within_a_bucket(watch: Watch, loop: Path, operation: str) -> None:
    """fio sees more than the device: its own waiting for a CPU too, so on a busy machine it gets several tries."""
    tries = []
    for _ in range(6):
        said: list[dict[str, Any]] = []
        options = (f"--rw=rand{operation}", "--bs=16k", "--iodepth=4", "--io_size=100M")
        during = watch.during(loop.name, lambda: said.append(fio(loop, *options)))  # noqa: B023
        assert said[0][operation]["total_ios"] == during.counted[operation]
        theirs = said[0][operation]["clat_ns"]["percentile"]
        apart = [
            bucket_of(theirs[name]) - bucket(during.device[operation], quantile)
            for quantile, name in ((0.5, "50.000000"), (0.99, "99.000000"))
        ]
        tries.append(apart)
        assert min(apart) >= -1  # the device alone never takes longer than fio waits for it
        if max(apart) <= 1:
            return
    pytest.fail(f"buckets that fio is above us, p50 and p99: {tries}")


def test_every_request_is_accounted_for_by_parallel_jobs(watch: Watch, loop: Path) -> None:
    during = watch.during(
        loop.name,
        lambda: fio(loop, "--rw=randrw", "--bs=4k", "--iodepth=8", "--numjobs=4", "--runtime=4", "--time_based"),
    )

    assert min(during.counted["read"], during.counted["write"]) > 500
    assert sum(during.timed.values()) + sum(during.untimed.values()) >= sum(during.counted.values())
    assert sum(during.timed.values()) >= 0.99 * sum(during.counted.values())


def test_queue_and_device_together_are_diskstats_time(watch: Watch, loop: Path) -> None:
    during = watch.during(loop.name, lambda: fio(loop, "--rw=randwrite", "--bs=64k", "--iodepth=16", "--io_size=200M"))

    ours_ms = (during.device["write"].sum_ns + during.queue["write"].sum_ns) / 1e6
    assert ours_ms == pytest.approx(during.ticks_ms["write"], rel=0.1, abs=5)


def test_merged_requests_count_once(watch: Watch, loop: Path) -> None:
    during = watch.during(loop.name, lambda: fio(loop, "--direct=0", "--rw=write", "--bs=4k", "--end_fsync=1"))

    assert 0 < during.counted["write"] < 300 * 2**20 / 4096 / 4  # they were merged
    assert_all_accounted_for(during)


def test_flushes_and_the_writes_that_only_ask_for_them(watch: Watch, loop: Path) -> None:
    during = watch.during(
        loop.name, lambda: fio(loop, "--rw=randwrite", "--bs=4k", "--fsync=1", "--io_size=1M", "--iodepth=1")
    )

    assert during.timed["flush"] == during.counted["flush"] > 0
    assert during.timed["write"] + during.counted["flush"] == during.counted["write"]


def test_discards_and_zeroes(watch: Watch, loop: Path) -> None:
    during = watch.during(loop.name, lambda: run("blkdiscard", "--offset", "0", "--length", "64M", loop))
    assert during.timed["discard"] == during.counted["discard"] > 0
    zeroed = watch.during(loop.name, lambda: run("blkdiscard", "--zeroout", "--offset", "0", "--length", "64M", loop))
    # no data goes to the disk: with the discards here, with the writes in diskstats
    assert zeroed.timed["discard"] == zeroed.counted["write"] > 0


def test_trimming_a_file_system(watch: Watch, loop: Path, tmp_path: Path) -> None:
    run(need("mkfs.ext4"), "-q", "-F", loop)
    mounts = Mounts(tmp_path)
    try:
        point = mounts.mount("disk", loop)
        (point / "file").write_bytes(os.urandom(2**22))
        during = watch.during(loop.name, lambda: run("fstrim", point))
    finally:
        mounts.close()

    assert during.timed["discard"] == during.counted["discard"] > 0
    assert_all_accounted_for(during)


def test_partitions_are_their_disk(watch: Watch, loop: Path) -> None:
    table = "label: dos\nsize=100M\nsize=100M\n"
    subprocess.run([need("sfdisk"), "--quiet", loop], input=table, text=True, check=True, capture_output=True)
    parts = [f"{loop}p1", f"{loop}p2"]
    if not all(map(os.path.exists, parts)):
        pytest.skip("the partitions' nodes did not appear: no udev and no devtmpfs here")
    during = watch.during(
        loop.name,
        lambda: fio(":".join(parts), "--rw=randread", "--bs=4k", "--size=90M", "--io_size=40M", "--iodepth=4"),
    )

    assert during.counted["read"] >= 40 * 2**20 / 4096
    assert during.timed["read"] + sum(during.untimed.values()) >= during.counted["read"]


def test_a_device_that_stays_away_and_comes_back_goes_on_counting(watch: Watch, loop: Path) -> None:
    before = watch.during(loop.name, lambda: fio(loop, "--rw=read", "--bs=1M", "--io_size=64M"))
    first = _total(watch, loop.name)
    after = watch.during(loop.name, lambda: fio(loop, "--rw=read", "--bs=1M", "--io_size=64M"))
    assert before.timed["read"] > 0
    assert _total(watch, loop.name) >= first + after.timed["read"]


def _total(watch: Watch, device: str) -> int:
    (found,) = [each for each in watch.reading().disks if each.device == device]
    return sum(found.times["read"].device.counts)


def test_capabilities_are_gone_from_every_set() -> None:
    script = (
        "from plumbline.capabilities import Capability, give_up\n"
        "print(sorted(each.label for each in give_up(Capability)))\n"
        "print(give_up(Capability))\n"
        "print(open('/proc/thread-self/status').read())\n"
    )
    if os.geteuid() != 0:
        pytest.skip("only root has something to give up")
    said = run(sys.executable, "-c", script)
    assert said.splitlines()[1] == "frozenset()"
    masks = [int(line.split()[1], 16) for line in said.splitlines() if line.startswith("Cap")]
    assert len(masks) == 5
    for number in (17, 21, 38, 39):
        assert not any(mask >> number & 1 for mask in masks), number
