"""Which disk lies below a path, on filesystems this kernel really mounts from loop devices.

A loop device over a file is the one disk that a test may make and break; what lies below it is the file's disk.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.disk.block import BlockDevice, device_below, read_block_devices
from plumbline.sources.disk.diskstats import WholeDisks, read_diskstats, read_whole_disks
from plumbline.sources.disk.diskusers import read_disk_users
from support.loops import add_partition, let_go

HERE = Roots.under(Path("/"))
SIZE = 320 * 2**20  # sparse; mkfs.xfs takes no less than 300 MiB


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def loop(tmp_path: Path, undo: ExitStack) -> Callable[..., str]:
    """Attach a new sparse file to a free loop device; detached after the test."""
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("attaching a loop device needs root and losetup")

    def attach(directory: Path = tmp_path, *options: str) -> str:
        image = directory / "disk image"
        with image.open("wb") as file:
            file.truncate(SIZE)
        try:
            device = run("losetup", "--find", "--show", *options, str(image))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no loop device here: {error.stderr.strip()}")
        undo.callback(let_go, device)
        return device

    return attach


@pytest.fixture
def mount(undo: ExitStack) -> Callable[..., Path]:
    """Mount something; unmounted after the test."""

    def mount_on(directory: Path, *argv: str) -> Path:
        directory.mkdir(exist_ok=True)
        try:
            run("mount", *argv, str(directory))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this kernel does not mount it: {error.stderr.strip()}")
        undo.callback(run, "umount", str(directory))
        return directory

    return mount_on


@pytest.fixture
def own_disk(tmp_path: Path) -> BlockDevice:
    """What the tests' files lie on."""
    device = device_below(tmp_path, HERE)
    if device is None:
        pytest.skip("the temporary directory is on no disk")
    return device


def make_filesystem(kind: str, device: str) -> None:
    tool = f"mkfs.{kind}"
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    run(tool, "-q", *([] if kind == "ext4" else ["-f"]), device)


def test_every_listed_disk_is_in_sysfs() -> None:
    skipped: list[tuple[str, str]] = []
    devices = read_block_devices(HERE, on_skip=lambda *item: skipped.append(item))
    assert skipped == []
    for device in devices:
        number = f"{device.major}:{device.minor}"
        assert (HERE.sys / "dev/block" / number).resolve() == (HERE.sys / "block" / device.name).resolve()


def test_a_real_file(own_disk: BlockDevice, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    assert device_below(file, HERE) == own_disk
    assert own_disk.size_bytes > 0
    assert own_disk.transport is not None


@pytest.mark.parametrize("path", ["/proc", "/sys", "/dev/shm"])
def test_filesystems_without_a_disk(path: str) -> None:
    assert device_below(Path(path), HERE) is None


@pytest.mark.needs_root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_filesystem_in_a_file(
    kind: str, loop: Callable[..., str], mount: Callable[..., Path], own_disk: BlockDevice, tmp_path: Path
) -> None:
    device = loop()
    make_filesystem(kind, device)
    directory = mount(tmp_path / "mounted", device)
    assert device_below(directory, HERE) == own_disk
    assert device_below(directory / "not there yet", HERE) == own_disk


@pytest.mark.needs_root
def test_a_btrfs_subvolume(
    loop: Callable[..., str], mount: Callable[..., Path], own_disk: BlockDevice, tmp_path: Path
) -> None:
    """Each subvolume has a device number of its own, which no mount line shows."""
    device = loop()
    make_filesystem("btrfs", device)
    directory = mount(tmp_path / "mounted", device)
    run("btrfs", "subvolume", "create", str(directory / "sub"))
    assert (directory / "sub").stat().st_dev != directory.stat().st_dev
    assert device_below(directory / "sub", HERE) == own_disk


@pytest.mark.needs_root
def test_an_overlay_counts_by_its_upper_directory(
    loop: Callable[..., str], mount: Callable[..., Path], own_disk: BlockDevice, tmp_path: Path
) -> None:
    device = loop()
    make_filesystem("ext4", device)
    upper = mount(tmp_path / "upper, fs", device)
    lower = mount(tmp_path / "lower", "-t", "tmpfs", "tmpfs")
    for name in ("up", "work"):
        (upper / name).mkdir()
    escaped = str(upper).replace(",", r"\,")
    options = f"lowerdir={lower},upperdir={escaped}/up,workdir={escaped}/work"
    merged = mount(tmp_path / "merged", "-t", "overlay", "overlay", "-o", options)
    assert device_below(merged, HERE) == own_disk


@pytest.mark.needs_root
def test_an_overlay_on_tmpfs_has_no_disk(loop: Callable[..., str], mount: Callable[..., Path], tmp_path: Path) -> None:
    memory = mount(tmp_path / "memory", "-t", "tmpfs", "tmpfs")
    for name in ("up", "work"):
        (memory / name).mkdir()
    options = f"lowerdir=/usr,upperdir={memory}/up,workdir={memory}/work"
    merged = mount(tmp_path / "merged", "-t", "overlay", "overlay", "-o", options)
    assert device_below(merged, HERE) is None


@pytest.mark.needs_root
def test_a_file_on_tmpfs_leaves_the_loop_device_itself(
    loop: Callable[..., str], mount: Callable[..., Path], tmp_path: Path
) -> None:
    device = loop(mount(tmp_path / "memory", "-t", "tmpfs", "tmpfs"))
    make_filesystem("ext4", device)
    found = device_below(mount(tmp_path / "mounted", device), HERE)
    assert found is not None
    assert (found.name, found.transport, found.device_class) == (Path(device).name, "loop", None)


@pytest.mark.needs_root
def test_a_partition(
    loop: Callable[..., str], mount: Callable[..., Path], own_disk: BlockDevice, tmp_path: Path
) -> None:
    device = loop(tmp_path, "--partscan")
    make_filesystem("ext4", add_partition(device, 1, 2**20, SIZE - 2**20))
    assert device_below(mount(tmp_path / "mounted", f"{device}p1"), HERE) == own_disk
    keep = WholeDisks(HERE, exclude=re.compile(""))
    names = {disk.name for disk in read_diskstats(HERE, keep=keep)}
    assert Path(device).name in names
    assert f"{Path(device).name}p1" not in names


@pytest.mark.needs_root
def test_a_loop_device_among_the_disks(loop: Callable[..., str], own_disk: BlockDevice) -> None:
    name = Path(loop()).name
    devices = read_block_devices(HERE, on_skip=lambda *_: None, keep=lambda candidate: candidate == name)
    assert [(device.name, device.size_bytes, device.transport) for device in devices] == [(name, SIZE, "loop")]


def users_of(device: str) -> set[tuple[str, str]]:
    return {(kind, name) for used, kind, name in read_disk_users(HERE).uses if used == Path(device).name}


@pytest.mark.needs_root
def test_a_filesystem_on_a_partition_is_a_use_of_the_disk(
    loop: Callable[..., str], mount: Callable[..., Path], tmp_path: Path
) -> None:
    device = loop(tmp_path, "--partscan")
    assert users_of(device) == set()
    partition = add_partition(device, 1, 2**20, SIZE - 2**20)
    make_filesystem("ext4", partition)
    directory = mount(tmp_path / "mounted here", partition)
    bound = mount(tmp_path / "bound", "--bind", str(directory))
    assert bound.is_dir()
    assert users_of(device) == {("filesystem", str(directory))}
    assert users_of(partition) == set()  # reported by whole disks
    keep = WholeDisks(HERE, exclude=re.compile(""), partitions=True)
    names = {disk.name for disk in read_whole_disks(HERE, keep)}
    assert {Path(device).name, Path(partition).name} <= names


@pytest.mark.needs_root
def test_a_btrfs_is_a_use_of_all_its_disks(
    loop: Callable[..., str], mount: Callable[..., Path], tmp_path: Path
) -> None:
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("mkfs.btrfs is not installed")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    devices = [loop(tmp_path / "one"), loop(tmp_path / "two")]
    run("mkfs.btrfs", "-q", "-f", *devices)
    if shutil.which("btrfs"):
        run("btrfs", "device", "scan", *devices)
    directory = mount(tmp_path / "mounted", devices[1])
    assert [users_of(device) for device in devices] == [{("filesystem", str(directory))}] * 2


@pytest.mark.needs_root
def test_swap_on_a_disk_and_in_a_file(
    loop: Callable[..., str], mount: Callable[..., Path], undo: ExitStack, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    device, other = loop(tmp_path / "one"), loop(tmp_path / "two")
    make_filesystem("ext4", other)
    file = mount(tmp_path / "mounted", other) / "swap file"
    file.write_bytes(bytes(4 * 2**20))
    file.chmod(0o600)
    for area in (device, str(file)):
        try:
            run("mkswap", area)
            run("swapon", area)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no swap here: {error}")
        undo.callback(run, "swapoff", area)
    assert users_of(device) == {("swap", device)}
    assert users_of(other) == {("filesystem", str(file.parent)), ("swap", str(file))}
