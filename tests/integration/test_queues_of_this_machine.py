"""Queue settings of this machine's block devices, and of a loop device whose setting is changed meanwhile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.disk.queuesettings import QueueSettings, read_queue_settings
from support.daemon import eventually, run, running

pytestmark = pytest.mark.timeout(180)
BLOCK = Path("/sys/block")


def queues() -> dict[str, QueueSettings]:
    reading = read_queue_settings(Roots.under(Path("/")))
    assert reading.skipped == (), "this kernel says something that the parsers don't know"
    return {each.device: each for each in reading.queues}


def test_every_device_is_read_as_it_stands() -> None:
    read = queues()
    assert read
    for device, queue in read.items():
        directory = BLOCK / device.replace("/", "!") / "queue"
        assert queue.read_ahead_kib == int((directory / "read_ahead_kb").read_text())
        assert queue.nomerges == int((directory / "nomerges").read_text())
        if queue.scheduler is not None:
            text = (directory / "scheduler").read_text()
            assert f"[{queue.scheduler}]" in text or text.strip() == queue.scheduler


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("attaching a loop device needs root and losetup")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    done = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no loop device here: {done.stderr.strip()}")
    device = Path(done.stdout.strip())
    scheduler = BLOCK / device.name / "queue" / "scheduler"
    before = re.search(r"\[(.+)\]", scheduler.read_text())
    try:
        yield device.name
    finally:
        if before:
            scheduler.write_text(before[1])
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.long
@pytest.mark.needs_root
def test_a_changed_scheduler_and_read_ahead_are_in_the_daemons_metrics_after_its_next_look(
    loop: str, tmp_path: Path
) -> None:
    choice = BLOCK / loop / "queue" / "scheduler"
    now = queues()[loop].scheduler
    other = next((name for name in re.findall(r"[\w-]+", choice.read_text()) if name != now), None)
    if now is None or other is None:
        pytest.skip("this kernel has but one scheduler")
    config = {"devices": {"disk_exclude": "zram.*"}, "probes": []}
    with running(tmp_path, config=config) as daemon:

        def scheduler() -> set[str]:
            return {
                each.labels["scheduler"]
                for each in daemon.metrics().series("plumbline_disk_queue_info")
                if each.labels["device"] == loop
            }

        assert eventually(scheduler) == {now}
        choice.write_text(other)
        assert eventually(lambda: scheduler() == {other}, within_s=120)  # it looks once a minute
        assert daemon.metrics().get("plumbline_disk_read_ahead_bytes", device=loop) == 1024 * int(
            (BLOCK / loop / "queue" / "read_ahead_kb").read_text()
        )


def test_devices_that_are_no_hardware_of_this_host_get_no_advice(tmp_path: Path) -> None:
    done = run("check", "--json", "--wait", "500ms", "--storage.path", tmp_path / "state")
    assert done.returncode != 3, done.stderr
    said = [each for each in json.loads(done.stdout)["findings"] if each["check"].startswith("disk.")]
    made_up = re.compile(r"(?:vd|xvd|loop|zram|ram|dm-|md|nbd|rbd).*")
    assert [each for each in said if made_up.fullmatch(each["subject"])] == []
