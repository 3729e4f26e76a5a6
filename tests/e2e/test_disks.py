"""Disks that come, are used and go, as the running daemon shows them."""

from __future__ import annotations

import contextlib
import json
import os
import re
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
FIXTURES = Path(__file__).parents[1] / "fixtures"


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
    """Long before the next look by the clock, which for facts comes after five minutes."""
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
            assert (use.labels["use"], use.labels["user"]) == ("filesystem", str(mounted))
        finally:
            run("umount", str(mounted))
        assert "Traceback" not in daemon.said()


def test_real_disks_are_present_and_remembered(folder: Path) -> None:
    """Those of this machine that are built in: a volume of a hypervisor comes and goes."""
    real = {
        path.name.replace("!", "/")
        for path in Path("/sys/block").iterdir()
        if not re.search("/(virtual|virtio[0-9]+|vbd-[0-9]+|usb[0-9]+|session[0-9]+)/", str(path.resolve()))
        and not path.name.startswith(("sr", "fd", "nbd"))
    }
    with running(folder, config={"probes": []}) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_collector_success", collector="diskpresence") == 1)
        eventually(lambda: daemon.metrics().labels("plumbline_disk_present", "device") == real)
        assert {each.value for each in daemon.metrics().series("plumbline_disk_present")} <= {1}
        state = daemon.storage / "state.json"
        daemon.stop()
    text = state.read_text()
    assert all(f'"device":"{name}"' in text for name in real)
    # one that was here before this start, and is not now
    content = json.loads(text)
    content["disks"] = [{"device": "sdzz", "serial": "GONE", "first_seen": 1, "last_seen": 4e9}, *content["disks"]]
    state.write_text(json.dumps(content, separators=(",", ":")))
    with running(folder, config={"probes": []}) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_disk_present", device="sdzz", serial="GONE") == 0)


def test_a_disk_that_does_not_answer_is_still_there_and_one_that_went_is_not(folder: Path, tmp_path: Path) -> None:
    """Whoever opens a pipe that nobody writes to hangs, as a read of a hung disk's serial number does."""
    host = Path(shutil.copytree(FIXTURES / "ceph-cephadm-node", tmp_path / "host", symlinks=True))
    trees = {"procfs": "proc", "sysfs": "sys", "devfs": "dev", "udev": "run/udev", "etc": "etc", "var": "var"}
    flags = [part for flag, tree in trees.items() for part in (f"--path.{flag}", str(host / tree))]

    def present(scrape: Scrape) -> dict[str, float]:
        return {each.labels["device"]: each.value for each in scrape.series("plumbline_disk_present")}

    disks = {"nvme0n1", *(f"sd{letter}" for letter in "abcdefghijk")}
    with running(folder, *flags, config={"probes": []}) as daemon:
        eventually(lambda: present(daemon.metrics()) == dict.fromkeys(disks, 1))
        (info,) = daemon.metrics().series("plumbline_disk_info", device="sdb")
        assert info.labels["osd"] == "osd.0"

    model = host / "sys/block/sdb/device/model"
    model.unlink()
    os.mkfifo(model)
    (host / "sys/block/sdc").unlink()
    with running(folder, *flags, config={"probes": []}) as daemon:
        eventually(lambda: present(daemon.metrics()) == {**dict.fromkeys(disks, 1), "sdc": 0})
        now = daemon.metrics()
        assert now.series("plumbline_disk_info") == []  # the facts hang
        assert now.labels("plumbline_disk_use_info", "user", device="sdb", use="osd") == {"osd.0"}
        code, _ = daemon.stop()
        assert code == 0
