"""Disks that come, are used and go, as the running daemon shows them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.daemon import eventually, running
from support.scraped import Scrape

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="not root: can't attach loop devices"),
    pytest.mark.timeout(180),
]
SIZE = 32 * 2**20
EVERY_LOOK_S = 300
"""Without an event the daemon looks at the disks' facts no more often."""


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Callable[[], str]]:
    if not (shutil.which("losetup") and shutil.which("mkfs.ext4")):
        pytest.skip("needs losetup and mkfs.ext4")
    with contextlib.ExitStack() as stack:

        def attach_one() -> str:
            image = tmp_path / "image"
            with image.open("wb") as file:
                file.truncate(SIZE)
            try:
                device = run("losetup", "--find", "--show", str(image))
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no loop device here: {error.stderr.strip()}")
            stack.callback(run, "losetup", "--detach", device)
            return device

        yield attach_one


def size(scrape: Scrape, device: str) -> float | None:
    return scrape.get("plumbline_disk_size_bytes", device=device)


def test_a_new_disk_is_seen_by_its_event_and_its_filesystem_with_the_next(
    folder: Path, tmp_path: Path, attach: Callable[[], str]
) -> None:
    """Long before the next look by the clock."""
    config = {"probes": [], "devices": {"disk_exclude": "ram.*"}}
    with running(folder, config=config) as daemon:
        node = attach()
        device = Path(node).name
        eventually(lambda: size(daemon.metrics(), device) == SIZE)
        assert daemon.metrics().series("plumbline_disk_use_info", device=device) == []
        run("mkfs.ext4", "-q", node)
        mounted = tmp_path / "mounted"
        mounted.mkdir()
        run("mount", node, str(mounted))
        try:
            Path(f"/sys/block/{device}/uevent").write_text("change")
            eventually(lambda: daemon.metrics().series("plumbline_disk_use_info", device=device))
            (use,) = daemon.metrics().series("plumbline_disk_use_info", device=device)
            assert (use.labels["kind"], use.labels["name"]) == ("filesystem", str(mounted))
        finally:
            run("umount", str(mounted))
        assert "Traceback" not in daemon.said()


def test_real_disks_are_present_and_remembered(folder: Path) -> None:
    real = {
        path.name.replace("!", "/")
        for path in Path("/sys/block").iterdir()
        if "/virtual/" not in str(path.resolve()) and not path.name.startswith(("sr", "fd", "nbd"))
    }
    if not real:
        pytest.skip("no disk here but what the kernel made")
    with running(folder, config={"probes": []}) as daemon:
        eventually(lambda: daemon.metrics().labels("plumbline_disk_present", "device") == real)
        assert {each.value for each in daemon.metrics().series("plumbline_disk_present")} == {1}
        state = daemon.storage / "state.json"
        daemon.stop()
    text = state.read_text()
    assert all(f'"device":"{name}"' in text for name in real)
    # one that was here before this start, and is not now
    state.write_text(
        text.replace('"disks":[', '"disks":[{"device":"sdzz","serial":"GONE","first_seen":1,"last_seen":4e9},')
    )
    with running(folder, config={"probes": []}) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_disk_present", device="sdzz", serial="GONE") == 0)
