"""deploy/debian/postrm: purge removes what the daemon marked, and no file of another. Its paths lead into a folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from plumbline.core.storage_names import LOCKS, MARKER, MARKER_TEXT
from plumbline.probes.filesystem.metadata_worker import OURS
from plumbline.probes.run import guard

SCRIPT = (Path(__file__).parents[3] / "deploy/debian/postrm").read_text()
FILES = (*LOCKS, "state.json", "state.json.version-2", "state.json.damaged-1", "baseline.yaml", "baseline.yaml.sig",
         "baseline.yaml.bak-1", "baseline.yaml.candidate", "baseline.class.yaml", "record.work.json", "ceph-osds.json",
         "volume-claim.fast.json")  # fmt: skip


def purge(root: Path) -> str:
    text = re.sub(r"(?<=[ '=])/(?=(etc|var|opt|run|usr)\b)", f"{root}/", SCRIPT).replace(
        "deb-systemd-helper", "absent-"
    )
    done = subprocess.run(
        ["sh", "-c", text, "postrm", "purge"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.replace(str(root), "")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A node's state and configuration as systemd lays them out."""
    place = tmp_path / "var/lib/private/plumbline"
    place.mkdir(parents=True)
    (tmp_path / "var/lib/plumbline").symlink_to(place)
    (tmp_path / "opt").mkdir()
    (tmp_path / "etc/plumbline").mkdir(parents=True)
    (place / MARKER).write_bytes(MARKER_TEXT)
    for name in FILES:
        (place / name).write_text("ours")
    for probe in (place / "canary", place / "canary/record", place / "fio"):
        probe.mkdir()
        (probe / guard.MARKER).write_bytes(guard.MARKER_TEXT)
        for name in ("canary.dat", "fio.0", "fio.15"):
            (probe / name).write_bytes(b"random")
    (place / "fio/metadata").mkdir()
    assert OURS.fullmatch("plumbline-000001")
    (place / "fio/metadata/plumbline-000001").write_text("")
    return place


def left(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or path.is_symlink()}


def test_nothing_of_ours_is_left(state: Path, tmp_path: Path) -> None:
    assert purge(tmp_path) == ""
    assert left(tmp_path) == set()
    assert not state.exists()
    assert not (tmp_path / "etc/plumbline").exists()


def test_files_of_others_stay_and_their_folder_is_named(state: Path, tmp_path: Path) -> None:
    theirs = {
        "etc/plumbline/s3-keys", "var/lib/private/plumbline/thesis.tex", "var/lib/private/plumbline/canary/notes",
        "var/lib/private/plumbline/.ssh/id", "var/lib/private/plumbline/fio/metadata/plumbline-7",
        "var/lib/private/plumbline/other/canary.dat",
    }  # fmt: skip
    for name in theirs:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/fio.0").write_text("mine")
    (tmp_path / "elsewhere" / guard.MARKER).write_bytes(guard.MARKER_TEXT)
    (state / "link").symlink_to(tmp_path / "elsewhere")
    (state / "state.json.bak").symlink_to(tmp_path / "elsewhere/fio.0")
    os.link(tmp_path / "elsewhere/fio.0", state / "fio/fio.7")
    said = purge(tmp_path)
    for name in theirs:
        assert (tmp_path / name).read_text() == "mine", name
    assert (tmp_path / "elsewhere/fio.0").read_text() == "mine"
    assert (state / "link").is_symlink()
    assert (state / "fio/fio.7").exists()
    assert not (state / "state.json").exists()
    assert said.splitlines() == [
        f"plumbline: {folder} holds files that no Plumbline made; they stay"
        for folder in ("/etc/plumbline", "/var/lib/private/plumbline")
    ]


@pytest.mark.parametrize("text", [b"", b"something else\n", None])
def test_a_directory_without_the_mark_is_left_alone(text: bytes | None, state: Path, tmp_path: Path) -> None:
    (state / MARKER).unlink()
    if text is not None:
        (state / MARKER).write_bytes(text)
    before = left(tmp_path)
    purge(tmp_path)
    assert left(tmp_path) == before
