"""deploy/release: archives, signature and `verify`; the whole of it from two clones: tests/packages/test_release.py."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from deploy.packages.project import BuildError
from deploy.release.__main__ import SUMS, archive, main, sign

from support.programs import need

ROOT = Path(__file__).parents[3]
CONTENT = {"a.whl": b"wheel", "b.deb": b"package"}


def key(folder: Path, name: str) -> Path:
    """A private key; beside it ``name.allowed``, as a verifier has it."""
    need("ssh-keygen")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)], check=True)
    (folder / f"{name}.allowed").write_text(f"plumbline-release {(folder / f'{name}.pub').read_text()}")
    return folder / name


def verify(folder: Path, allowed: Path) -> subprocess.CompletedProcess[str]:
    argv = [str(ROOT / "deploy/release/verify"), str(allowed), str(folder)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Two files, summed and signed with the key ``ours``."""
    folder = tmp_path / "release"
    folder.mkdir()
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    sums = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in CONTENT.items())
    (folder / SUMS).write_text("".join(sums))
    sign(folder / SUMS, key(tmp_path, "ours"))
    return folder


def test_what_was_signed_is_good(released: Path, tmp_path: Path) -> None:
    done = verify(released, tmp_path / "ours.allowed")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("each file is as it was signed\n")


@pytest.mark.parametrize("name", [*CONTENT, SUMS])
def test_a_changed_byte_is_found(released: Path, tmp_path: Path, name: str) -> None:
    content = (released / name).read_bytes()
    (released / name).write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    assert verify(released, tmp_path / "ours.allowed").returncode != 0


def test_a_missing_and_an_added_file_are_found(released: Path, tmp_path: Path) -> None:
    (released / "more").write_text("")
    assert "more: not in SHA256SUMS" in verify(released, tmp_path / "ours.allowed").stderr
    (released / "more").unlink()
    (released / "a.whl").unlink()
    assert "a.whl" in verify(released, tmp_path / "ours.allowed").stderr


def plant_directory(path: Path) -> None:
    path.mkdir()


def plant_link(path: Path) -> None:
    path.symlink_to("a.whl")


def plant_file(path: Path) -> None:
    path.write_text("#!/bin/sh\n")


@pytest.mark.parametrize(
    "name", [".hidden", "..hidden", "...", ".a.whl", "a.whl\n", "\na.whl", "a.whl\nb.deb", "-e", "\x1b[2J", "b c", "é"]
)
@pytest.mark.parametrize("plant", [plant_file, plant_directory, plant_link])
def test_no_other_name_is_taken_whatever_it_is(
    released: Path, tmp_path: Path, name: str, plant: Callable[[Path], None]
) -> None:
    plant(released / name)
    done = verify(released, tmp_path / "ours.allowed")
    assert done.returncode == 1
    assert "not in SHA256SUMS" in done.stderr
    assert (done.stdout + done.stderr).replace("\n", "").isprintable()


@pytest.mark.parametrize("name", [*CONTENT, SUMS, f"{SUMS}.sig"])
def test_a_link_in_the_place_of_a_file_is_refused(released: Path, tmp_path: Path, name: str) -> None:
    (released / name).rename(tmp_path / name)
    (released / name).symlink_to(tmp_path / name)
    assert "no plain file" in verify(released, tmp_path / "ours.allowed").stderr


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "a/b", ".hidden", "a b"])
def test_signed_sums_name_files_of_the_release_alone(released: Path, tmp_path: Path, name: str) -> None:
    with (released / SUMS).open("a") as file:
        file.write(f"{'0' * 64}  {name}\n")
    (released / f"{SUMS}.sig").unlink()
    sign(released / SUMS, tmp_path / "ours")
    done = verify(released, tmp_path / "ours.allowed")
    assert done.returncode == 1
    assert "has a line of another form" in done.stderr


def test_new_sums_by_another_key_are_refused(released: Path, tmp_path: Path) -> None:
    (released / f"{SUMS}.sig").unlink()
    sign(released / SUMS, key(tmp_path, "theirs"))
    assert verify(released, tmp_path / "theirs.allowed").returncode == 0
    assert verify(released, tmp_path / "ours.allowed").returncode != 0


def test_what_is_no_key_does_not_sign(tmp_path: Path) -> None:
    need("ssh-keygen")
    (tmp_path / "key").write_text("no key\n")
    (tmp_path / SUMS).write_text("")
    with pytest.raises(BuildError, match="not signed: "):
        sign(tmp_path / SUMS, tmp_path / "key")


def test_nothing_is_built_without_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--key", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith(f"no release: {tmp_path}/none: no such key; ")
    assert not (tmp_path / "out").exists()


def test_an_archive_is_the_same_bytes_in_any_order() -> None:
    turned = dict(reversed(CONTENT.items()))
    assert archive(CONTENT, 1_700_000_000) == archive(turned, 1_700_000_000)
    assert archive(CONTENT, 1_700_000_000) != archive(CONTENT | {"a.whl": b"other"}, 1_700_000_000)
