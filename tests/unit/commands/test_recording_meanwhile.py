"""What is kept beside the figures while canaries are recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.commands.recording_meanwhile import Meanwhile
from plumbline.config.workloads import load_catalogue
from plumbline.core.histogram import HistogramValue
from plumbline.core.roots import Roots
from plumbline.probes.run.reading import CanaryReading, CanaryState, WorkloadReading

WORKLOADS = load_catalogue().by_id
READ = "randread-4k-qd1-j1"
STREAM = ("canary", READ, "read")


def reading(count: int, *, charged: int = 0, layer: str = "disk") -> CanaryReading:
    workload = WorkloadReading(
        layer=layer, workload=READ, operation="read", config_hash="", bounds=(), charged=charged, errors={"EIO": 0},
        latency=HistogramValue((0.1, 0.2), [count, count], count, 0.05 * count), in_flight_s=0.0,
        last_completion_ts=None, last_success_ts=None,
    )  # fmt: skip
    return CanaryReading(
        probe="canary", device_class="ssd", state=CanaryState.RUNNING, reason="", message="", in_flight_s=0.0,
        workloads=(workload,), rate_per_s=1.0, runs=1, skips={}, success=True,
    )  # fmt: skip


class World:
    def __init__(self, folder: Path, device: str = "sda") -> None:
        (folder / "proc").mkdir()
        self.stats, self.now = folder / "proc" / "diskstats", 1000.0
        self.served()
        self.meanwhile = Meanwhile(Roots.under(folder), {"canary": device}, WORKLOADS, clock=lambda: self.now)

    def served(self, reads: int = 0, sectors_read: int = 0, writes: int = 0, sectors_written: int = 0) -> None:
        self.stats.write_text(
            f"   8       0 sda {reads} 0 {sectors_read} 0 {writes} 0 {sectors_written} 0 0 0 0 0 0 0 0 0 0\n"
            "   8      16 sdb 9999999 0 9999999 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )


def test_the_load_is_what_others_were_served(tmp_path: Path):
    world = World(tmp_path)
    world.meanwhile.see([reading(100)])
    world.now += 20.0
    # 160 of the 400 reads are the canary's own; of 200 arrivals 40 were charged and not executed
    world.served(reads=400, sectors_read=400 * 8, writes=100, sectors_written=100 * 16)
    world.meanwhile.close([reading(300, charged=40)])
    assert world.meanwhile.load == {"sda": (17.0, pytest.approx((240 * 8 + 100 * 16) * 512 / 20))}


def test_the_operations_of_an_osds_canary_are_not_taken_away(tmp_path: Path):
    world = World(tmp_path)
    world.meanwhile.see([reading(0, layer="osd")])
    world.now += 10.0
    world.served(reads=100)
    world.meanwhile.close([reading(50, layer="osd")])
    assert world.meanwhile.load["sda"][0] == 10.0


def test_own_operations_beyond_the_disks_make_no_negative_load(tmp_path: Path):
    world = World(tmp_path)
    world.meanwhile.see([reading(0)])
    world.now += 10.0
    world.meanwhile.close([reading(50)])
    assert world.meanwhile.load == {"sda": (0.0, 0.0)}


@pytest.mark.parametrize("device", ["", "sdz"])
def test_an_unknown_disk_has_no_load(tmp_path: Path, device: str):
    world = World(tmp_path, device)
    world.meanwhile.see([reading(0)])
    world.now += 10.0
    world.meanwhile.close([reading(50)])
    assert world.meanwhile.load == {}


def test_slices_are_of_ten_seconds_and_the_last_is_what_is_left(tmp_path: Path):
    world = World(tmp_path)
    for count in (0, 10, 20, 30, 40):
        world.meanwhile.see([reading(count)])
        world.now += 6.0
    world.meanwhile.close([reading(50)])
    found = [(each.ended, each.seconds, each.counts) for each in world.meanwhile.slices(STREAM)]
    assert found == [(1012.0, 12.0, {0: 20}), (1024.0, 12.0, {0: 20}), (1030.0, 6.0, {0: 10})]
    assert world.meanwhile.slices(("other", READ, "read")) == ()
