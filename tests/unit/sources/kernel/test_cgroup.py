"""Limits of control groups: files as kernels 4.19 (version 1) and 6.12 (version 2) write them."""

from pathlib import PurePosixPath

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel.cgroup import (
    CpuQuota,
    GroupLimits,
    IoLimit,
    parse_io_max,
    parse_membership,
    parse_periods,
    parse_quota,
    parse_throttle,
    read_limits,
)

V1 = "9:name=systemd:/\n7:blkio:/ceph/osd.1\n4:cpu,cpuacct:/ceph/osd.1\n0::/\n"
STAT = "nr_periods 1200\nnr_throttled 480\nthrottled_time 41000000000\n"


@pytest.fixture
def host(tmp_path):
    """``host(path, text)`` writes one file below the root."""

    def write(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block/8:16").symlink_to("../../devices/pci0000:00/block/sdb")
    return write


@pytest.fixture
def roots(tmp_path):
    return Roots.under(tmp_path)


def test_version_1_limits_of_the_group_and_of_those_above_it(host, roots):
    host("proc/42/cgroup", V1)
    blkio = "sys/fs/cgroup/blkio/ceph"
    host(f"{blkio}/osd.1/blkio.throttle.write_iops_device", "8:16 30\n7:0 5\n")
    host(f"{blkio}/osd.1/blkio.throttle.read_bps_device", "8:16 1048576\n")
    host(f"{blkio}/blkio.throttle.write_iops_device", "8:16 20\n")
    host("sys/fs/cgroup/blkio/blkio.throttle.write_iops_device", "8:16 1\n")  # the root's hold for nobody
    host("sys/fs/cgroup/cpu,cpuacct/ceph/osd.1/cpu.cfs_quota_us", "-1\n")
    host("sys/fs/cgroup/cpu,cpuacct/ceph/cpu.cfs_quota_us", "50000\n")
    host("sys/fs/cgroup/cpu,cpuacct/ceph/cpu.stat", STAT)
    assert read_limits(roots, 42) == GroupLimits(
        io=(
            IoLimit("/ceph/osd.1", "7:0", "write", "iops", 5),
            IoLimit("/ceph/osd.1", "sdb", "read", "bps", 1048576),
            IoLimit("/ceph", "sdb", "write", "iops", 20),
        ),
        cpu=CpuQuota("/ceph", 1200, 480),
    )


@pytest.mark.parametrize("mount", ["sys/fs/cgroup", "sys/fs/cgroup/unified"])
def test_version_2(host, roots, mount):
    name = "/system.slice/ceph-osd@1.service"
    host("proc/42/cgroup", f"0::{name}\n")
    host(f"{mount}{name}/io.max", "8:16 rbps=max wbps=2097152 riops=max wiops=30\n")
    host(f"{mount}{name}/cpu.max", "50000 100000\n")
    host(f"{mount}{name}/cpu.stat", f"usage_usec 90\n{STAT}")
    host(f"{mount}/system.slice/io.max", "8:16 rbps=max wbps=max riops=max wiops=100\n")
    assert read_limits(roots, 42) == GroupLimits(
        io=(IoLimit(name, "sdb", "write", "bps", 2097152), IoLimit(name, "sdb", "write", "iops", 30)),
        cpu=CpuQuota(name, 1200, 480),
    )


def test_a_controller_that_is_mounted_alone(host, roots):
    host("proc/42/cgroup", "4:cpu,cpuacct:/a\n")
    host("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n")
    host("sys/fs/cgroup/cpu/a/cpu.stat", STAT)
    assert read_limits(roots, 42) == GroupLimits(cpu=CpuQuota("/a", 1200, 480))


def test_nothing_is_limited(host, roots):
    host("proc/42/cgroup", "0::/a\n")
    host("sys/fs/cgroup/a/io.max", "")
    host("sys/fs/cgroup/a/cpu.max", "max 100000\n")
    host("sys/fs/cgroup/a/cpu.stat", STAT)
    assert read_limits(roots, 42) == GroupLimits()


def test_a_process_that_cant_be_seen_is_unknown(host, roots):
    host("proc/42/cgroup", "0::/../ceph-osd@1.service\n")  # another control group namespace
    assert read_limits(roots, 42) is None
    assert read_limits(roots, 43) is None


def test_a_group_that_was_removed():
    assert parse_membership("0::/a:b (deleted)\n") == {"": PurePosixPath("/a:b")}


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_throttle, "8:16 max"),
        (parse_throttle, "sdb 30"),
        (parse_io_max, "sdb wiops=30"),
        (parse_io_max, "8:16 wiops=many"),
        (parse_quota, "half"),
        (parse_quota, ""),
        (parse_periods, "nr_periods -1"),
    ],
)
def test_malformed_files_are_refused(parse, text):
    with pytest.raises(ParseError, match=r"^here"):
        parse(text, source="here")


def test_newer_keys_are_skipped_and_missing_counters_are_none():
    assert parse_io_max("8:16 wiops=30 latency=5\n", source="") == {("8:16", "write", "iops"): 30}
    assert parse_periods("usage_usec 90\n", source="") is None
