"""Files of secrets and of trust: who else may read or change them."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from plumbline.core.keyfiles import CEPH, open_secret, read_anchor, read_secret

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")


def secret(path: Path, **more: str) -> bytes:
    return read_secret(path, 1000, **more)


def anchor(path: Path) -> bytes:
    return read_anchor(path, 1000)


def opened(path: Path) -> bytes:
    with os.fdopen(open_secret(path), "rb") as file:
        return file.read()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys/key"
    path.parent.mkdir(mode=0o755)
    path.write_text("x")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
@pytest.mark.parametrize("read", [secret, anchor, opened])
def test_what_is_ours_alone_is_read(file: Path, mode: int, read: Callable[[Path], bytes]) -> None:
    file.chmod(mode)
    assert read(file) == b"x"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o444, 0o601, 0o620, 0o602, 0o666, 0o777])
@pytest.mark.parametrize("read", [secret, opened])
def test_a_secret_that_others_may_read_or_change_is_refused(
    file: Path, mode: int, read: Callable[[Path], bytes]
) -> None:
    file.chmod(mode)
    with pytest.raises(PermissionError, match=f"mode {mode:04o}.*chmod 600") as caught:
        read(file)
    assert "\n" not in str(caught.value.strerror)


@pytest.mark.parametrize(("mode", "good"), [(0o644, True), (0o444, True), (0o664, False), (0o646, False)])
def test_an_anchor_may_be_read_and_not_changed(file: Path, mode: int, good: bool) -> None:
    file.chmod(mode)
    if good:
        assert anchor(file) == b"x"
    else:
        with pytest.raises(PermissionError, match="may be changed by others"):
            anchor(file)


@pytest.mark.parametrize(("mode", "good"), [(0o755, True), (0o777, False), (0o1777, True), (0o757, False)])
@pytest.mark.parametrize("read", [secret, anchor])
def test_in_a_directory_of_others_it_could_be_exchanged(
    file: Path, mode: int, good: bool, read: Callable[[Path], bytes]
) -> None:
    file.parent.chmod(mode)
    if good:
        assert read(file) == b"x"
    else:
        with pytest.raises(PermissionError, match="others may exchange it"):
            read(file)


@ROOT
@pytest.mark.needs_root
@pytest.mark.parametrize("read", [secret, anchor])
def test_what_belongs_to_another_user_is_refused(file: Path, read: Callable[[Path], bytes]) -> None:
    os.chown(file, 65534, 0)
    with pytest.raises(PermissionError, match="belongs to user 65534"):
        read(file)
    os.chown(file, 0, 0)
    os.chown(file.parent, 65534, 0)
    with pytest.raises(PermissionError, match="of user 65534, who may exchange it"):
        read(file)


@ROOT
@pytest.mark.needs_root
def test_a_key_of_cephs_own_user_is_one_of_ceph_alone(file: Path) -> None:
    os.chown(file, 167, 167)
    file.chmod(0o640)
    assert secret(file, account=CEPH) == b"x"
    with pytest.raises(PermissionError, match="belongs to user 167"):
        secret(file)
    file.chmod(0o644)
    with pytest.raises(PermissionError, match="accessible to others"):
        secret(file, account=CEPH)


@ROOT
@pytest.mark.needs_root
def test_a_group_of_the_service_may_read_what_is_roots() -> None:
    """0640 root:plumbline: the daemon reads by its group; root needs none."""
    nobody = pwd.getpwnam("nobody")
    with TemporaryDirectory() as folder:  # not below pytest's, which is root's alone
        Path(folder).chmod(0o755)
        file = Path(folder) / "key"
        file.write_text("x")
        os.chown(file, 0, nobody.pw_gid)
        file.chmod(0o640)
        script = f"from plumbline.core.keyfiles import read_secret; print(read_secret({str(file)!r}, 9).decode())"
        user = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        argv = ["setpriv", *user, sys.executable, "-c", script]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.stdout == "x\n", done.stderr
        with pytest.raises(PermissionError, match="accessible to others"):
            secret(file)


def test_a_link_of_ours_is_followed_and_its_target_judged(file: Path, tmp_path: Path) -> None:
    """As certbot's ``live/host/privkey.pem``."""
    link = tmp_path / "link"
    link.symlink_to(file)
    assert secret(link) == b"x"
    with pytest.raises(PermissionError, match="is a link"):
        opened(link)
    file.parent.chmod(0o777)
    with pytest.raises(PermissionError, match="others may exchange it"):
        secret(link)


@ROOT
@pytest.mark.needs_root
def test_a_link_of_another_user_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    link = tmp_path / "sticky/link"
    link.symlink_to(file)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(PermissionError, match="is a link of user 65534"):
        secret(link)


@pytest.mark.parametrize("read", [secret, anchor])
@pytest.mark.parametrize("of", ["file", "directory"])
def test_no_link_on_the_way_may_be_turned_by_others(
    file: Path, tmp_path: Path, of: str, read: Callable[[Path], bytes]
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/middle").symlink_to(file if of == "file" else file.parent)
    (tmp_path / "link").symlink_to(tmp_path / "shared/middle")
    path = tmp_path / "link" if of == "file" else tmp_path / "link/key"
    assert read(path) == b"x"
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(PermissionError, match="shared, where others may exchange it"):
        read(path)


@ROOT
@pytest.mark.needs_root
@pytest.mark.parametrize("read", [secret, anchor, opened])
def test_a_secret_of_kubernetes_is_read_as_the_kubelet_mounts_it(tmp_path: Path, read: Callable[[Path], bytes]) -> None:
    """tmpfs, mode 1777, ``..data`` leads to the version, the names to ``..data``; 0644 unless ``defaultMode`` says."""
    volume = tmp_path / "volume"
    volume.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", volume], check=True)
    try:
        version = volume / "..2026_11_28_00_00_00.1"
        version.mkdir(mode=0o755)
        (version / "key").write_text("x")
        (version / "key").chmod(0o644)
        (volume / "..data").symlink_to(version.name)
        (volume / "key").symlink_to("..data/key")
        assert read(volume / "key") == b"x"
        (version / "key").chmod(0o646)
        with pytest.raises(PermissionError, match="may be changed by others"):
            read(volume / "key")
    finally:
        subprocess.run(["umount", volume], check=True)


def test_the_same_on_a_disk_is_no_volume_of_a_pod(tmp_path: Path) -> None:
    version = tmp_path / "..1"
    version.mkdir()
    (version / "key").write_text("x")
    (version / "key").chmod(0o644)
    (tmp_path / "..data").symlink_to(version.name)
    (tmp_path / "key").symlink_to("..data/key")
    if _kind(tmp_path) in {"tmpfs", "ramfs"}:
        pytest.skip("temporary files are in memory here")
    with pytest.raises(PermissionError, match="accessible to others"):
        secret(tmp_path / "key")


def _kind(path: Path) -> str:
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True).stdout.strip()


def test_what_is_too_long_or_not_there_is_said(file: Path) -> None:
    file.write_text("x" * 1001)
    with pytest.raises(OSError, match="longer than 1000 bytes"):
        secret(file)
    with pytest.raises(FileNotFoundError):
        secret(file.with_name("none"))
