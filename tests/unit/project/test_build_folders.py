"""deploy/packages/folders.py: a build that writes a folder anew removes only what an earlier build put there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deploy.kubernetes import chart
from deploy.packages.project import BuildError
from deploy.release import __main__ as release

from support.manifest import manifest as contents

FOREIGN: dict[str, Callable[[Path], object]] = {
    "a file": lambda folder: (folder / "thesis.txt").write_text("mine"),
    "a hidden file": lambda folder: (folder / ".env").write_text("mine"),
    "a file in a folder of ours": lambda folder: (folder / "templates" / "mine.yaml").write_text("mine"),
    "a link": lambda folder: (folder / "link").symlink_to("/etc/hostname"),
    "a link to a folder": lambda folder: (folder / "link").symlink_to("/etc"),
    "a changed file of ours": lambda folder: (folder / "values.yaml").write_text("mine"),
    "a link in the place of a file of ours": lambda folder: _linked(folder / "values.yaml"),
    "no list": lambda folder: (folder / "SHA256SUMS").unlink(),
    "a list of another": lambda folder: (folder / "SHA256SUMS").write_text("0" * 64 + "  values.yaml\n"),
    "a name with a line end": lambda folder: (folder / "a\nb").write_text("mine"),
    "a name that is not text": lambda folder: Path(f"{folder}/\udcff").write_text("mine"),
}


def _linked(path: Path) -> None:
    path.rename(path.parent.parent / "values.yaml")
    path.symlink_to(path.parent.parent / "values.yaml")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of ``--out``, with a chart in it."""
    out = tmp_path_factory.mktemp("out")
    assert chart.main(["--out", str(out)]) == 0
    return out


@pytest.mark.parametrize("name", FOREIGN)
def test_a_chart_never_removes_a_file_of_another(
    name: str, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    FOREIGN[name](tmp_path / "plumbline")
    before = contents(tmp_path)
    capsys.readouterr()
    assert chart.main(["--out", str(tmp_path)]) == 1
    assert contents(tmp_path) == before
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("no chart: ")
    assert line.endswith(": no earlier build wrote this; nothing was removed. Move it away, or name another --out")


def test_a_chart_is_written_over_the_last_one(tmp_path: Path) -> None:
    assert chart.main(["--out", str(tmp_path)]) == 0
    before = {name: (entry.kind, entry.mode, entry.digest) for name, entry in contents(tmp_path).items()}
    assert chart.main(["--out", str(tmp_path)]) == 0
    assert {name: (entry.kind, entry.mode, entry.digest) for name, entry in contents(tmp_path).items()} == before


def test_a_release_never_empties_a_folder_of_another(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(BuildError, match=r"thesis\.txt: no earlier build wrote this; nothing was removed"):
        release.release(tmp_path, tmp_path / "key", 0)
    assert contents(tmp_path) == before


def test_a_folder_that_is_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(BuildError, match="is not a folder"):
            release.release(tmp_path / name, tmp_path / "key", 0)
    assert (tmp_path / "file").read_text() == "mine"
