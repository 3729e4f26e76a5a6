"""One thing of the host is missing, damaged or full: that is said, and everything else is still reported."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plumbline.probes.run.state import open_storage
from support.daemon import STOP_WITHIN_S, Daemon, eventually, running
from support.programs import need
from support.scraped import Scrape

QUIET: dict[str, object] = {"probes": []}
MIB = 1 << 20
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root: can't mount")


def health(metrics: Scrape) -> dict[str, tuple[float | None, float | None]]:
    """Collector → success, available."""
    return {
        name: (
            metrics.get("plumbline_collector_success", collector=name),
            metrics.get("plumbline_collector_available", collector=name),
        )
        for name in metrics.labels("plumbline_collector_success", "collector")
    }


# --- /proc and /sys


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A copy of what the daemon reads below /proc."""
    copy = tmp_path / "proc"
    (copy / "net").mkdir(parents=True)
    for name in ("diskstats", "loadavg", "net/softnet_stat"):
        shutil.copyfile(Path("/proc") / name, copy / name)
    return copy


@pytest.mark.parametrize(
    ("file", "damage", "collector", "state"),
    [
        ("net/softnet_stat", None, "softnet", (1, 0)),
        ("net/softnet_stat", lambda text: "this is no softnet_stat\n", "softnet", (0, 1)),
        ("net/softnet_stat", lambda text: text[:20] + "\n", "softnet", (0, 1)),
        ("diskstats", None, "disk", (1, 0)),
        ("diskstats", lambda text: re.sub(r"(?m)^( *\d+ +\d+ \S+) \d+", r"\1 x", text), "disk", (0, 1)),
    ],
    ids=["softnet-missing", "softnet-no-numbers", "softnet-too-short", "diskstats-missing", "diskstats-malformed"],
)
def test_a_file_of_proc(
    folder: Path, proc: Path, file: str, damage: Callable[[str], str] | None, collector: str, state: tuple[int, int]
) -> None:
    if damage is None:
        (proc / file).unlink()
    else:
        (proc / file).write_text(damage((proc / file).read_text()))
    with running(folder, "--path.procfs", proc, config=QUIET) as daemon:
        metrics, page = daemon.metrics(), daemon.page()
        states = health(metrics)

        assert states.pop(collector) == state
        assert {success for success, _ in states.values()} == {1}
        assert not [each for each in metrics.names() if re.fullmatch(rf"plumbline_{collector}_io_.*total", each)]
        assert metrics.series("plumbline_nic_packets_total")
        assert file.rpartition("/")[2] in page
        # repaired, it is back at the next scrape, without a restart
        shutil.copyfile(Path("/proc") / file, proc / file)
        assert health(daemon.metrics())[collector] == (1, 1)
        # said once, not at every scrape
        said = [line for line in daemon.said().splitlines() if " ERROR " in line and collector in line]
        assert len(said) == (1 if state[0] == 0 else 0)


def test_no_sysfs_and_no_udev_at_all(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with running(folder, "--path.sysfs", empty, "--path.udev", empty, config=QUIET) as daemon:
        states = health(daemon.metrics())

    assert {success for success, _ in states.values()} == {1}
    assert states["device"] == (1, 0)
    assert states["link"] == (1, 1)


# --- state


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x00\xff not JSON", "malformed"),
        (b"", "truncated"),
        (b'{"schema_version": 0, "probes": {}}', "schema version 0"),
        (b'{"schema_version": 1, "probes": {"x": {"runs": []}}}', "runs"),
    ],
    ids=["noise", "empty", "other-version", "other-shape"],
)
def test_damaged_state_is_kept_aside(folder: Path, content: bytes, why: str) -> None:
    open_storage(folder / "state").close()
    (folder / "state" / "state.json").write_bytes(content)

    with running(folder, config=QUIET) as daemon:
        metrics = daemon.metrics()

        assert {success for success, _ in health(metrics).values()} == {1}
        assert (daemon.storage / "state.json.damaged-1").read_bytes() == content
        (line,) = [each for each in daemon.said().splitlines() if "unreadable state" in each]
        assert why in line
        assert "kept as state.json.damaged-1, starting afresh" in line


# --- probe directories


@contextlib.contextmanager
def mounted(point: Path, *arguments: str | Path) -> Iterator[Path]:
    point.mkdir()
    done = subprocess.run([need("mount"), *arguments, point], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"can't mount here: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run([need("umount"), point], check=True)


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """128 MiB of ext4: too few for twice 64 MiB and the reserve, enough for 1 MiB."""
    image = folder / "image"
    image.touch()
    os.truncate(image, 128 * MIB)
    subprocess.run([need("mkfs.ext4"), "-q", "-m", "0", image], check=True)
    with mounted(folder / "small", "-o", "loop", image) as point:
        yield point


def refuses(daemon: Daemon, reason: str) -> str:
    """The canary's refusal as the status page tells it; everything else works."""
    eventually(lambda: daemon.metrics().get("plumbline_probe_runs_skipped_total", probe="canary", reason=reason))
    metrics = daemon.metrics()
    assert metrics.get("plumbline_probe_success", probe="canary") == 0
    assert metrics.total("plumbline_canary_latency_seconds_count") == 0
    assert {success for success, _ in health(metrics).values()} == {1}
    assert metrics.series("plumbline_softnet_packets_processed_total")
    return daemon.page()


def canary_in(directory: Path, file_size: str = "1MiB") -> dict[str, object]:
    probe = {"type": "canary", "name": "canary", "directory": str(directory), "file_size": file_size}
    return {"probes": [probe]}


@as_root
@pytest.mark.needs_root
def test_a_probe_directory_in_memory(folder: Path) -> None:
    with mounted(folder / "memory", "-t", "tmpfs", "-o", "size=1m", "none") as memory:
        with running(folder, config=canary_in(memory / "probe")) as daemon:
            page = refuses(daemon, "memory-filesystem")

        assert f"{memory / 'probe'}: is on tmpfs, so memory would be measured; name a directory on" in page
        assert list(memory.iterdir()) == []


@as_root
@pytest.mark.needs_root
def test_a_probe_directory_without_space(folder: Path, small_disk: Path) -> None:
    with running(folder, config=canary_in(small_disk / "probe", "64MiB")) as daemon:
        page = refuses(daemon, "no-space")

    assert "MiB free, 192 MiB needed; free some space, or make the probe's file smaller" in page
    assert [path.name for path in small_disk.iterdir()] == ["lost+found"]


@as_root
@pytest.mark.needs_root
def test_a_probe_directory_that_is_read_only_until_somebody_mends_it(folder: Path, small_disk: Path) -> None:
    def remount(how: str) -> None:
        subprocess.run([need("mount"), "-o", f"remount,{how}", small_disk], check=True)

    remount("ro")
    with running(folder, config=canary_in(small_disk / "probe")) as daemon:
        page = refuses(daemon, "read-only")
        assert f"{small_disk / 'probe'}: the file system is read-only; mount it writable, or name another" in page

        remount("rw")
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1)


def test_a_probe_directory_that_is_somebodys_until_it_is_empty(folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("years of work")
    with running(folder, config=canary_in(theirs)) as daemon:
        page = refuses(daemon, "not-ours")
        assert f"{theirs}: is not empty and has no .plumbline-probe; name a directory that does not exist yet" in page
        assert (theirs / "thesis.tex").read_text() == "years of work"

        (theirs / "thesis.tex").unlink()
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1)


# --- disks that hang


def test_a_disk_that_never_answers_holds_nothing_up(folder: Path, tmp_path: Path) -> None:
    """A pipe without a writer stands for an attribute whose reading is an I/O request, such as a virtio serial."""
    major, minor = os.major(folder.stat().st_dev), os.minor(folder.stat().st_dev)
    sysfs = tmp_path / "sys"
    disk = sysfs / "devices" / "hung"
    for directory in (sysfs / "block", sysfs / "class" / "block", sysfs / "dev" / "block", disk):
        directory.mkdir(parents=True)
    os.mkfifo(disk / "size")
    os.mkfifo(disk / "serial")
    (disk / "dev").write_text(f"{major}:{minor}\n")
    for link in (
        sysfs / "block" / "hung",
        sysfs / "class" / "block" / "hung",
        sysfs / "dev/block" / f"{major}:{minor}",
    ):
        link.symlink_to(disk)

    with running(folder, "--path.sysfs", sysfs, config=canary_in(folder / "probe")) as daemon:
        states = health(daemon.metrics())
        assert states["device"] == (1, 0)
        assert {success for success, _ in states.values()} == {1}
        assert "the disk below does not answer; its class is unknown" in daemon.said()
        assert daemon.metrics().labels("plumbline_probe_info", "device_class") == {"unknown"}
        assert daemon.get("/").status == 200
        assert daemon.reload(QUIET).endswith("reloaded\n")
        code, took = daemon.stop()

    assert (code, took < STOP_WITHIN_S) == (0, True), took
