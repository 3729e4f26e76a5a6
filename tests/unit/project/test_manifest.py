"""The comparison that the attacks on files rely on notices every kind of change."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from support.manifest import changes, manifest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes and owners need root")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """One of each kind."""
    root = tmp_path / "foreign"
    (root / "folder" / "inner").mkdir(parents=True)
    (root / "file").write_bytes(b"foreign\n")
    (root / "folder" / "inner" / "deep").write_bytes(b"deep")
    (root / "twin").hardlink_to(root / "file")
    (root / "link").symlink_to("file")
    (root / "to-folder").symlink_to("folder")
    os.mkfifo(root / "fifo")
    os.mknod(root / "device", 0o20600, os.makedev(1, 3))
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(root / "socket"))
    bound.close()
    return root


def _rewritten(root: Path) -> None:
    """Same length, same time."""
    found = (root / "file").stat()
    (root / "file").write_bytes(b"FOREIGN\n")
    os.utime(root / "file", ns=(found.st_atime_ns, found.st_mtime_ns))


def _copied(root: Path) -> None:
    """All but the inode as it was."""
    found = (root / "folder" / "inner" / "deep").stat()
    (root / "folder" / "inner" / "deep").rename(root.parent / "old")
    (root / "folder" / "inner" / "deep").write_bytes(b"deep")
    os.utime(root / "folder" / "inner" / "deep", ns=(found.st_atime_ns, found.st_mtime_ns))


def _relinked(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("twin")


def _other_device(root: Path) -> None:
    (root / "device").unlink()
    os.mknod(root / "device", 0o20600, os.makedev(1, 5))


def _folder_for_link(root: Path) -> None:
    (root / "to-folder").unlink()
    (root / "to-folder").mkdir()


def _replaced_folder(root: Path) -> None:
    (root / "folder").rename(root.parent / "aside")
    (root / "folder" / "inner").mkdir(parents=True)
    (root.parent / "aside" / "inner" / "deep").rename(root / "folder" / "inner" / "deep")


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "gone": (lambda root: (root / "fifo").unlink(), ["'fifo': gone"]),
    "deep inside": (lambda root: (root / "folder/inner/deep").unlink(), ["'folder/inner/deep': gone"]),
    "content alone": (_rewritten, ["'file': digest", "'twin': digest"]),
    "time alone": (lambda root: os.utime(root / "file", ns=(1, 1)), ["'file': mtime_ns", "'twin': mtime_ns"]),
    "mode": (lambda root: (root / "folder").chmod(0o700), ["'folder': mode"]),
    "owner": (lambda root: os.chown(root / "fifo", 12, -1), ["'fifo': owner"]),
    "group": (lambda root: os.lchown(root / "link", -1, 12), ["'link': group"]),
    "one more link": (lambda root: (root / "third").hardlink_to(root / "socket"), ["'socket': links"]),
    "another inode": (_copied, ["'folder/inner/deep': inode"]),
    "another directory": (_replaced_folder, ["'folder': inode", "'folder/inner': inode"]),
    "attribute": (lambda root: os.setxattr(root / "folder", "user.note", b"1"), ["'folder': xattrs"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_kind_of_change_is_noticed(place: Path, change: str) -> None:
    apply, said = CHANGES[change]
    before = manifest(place)
    apply(place)
    assert changes(before, manifest(place)) == said


@pytest.mark.parametrize(
    ("change", "path", "field"),
    [(_relinked, "link", "leads_to"), (_other_device, "device", "leads_to"), (_folder_for_link, "to-folder", "kind")],
)
def test_what_takes_a_places_name_is_noticed(
    place: Path, change: Callable[[Path], object], path: str, field: str
) -> None:
    before = manifest(place)
    change(place)
    after = manifest(place)
    assert getattr(before[path], field) != getattr(after[path], field)
    assert [line.split(":")[0] for line in changes(before, after)] == [repr(path)]


def test_nothing_changes_by_looking(place: Path) -> None:
    """No link is followed, no FIFO waited for, and what is new is no change to what was there."""
    before = manifest(place)
    assert set(before) == {
        ".", "device", "fifo", "file", "folder", "folder/inner", "folder/inner/deep", "link", "socket", "to-folder",
        "twin",
    }  # fmt: skip
    assert manifest(place) == before
    (place / "new").write_bytes(b"")
    after = manifest(place)
    assert changes(before, after) == []
    assert set(after) - set(before) == {"new"}
