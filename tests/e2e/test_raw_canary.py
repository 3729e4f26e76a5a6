"""The daemon with a canary on each OSD's disk: loop devices, and links in /var/lib/ceph as packages make them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.daemon import Daemon, alive, command_line, eventually, running
from support.filesystems import skip_without_root
from support.loops import Loops, checksum

pytestmark = [pytest.mark.needs_root, pytest.mark.timeout(180)]


@pytest.fixture
def loops(folder: Path) -> Iterator[Loops]:
    skip_without_root("makes loop devices")
    made = Loops(folder)
    yield made
    made.close()


def give(var: Path, number: int, disk: str) -> Path:
    """``disk`` is this OSD's."""
    directory = var / "lib/ceph/osd" / f"ceph-{number}"
    directory.mkdir(parents=True)
    (directory / "block").symlink_to(f"/dev/{disk}")
    return directory


def operations(daemon: Daemon, disk: str) -> float:
    return daemon.metrics().get("plumbline_canary_latency_seconds_count", probe=f"raw/{disk}", operation="read") or 0


def watched(daemon: Daemon) -> set[str]:
    return daemon.metrics().labels("plumbline_probe_target_info", "target")


def workers(daemon: Daemon) -> list[int]:
    return [pid for pid in daemon.children() if "canary_worker" in command_line(pid)]


def test_disks_that_become_an_osds_and_cease_to_be(loops: Loops, folder: Path) -> None:
    var = folder / "var"
    first, second = loops.disk(), loops.disk()
    before = checksum(first), checksum(second)
    give(var, 3, first)
    config = {
        "probes": [{"type": "raw-canary", "name": "raw", "rate": 50}],
        "devices": {"disk_exclude": "ram.*"},  # loop devices are, by default
    }
    with running(folder, "--path.var", var, config=config) as daemon:
        eventually(lambda: operations(daemon, first) > 5)
        scrape = daemon.metrics()
        assert watched(daemon) == {first}
        # the join that says which OSD it is
        assert scrape.get("plumbline_disk_info", device=first, osd="osd.3") == 1
        assert scrape.get("plumbline_probe_success", probe=f"raw/{first}") == 1
        (old,) = workers(daemon)

        # another OSD; a disk that is plugged in makes the daemon look at once, and not a minute later
        leaving = give(var, 4, second)
        loops.disk(1)
        eventually(lambda: operations(daemon, second) > 5)
        assert watched(daemon) == {first, second}
        assert old in workers(daemon), "the first disk's canary went on undisturbed"
        counted = operations(daemon, first)
        assert counted > 0

        (leaving / "block").unlink()
        loops.disk(1)
        eventually(lambda: watched(daemon) == {first})
        assert workers(daemon) == [old]
        assert operations(daemon, first) >= counted
        assert "Traceback" not in daemon.said()
        assert re.search(r"disks changed: probes planned again", daemon.said())
        assert daemon.reload(config).rstrip().endswith("configuration reloaded")
        assert workers(daemon) == [old]
        code, _ = daemon.stop()
        assert code == 0
    eventually(lambda: not alive(old))
    assert (checksum(first), checksum(second)) == before


def test_a_disk_that_is_named_and_not_there(folder: Path) -> None:
    config = {"probes": [{"type": "raw-canary", "name": "raw", "devices": ["sdzzz"]}]}
    with running(folder, config=config) as daemon:
        eventually(
            lambda: daemon.metrics().get("plumbline_probe_runs_skipped_total", probe="raw/sdzzz", reason="device-gone")
        )
        scrape = daemon.metrics()
        assert scrape.get("plumbline_probe_success", probe="raw/sdzzz") == 0
        assert "device-gone" in daemon.page() or "the kernel has no such disk" in daemon.page()
        (pid,) = workers(daemon)
        assert psutil.Process(pid).is_running()


def test_killed_it_leaves_nothing(loops: Loops, folder: Path) -> None:
    disk = loops.disk()
    config = {"probes": [{"type": "raw-canary", "name": "raw", "devices": [disk]}]}
    with running(folder, config=config) as daemon:
        eventually(lambda: operations(daemon, disk) > 0)
        (pid,) = workers(daemon)
        daemon.process.kill()
        eventually(lambda: not alive(pid))
    assert sorted(path.name for path in (folder / "state").iterdir() if path.is_dir()) == []
