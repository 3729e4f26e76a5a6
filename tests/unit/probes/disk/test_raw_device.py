"""A raw disk can be read and not written, and nothing but the disk that was meant is opened: on real loop devices."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plumbline.config.model import Config
from plumbline.config.probes.disk import FioConfig, RawCanaryConfig
from plumbline.config.types import FieldError
from plumbline.config.workloads import BlockWorkload, load_catalogue
from plumbline.errors import ProbeRefused
from plumbline.probes.canary import canary_worker
from plumbline.probes.disk import raw_canary_worker, raw_device
from plumbline.probes.disk.canaries import DeviceTarget
from plumbline.probes.disk.fio_raw import RawFioPlan
from plumbline.probes.disk.raw_device import open_device
from support.descriptors import open_descriptors
from support.filesystems import MIB, Mounts, run
from support.loops import Loops, checksum
from support.offenders import for_every

pytestmark = pytest.mark.needs_root
CATALOGUE = load_catalogue()
WRITING = [each for each in CATALOGUE.by_id.values() if isinstance(each, BlockWorkload) and "write" in each.operations]


@pytest.fixture
def disk(loops: Loops) -> Iterator[str]:
    """A disk of which nothing may have changed at the end."""
    name = loops.disk()
    before = checksum(name)
    yield name
    assert checksum(name) == before


def opened(name: str, dev: Path = Path("/dev"), block_bytes: int = 4096) -> raw_device.RawDevice:
    return open_device(name, dev=str(dev), sys="/sys", block_bytes=block_bytes)


def reason(call: Callable[[], object]) -> str:
    """Why it was refused; the message names the node and says what to do."""
    with pytest.raises(ProbeRefused) as caught:
        call()
    assert str(caught.value).endswith(raw_device.ADVICE[caught.value.reason])
    return caught.value.reason


def node(dev: Path, name: str, like: str) -> None:
    dev.mkdir(exist_ok=True)
    os.mknod(dev / name, stat.S_IFBLK | 0o600, os.stat(f"/dev/{like}").st_rdev)  # noqa: PTH116


class TestReadOnly:
    def test_the_descriptor_says_so(self, disk: str) -> None:
        device = opened(disk)
        flags = fcntl.fcntl(device.fd, fcntl.F_GETFL)
        assert flags & os.O_ACCMODE == os.O_RDONLY
        assert flags & os.O_DIRECT
        assert fcntl.fcntl(device.fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        assert device.size_bytes == 8 * MIB
        device.close()
        device.close()

    def test_every_way_to_write_is_refused_by_the_kernel(self, disk: str) -> None:
        """As root, to whom permissions are nothing."""
        device = opened(disk)
        buffer = mmap.mmap(-1, 4096)
        try:
            ways: list[Callable[[], object]] = [
                lambda: os.pwrite(device.fd, buffer, 0),
                lambda: os.pwritev(device.fd, (buffer,), 4096),
                lambda: os.write(device.fd, buffer),
                lambda: os.posix_fallocate(device.fd, 0, 4096),
                lambda: os.ftruncate(device.fd, 0),
                lambda: fcntl.ioctl(device.fd, 0x1277, bytes(16)),  # BLKDISCARD
                lambda: fcntl.ioctl(device.fd, 0x127F, bytes(16)),  # BLKZEROOUT
            ]
            for way in ways:
                with pytest.raises(OSError) as caught:  # noqa: PT011
                    way()
                assert caught.value.errno in (errno.EBADF, errno.EINVAL)
            with pytest.raises(PermissionError):
                mmap.mmap(device.fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            device.close()

    def test_the_reader_has_no_code_that_writes(self) -> None:
        reads = [
            canary_worker.Reader,
            raw_canary_worker.read_device,
            raw_canary_worker.watch_device,
            canary_worker.operate,
        ]
        names = {name for each in reads for name in _names(each)}
        assert "preadv" in names
        assert not {name for name in names if "write" in name.lower() and name != "Writer"} - {"stdout", "stderr"}
        assert "Writer" not in names
        assert raw_device.READ_ONLY & os.O_ACCMODE == os.O_RDONLY
        assert raw_device.READ_ONLY & (os.O_CREAT | os.O_TRUNC) == 0


def _names(of: object) -> set[str]:
    codes = (
        [value.__code__ for value in vars(of).values() if hasattr(value, "__code__")] if isinstance(of, type) else []
    )
    codes += [of.__code__] if hasattr(of, "__code__") else []
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [each for each in code.co_consts if hasattr(each, "co_names")]
    return names


class TestRefused:
    """The eight ways that a raw disk could come to harm, each tried, and what said no."""

    @for_every("workload", WRITING, ids=lambda each: each.id)
    def test_1_a_workload_that_writes(self, workload: BlockWorkload) -> None:
        fio = FioConfig(name="a", workload=workload.id, devices=("sdb",))
        canary = RawCanaryConfig(name="a", devices=("sdb",), workload=workload.id)
        for probe in (fio, canary):
            with pytest.raises(FieldError):
                probe.chosen(CATALOGUE)
        with pytest.raises(ValueError, match="not a direct read"):
            DeviceTarget(
                name="a",
                target="sdb",
                workloads=((workload, ()),),
                device_class="ssd",
                dev=Path("/dev"),
                sys=Path("/"),
            )
        with pytest.raises(ValueError, match="not a direct read"):
            RawFioPlan(
                probe="a", workload=workload, device="sdb", device_class="ssd", dev="/dev", sys="/sys", runtime_s=1.0,
                timeout_s=10.0,
            )  # fmt: skip

    def test_2_a_mounted_disk_is_read_and_not_written(self, loops: Loops, tmp_path: Path) -> None:
        mounts = Mounts(tmp_path)
        point = mounts.ext4(16, name="mounted")
        try:
            name = run("findmnt", "-no", "SOURCE", point).strip().removeprefix("/dev/")
            device = opened(name)
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.pwrite(device.fd, mmap.mmap(-1, 4096), 0)
            device.close()
        finally:
            mounts.close()

    def test_3_a_disk_with_a_signature_of_an_osd_is_read_and_not_written(self, loops: Loops, tmp_path: Path) -> None:
        image = tmp_path / "osd.img"
        image.write_bytes(b"bluestore block device\n" + bytes(8 * MIB - 23))
        name = loops.disk(image=image)
        device = opened(name)
        buffer = mmap.mmap(-1, 4096)
        assert os.preadv(device.fd, (buffer,), 0) == 4096
        assert buffer[:22] == b"bluestore block device"
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(device.fd, mmap.mmap(-1, 4096), 0)
        device.close()
        assert image.read_bytes()[:23] == b"bluestore block device\n"

    def test_4_a_symbolic_link_under_the_name(self, disk: str, tmp_path: Path) -> None:
        dev = tmp_path / "dev"
        dev.mkdir()
        (dev / disk).symlink_to(f"/dev/{disk}")
        assert reason(lambda: opened(disk, dev)) == "symlink"

    def test_5_another_disk_swapped_in_under_the_name(self, loops: Loops, disk: str, tmp_path: Path) -> None:
        node(tmp_path / "dev", disk, like=loops.disk())
        assert reason(lambda: opened(disk, tmp_path / "dev")) == "not-the-disk"

    @pytest.mark.parametrize("kind", ["file", "pipe", "character device"])
    def test_6_something_else_under_the_name(self, disk: str, tmp_path: Path, kind: str) -> None:
        dev = tmp_path / "dev"
        dev.mkdir()
        if kind == "file":
            (dev / disk).write_bytes(bytes(MIB))
        elif kind == "pipe":
            os.mkfifo(dev / disk)  # to open it would wait for ever
        else:
            os.mknod(dev / disk, stat.S_IFCHR | 0o600, os.stat(f"/dev/{disk}").st_rdev)  # noqa: PTH116
        assert reason(lambda: opened(disk, dev)) == "not-the-disk"

    @pytest.mark.parametrize("name", ["../sda", "..", ".", "", "/etc/passwd", "disk/../../x"])
    def test_7_a_path_outside_dev(self, tmp_path: Path, name: str) -> None:
        assert reason(lambda: opened(name)) == "not-a-disk"
        with pytest.raises(FieldError, match="a kernel name such as sdb"):
            RawCanaryConfig(name="a", devices=(name,))
        with pytest.raises(FieldError, match="a kernel name such as sdb"):
            FioConfig(name="a", workload="randread-4k-qd1-j1", devices=(name,))

    def test_8_a_partition_of_a_disk(self, loops: Loops, tmp_path: Path) -> None:
        table = bytearray(512)  # MBR: one Linux partition of 2 MiB, 1 MiB from the start
        table[446:462] = (
            bytes((0, 0, 0, 0, 0x83, 0, 0, 0)) + (2048).to_bytes(4, "little") + (4096).to_bytes(4, "little")
        )
        table[510:] = b"\x55\xaa"
        image = tmp_path / "parted.img"
        image.write_bytes(bytes(table) + bytes(8 * MIB - 512))
        name = loops.disk(image=image, options=("--partscan",))
        if not Path(f"/sys/class/block/{name}p1/partition").exists():
            pytest.skip("this kernel reads no partition table from loop devices")
        before = checksum(name)
        assert reason(lambda: opened(f"{name}p1")) == "not-a-disk"
        assert checksum(name) == before

    def test_8_a_partition_as_sysfs_shows_it(self, tmp_path: Path) -> None:
        (tmp_path / "block/sda").mkdir(parents=True)
        partition = tmp_path / "class/block/sda1"
        partition.mkdir(parents=True)
        (partition / "partition").write_text("1\n")
        with pytest.raises(ProbeRefused, match="/dev/sda1: is a partition; name a whole disk") as caught:
            open_device("sda1", dev="/dev", sys=str(tmp_path), block_bytes=4096)
        assert caught.value.reason == "not-a-disk"


class TestOtherTrouble:
    def test_a_disk_that_is_not_there(self) -> None:
        assert reason(lambda: opened("sdzzz")) == "device-gone"

    def test_a_name_without_a_node(self, disk: str, tmp_path: Path) -> None:
        """As PrivateDevices= has it."""
        assert reason(lambda: opened(disk, tmp_path)) == "permission"

    def test_a_disk_smaller_than_a_block(self, loops: Loops, tmp_path: Path) -> None:
        image = tmp_path / "small.img"
        image.write_bytes(bytes(2048))
        assert reason(lambda: opened(loops.disk(image=image))) == "too-small"

    def test_a_block_that_is_not_made_of_the_disks(self, loops: Loops) -> None:
        name = loops.disk(options=("--sector-size", "4096"))
        opened(name).close()
        assert reason(lambda: opened(name, block_bytes=512)) == "no-direct-io"

    def test_a_disk_that_may_not_be_read(self, disk: str) -> None:
        attempt = """
import os, sys
from plumbline.errors import ProbeRefused
from plumbline.probes.disk.raw_device import open_device
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    open_device(sys.argv[1], dev="/dev", sys="/sys", block_bytes=4096)
except ProbeRefused as refusal:
    print(refusal.reason, refusal)
"""
        said = subprocess.run(
            (sys.executable, "-c", attempt, disk), stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        assert said.startswith("permission ")
        assert "raw-devices.conf" in said

    def test_no_descriptor_is_left(self, disk: str, tmp_path: Path) -> None:
        before = open_descriptors()
        for _ in range(3):
            opened(disk).close()
            reason(lambda: opened(disk, block_bytes=64 * MIB))
        assert open_descriptors() <= before


def test_the_default_configuration_reads_no_raw_disk() -> None:
    assert not [each for each in Config().probes if isinstance(each, RawCanaryConfig)]
