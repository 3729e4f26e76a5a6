"""More disks than the table of the BPF program has room for: real programs and a real disk, in a made-up sysfs."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.disk.blocklatency import BlockLatency
from plumbline.sources.disk.latencymaps import SLOT_BYTES
from support.disks import disk_folder
from support.programs import need

pytestmark = [pytest.mark.needs_root]
MANY = 10_000


@pytest.fixture
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with ExitStack() as undo:
        image = undo.enter_context(disk_folder(tmp_path_factory)) / "image"
        image.write_bytes(os.urandom(4 << 20))
        made = subprocess.run(
            [need("losetup"), "--find", "--show", "--direct-io=on", image], capture_output=True, text=True, check=False
        )
        if made.returncode:
            pytest.skip(f"no loop device here: {made.stderr.strip()}")
        device = Path(made.stdout.strip())
        undo.callback(subprocess.run, ["losetup", "--detach", device], check=True)
        yield device


def read(device: Path, count: int) -> None:
    """So many reads of 4 KiB, each a request of its own."""
    command = [need("dd"), f"if={device}", "of=/dev/null", "bs=4k", f"count={count}", "iflag=direct", "status=none"]
    subprocess.run(command, check=True)


def reads(latency: BlockLatency, disk: str) -> int:
    (found,) = (each for each in latency.value.disks if each.device == disk)
    return sum(found.times["read"].device.counts)


def disks(sys: Path, names: list[str]) -> None:
    for name in names:
        (sys / "block" / name).mkdir(parents=True)


def test_ten_thousand_disks(loop: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    roots = Roots.under(tmp_path)
    (roots.sys / "kernel/btf").mkdir(parents=True)
    (roots.sys / "kernel/btf/vmlinux").touch()
    (roots.proc).mkdir(parents=True)
    (roots.proc / "thread-self").symlink_to("/proc/thread-self")
    (roots.proc / "self").symlink_to("/proc/self")
    disks(roots.sys, [loop.name, "later"])
    latency = BlockLatency(roots, keep=bool)
    latency.open()
    try:
        read(loop, 64)
        before = reads(latency, loop.name)
        assert before >= 64
        assert latency.value.without_room == ()

        many = [f"disk{number}" for number in range(MANY)]
        disks(roots.sys, many)
        latency.refresh()
        full = latency.value
        assert len(full.without_room) == MANY + 2 - len(full.disks)
        read(loop, 64)
        assert reads(latency, loop.name) >= before + 64
        said = [record.getMessage() for record in caplog.records]
        assert len(said) == 1
        assert f"no room in the table for {len(full.without_room)} disks" in said[0]
        assert len(said[0]) < 200
        latency.refresh()
        assert len(caplog.records) == 1

        # others leave, and a name that had no room gets one: from 0, although its slot had counts of another disk
        counted = reads(latency, loop.name)
        for name in (*many, loop.name):
            shutil.rmtree(roots.sys / "block" / name)
        disks(roots.sys, [f"new{number}" for number in range(12)])
        latency.refresh()
        assert latency.value.without_room == ()
        assert {each.device for each in latency.value.disks} == {"later", *(f"new{number}" for number in range(12))}
        for name in ("later", "new0", "new11"):
            assert reads(latency, name) == 0
        disks(roots.sys, [loop.name])
        latency.refresh()
        read(loop, 32)
        assert 32 <= reads(latency, loop.name) < counted + 32
    finally:
        latency.close()


def test_the_memory_of_ten_thousand_disks_is_bounded(tmp_path: Path) -> None:
    """A start on such a host: the tables are not made for all of them."""
    roots = Roots.under(tmp_path)
    (roots.sys / "kernel/btf").mkdir(parents=True)
    (roots.sys / "kernel/btf/vmlinux").touch()
    roots.proc.mkdir(parents=True)
    (roots.proc / "thread-self").symlink_to("/proc/thread-self")
    (roots.proc / "self").symlink_to("/proc/self")
    (roots.sys / "devices/system/cpu").mkdir(parents=True)
    (roots.sys / "devices/system/cpu/possible").write_text("0-511\n")
    disks(roots.sys, [f"disk{number}" for number in range(MANY)])
    latency = BlockLatency(roots, keep=bool)
    latency.open()
    try:
        reading = latency.value
        attached = latency._attached
        assert attached is not None
        assert attached.sizes.histogram_entries * SLOT_BYTES <= 64 << 20
        assert len(reading.disks) > 700
        assert len(reading.disks) + len(reading.without_room) == MANY
    finally:
        latency.close()
