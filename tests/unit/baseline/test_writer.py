"""Writing a recorded baseline on a real file system."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.baseline.writer import check_target, kept, write_text
from plumbline.errors import BaselineError, PlumblineError
from support.manifest import changes, manifest


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_new_file(tmp_path):
    path = tmp_path / "baseline.yaml"
    assert write_text(path, "new µ\n", over=None) is None
    assert path.read_text("utf-8") == "new µ\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert names(tmp_path) == ["baseline.yaml"]


def test_an_existing_file_is_not_touched(tmp_path):
    path = tmp_path / "baseline.yaml"
    path.write_text("old")
    with pytest.raises(BaselineError, match=r"exists already; --force replaces it and keeps the old one as \.bak"):
        write_text(path, "new", over=None)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["baseline.yaml"]


def test_force_keeps_the_old_one(tmp_path):
    path = tmp_path / "baseline.yaml"
    backup = tmp_path / "baseline.yaml.bak"
    path.write_text("old")
    inode = path.stat().st_ino
    assert write_text(path, "new", over=kept(path)) == backup
    assert (path.read_text(), backup.read_text(), backup.stat().st_ino) == ("new", "old", inode)
    assert names(tmp_path) == ["baseline.yaml", "baseline.yaml.bak"]


def test_a_backup_is_never_written_over(tmp_path):
    """Whatever has the name: the next free one is taken, and said."""
    path = tmp_path / "baseline.yaml"
    path.write_text("first")
    (tmp_path / "baseline.yaml.bak").write_text("somebody's")
    (tmp_path / "baseline.yaml.bak-1").symlink_to("nowhere")
    os.mkfifo(tmp_path / "baseline.yaml.bak-2")
    before = manifest(tmp_path)
    del before["baseline.yaml"]
    assert write_text(path, "second", over=kept(path)) == tmp_path / "baseline.yaml.bak-3"
    assert write_text(path, "third", over=kept(path)) == tmp_path / "baseline.yaml.bak-4"
    assert changes(before, manifest(tmp_path)) == []
    copies = [(tmp_path / f"baseline.yaml.bak-{number}").read_text() for number in (3, 4)]
    assert (copies, path.read_text()) == (["first", "second"], "third")
    assert len(names(tmp_path)) == 6


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def _hard_link(path: Path) -> None:
    (path.parent / "other").write_text("other")
    path.hardlink_to(path.parent / "other")


def _link_to(target: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        (path.parent / "other").write_text("other")
        path.symlink_to(target)

    return make


def _of_another_user(path: Path) -> None:
    path.write_text("other")
    os.chown(path, 12345, 12345)


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "character device": (lambda path: os.mknod(path, 0o20666, os.makedev(1, 3)), "is not a regular file"),
    "block device": (lambda path: os.mknod(path, 0o60600, os.makedev(7, 250)), "is not a regular file"),
    "fifo": (os.mkfifo, "is not a regular file"),
    "socket": (_socket, "is not a regular file"),
    "directory": (Path.mkdir, "is a directory; name a file"),
    "link": (_link_to("other"), "is a symbolic link"),
    "dangling link": (_link_to("none"), "is a symbolic link"),
    "hard link": (_hard_link, "has 2 names"),
    "file of another user": (_of_another_user, "belongs to user 12345"),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes and owners need root")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ODD)
def test_only_a_regular_file_is_replaced(tmp_path, kind, force):
    """And where another stands, the advice is not to use force."""
    make, said = ODD[kind]
    path = tmp_path / "report.html"
    make(path)
    before = manifest(tmp_path)
    over = kept(path) if force else None
    for refuse in (lambda: check_target(path, over=over), lambda: write_text(path, "new", over=over)):
        with pytest.raises(PlumblineError, match=said) as caught:
            refuse()
        assert "--force" not in str(caught.value)
    assert manifest(tmp_path) == before


def test_a_directory_that_is_a_link_is_the_persons_choice(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert write_text(tmp_path / "link" / "report.html", "new", over=None) is None
    assert names(tmp_path / "real") == ["report.html"]


def test_force_without_an_old_one(tmp_path):
    assert write_text(tmp_path / "baseline.yaml", "new", over=kept(tmp_path / "baseline.yaml")) is None
    assert names(tmp_path) == ["baseline.yaml"]


def test_refused_before_measuring(tmp_path):
    with pytest.raises(BaselineError, match=r"directory .*/none does not exist; create it first"):
        check_target(tmp_path / "none" / "baseline.yaml", over=None)
    with pytest.raises(BaselineError, match="is a directory; name a file"):
        check_target(tmp_path, over=kept(tmp_path))


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    path = tmp_path / ("n" * 256)
    with pytest.raises(BaselineError, match=r"can't be (written: .*|replaced: )File name too long"):
        write_text(path, "new", over=None)
    assert names(tmp_path) == []


def test_where_the_old_one_can_not_be_kept_it_stays(tmp_path):
    """With .bak its name is longer than a name may be."""
    path = tmp_path / ("n" * 253)
    path.write_text("old")
    before = manifest(tmp_path)
    with pytest.raises(BaselineError, match="can't be written: File name too long"):
        write_text(path, "new", over=kept(path))
    assert manifest(tmp_path) == before
