from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.mounts import Mount, mount_of, parse_mount_id, parse_mountinfo, read_mounts

HERE = Roots.under(Path("/"))


def test_the_manual_pages_example() -> None:
    text = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    assert parse_mountinfo(text) == (
        Mount(
            mount_id=36,
            major=98,
            minor=0,
            root="/mnt1",
            mount_point="/mnt2",
            filesystem="ext3",
            source="/dev/root",
            options=("rw", "errors=continue"),
        ),
    )


@pytest.mark.parametrize("optional", ["", "shared:1 ", "shared:1 master:2 propagate_from:3 unbindable "])
def test_any_number_of_optional_fields(optional: str) -> None:
    (mount,) = parse_mountinfo(f"27 1 254:0 / / rw {optional}- ext4 /dev/vda rw\n")
    assert (mount.filesystem, mount.source) == ("ext4", "/dev/vda")


def test_escapes_are_undone() -> None:
    text = r"40 27 0:40 / /a\040b rw - overlay over\134lay rw,lowerdir=/l,upperdir=/u\054\040p,workdir=/w"
    (mount,) = parse_mountinfo(text)
    assert (mount.mount_point, mount.source) == ("/a b", "over\\lay")
    assert mount.option("upperdir") == "/u, p"
    assert mount.option("workdir") == "/w"
    assert mount.option("absent") is None
    assert mount.option("rw") is None


def test_a_mount_point_that_is_a_dash() -> None:
    (mount,) = parse_mountinfo("40 27 0:40 / - rw - tmpfs - rw\n")
    assert (mount.mount_point, mount.filesystem, mount.source) == ("-", "tmpfs", "-")


@pytest.mark.parametrize(
    "line",
    [
        "36",
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 ext3 /dev/root rw",
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root",
        "36 35 98 /mnt1 /mnt2 rw - ext3 /dev/root rw",
        "36 35 98:x /mnt1 /mnt2 rw - ext3 /dev/root rw",
        "x 35 98:0 /mnt1 /mnt2 rw - ext3 /dev/root rw",
    ],
)
def test_malformed_lines(line: str) -> None:
    with pytest.raises(ParseError, match=r"^mountinfo:2: not a mountinfo line"):
        parse_mountinfo(f"27 1 254:0 / / rw - ext4 /dev/vda rw\n{line}\n")


def test_mount_id() -> None:
    assert parse_mount_id("pos:\t0\nflags:\t012100000\nmnt_id:\t27\nino:\t2\n") == 27
    with pytest.raises(ParseError, match="no mnt_id line"):
        parse_mount_id("pos:\t0\n")
    with pytest.raises(ParseError, match="fdinfo:1: mnt_id is not a number"):
        parse_mount_id("mnt_id:\tx\n")


def test_mounts_of_this_machine() -> None:
    proc, root = mount_of(Path("/proc/self"), HERE), mount_of(Path("/"), HERE)
    assert proc is not None
    assert (proc.mount_point, proc.filesystem) == ("/proc", "proc")
    assert root is not None
    assert root.mount_point == "/"


def test_an_absent_path() -> None:
    with pytest.raises(Unavailable, match="No such file or directory"):
        mount_of(Path("/nonexistent"), HERE)


def test_a_mount_of_another_namespace(tmp_path: Path) -> None:
    """A procfs whose mountinfo doesn't list the mount: as in a container that sees the host's /proc."""
    own = tmp_path
    (own / "proc/self").mkdir(parents=True)
    (own / "proc/self/fdinfo").symlink_to("/proc/self/fdinfo")
    (own / "proc/self/mountinfo").write_text("999999 1 254:0 / / rw - ext4 /dev/vda rw\n")
    assert mount_of(Path("/"), Roots.under(own)) is None


def test_the_hosts_mounts_or_else_our_own(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    with pytest.raises(Unavailable, match=r"mountinfo: can't be read; is procfs mounted there\?"):
        read_mounts(roots)
    line = "1 1 0:5 / {} rw - tmpfs none rw\n"
    for process, mount_point in (("self", "/own"), ("1", "/hosts")):
        (tmp_path / "proc" / process).mkdir(parents=True)
        (tmp_path / "proc" / process / "mountinfo").write_text(line.format(mount_point))
        assert [(mount.root, mount.mount_point) for mount in read_mounts(roots)] == [("/", mount_point)]
