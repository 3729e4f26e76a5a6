"""`make release`: from two clones the same bytes; what is changed, added or signed by another is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deploy.release.__main__ import refusals

from support.programs import need

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.packages]


def key(folder: Path, name: str) -> Path:
    """A private key; beside it ``name.allowed``, as a verifier has it."""
    need("ssh-keygen")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)], check=True)
    (folder / f"{name}.allowed").write_text(f"plumbline-release {(folder / f'{name}.pub').read_text()}")
    return folder / name


def clone(folder: Path) -> Path:
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


def release(tree: Path, signing: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deploy.release", "--key", str(signing)],
        cwd=tree, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=1800,
        umask=int(environment.get("UMASK", "022"), 8),
    )  # fmt: skip


def verify(folder: Path, allowed: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(folder / "verify"), str(allowed)], capture_output=True, text=True, check=False)


def test_what_is_refused(tmp_path: Path) -> None:
    need("rpmbuild")
    signing = key(tmp_path, "ours")
    tree = clone(tmp_path / "tree")
    assert refusals(tree, signing) == ""
    (tree / "new").write_text("")
    assert refusals(tree, signing).startswith("1 changed or unknown file(s), the first new: ")
    refused = release(tree, signing)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("no release: 1 changed")
    assert not (tree / "dist").exists()
    assert "no such key" in refusals(tree, tmp_path / "theirs")
    assert "no git repository" in refusals(tmp_path, signing)


@pytest.mark.timeout(3600)
def test_two_releases_are_the_same_bytes_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    need("rpmbuild")
    signing = key(tmp_path, "ours")
    (tmp_path / "temporary").mkdir()
    settings: tuple[dict[str, str], ...] = (
        {"TZ": "UTC"},
        {"TZ": "Asia/Tokyo", "UMASK": "077", "LC_ALL": "C", "TMPDIR": str(tmp_path / "temporary")},
    )
    folders = []
    # both before the first is built: somebody may commit meanwhile
    trees = [clone(tmp_path / name) for name in ("one", "another-name")]
    for tree, environment in zip(trees, settings, strict=True):
        done = release(tree, signing, **environment)
        assert done.returncode == 0, done.stderr
        folders.append(tree / "dist" / "release")
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert first.keys() == second.keys()
    assert [name for name, content in first.items() if second[name] != content] == []
    kinds = {name.rpartition(".")[2] for name in first}
    assert kinds == {"whl", "deb", "rpm", "tgz", "gz", "json", "SHA256SUMS", "sig", "verify"}

    folder = folders[0]
    allowed = tmp_path / "ours.allowed"
    good = verify(folder, allowed)
    assert good.returncode == 0, good.stderr
    assert good.stdout.endswith("each file is as it was signed\n")
    key(tmp_path, "theirs")
    assert verify(folder, tmp_path / "theirs.allowed").returncode != 0
    for changed in sorted(first.keys() - {"verify", "SHA256SUMS.sig"}):
        content = first[changed]
        (folder / changed).write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        assert verify(folder, allowed).returncode != 0, changed
        (folder / changed).write_bytes(content)
    (folder / "more").write_text("")
    assert "more: not in SHA256SUMS" in verify(folder, allowed).stderr
    (folder / "more").unlink()
    assert verify(folder, allowed).returncode == 0
    shutil.rmtree(tmp_path / "one")
