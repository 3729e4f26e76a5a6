"""Several files are changed all or not at all; what a signature's form is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from plumbline.baseline.signature import is_signature, sign
from plumbline.commands.fleet_node import install
from plumbline.config.model import Config
from plumbline.core.files import OwnDirectory
from plumbline.core.proofs import Kept, exactly
from plumbline.core.storage_names import CANDIDATE, CLASS_FILE, NEXT_SIGNATURE, RECORDED, SIGNATURE
from plumbline.errors import BaselineError, FileRefused, StateError
from plumbline.fleet.node import Parcel
from plumbline.fleet.together import Change, change_together
from plumbline.probes.run.state import open_storage
from support.fleet_files import node_text, signature_text
from support.manifest import manifest

OLD, NEW = exactly(b"old"), b"new"


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture
def own(tmp_path: Path) -> OwnDirectory:
    for name in ("changed", "kept", "removed"):
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(0o640)
    return OwnDirectory.at(tmp_path)


CHANGES = [
    Change("changed", NEW, OLD),
    Change("kept", NEW, Kept("kept.bak")),
    Change("removed", None, OLD),
    Change("missing", None, OLD),
    Change("new", NEW, OLD),
]


def test_all_is_changed(own: OwnDirectory, tmp_path: Path) -> None:
    change_together(own, CHANGES)
    assert contents(tmp_path) == {"changed": "new", "kept": "new", "kept.bak": "old", "new": "new"}


def test_nothing_changes_where_one_file_is_not_ours(own: OwnDirectory, tmp_path: Path) -> None:
    (tmp_path / "last").write_text("theirs")
    before = manifest(tmp_path)
    with pytest.raises(FileRefused, match="last: was not made by Plumbline; move it away"):
        change_together(own, [*CHANGES, Change("last", None, OLD)])
    assert manifest(tmp_path) == before


def test_an_error_in_the_middle_puts_all_back(
    own: OwnDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it comes: here as from a full disk."""
    before, replace = contents(tmp_path), OwnDirectory.replace
    for name in ("changed", "kept", "new"):

        def fails(self: OwnDirectory, named: str, data: bytes, *rest: object, name: str = name, **modes: int) -> str:
            if named == name and data == NEW:
                raise OSError(28, "No space left on device", named)
            return replace(self, named, data, *rest, **modes)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(OwnDirectory, "replace", fails)
            with pytest.raises(OSError, match="No space left"):
                change_together(own, CHANGES)
        assert contents(tmp_path) == before
        assert {(tmp_path / each).stat().st_mode & 0o777 for each in before} == {0o640}


@pytest.mark.parametrize(
    "name",
    [RECORDED, RECORDED + SIGNATURE, RECORDED + NEXT_SIGNATURE, CLASS_FILE, CLASS_FILE + SIGNATURE],
)
def test_an_installation_changes_nothing_where_one_file_is_foreign(tmp_path: Path, name: str) -> None:
    open_storage(tmp_path / "storage").close()
    parcel = msgspec.json.encode(
        Parcel(kind="measured", text=node_text("a", fleet_class="box"), signature=signature_text("x"))
    )
    (tmp_path / "storage" / name).write_text("somebody's\n")
    before = manifest(tmp_path)
    with pytest.raises(StateError, match="was not made by Plumbline; move it away; nothing is put in place") as caught:
        install(parcel, Config(), tmp_path / "storage", host="a")
    assert str(tmp_path / "storage" / name) in str(caught.value)
    assert manifest(tmp_path) == before
    (tmp_path / "storage" / name).unlink()
    (tmp_path / "storage" / CANDIDATE).write_text("another recording")
    install(parcel, Config(), tmp_path / "storage", host="a")
    assert contents(tmp_path / "storage")[CANDIDATE] == "another recording"


def test_a_parcel_without_a_signature_is_refused(tmp_path: Path) -> None:
    for signature in ("", "x", signature_text("x").replace("BEGIN", "END"), signature_text("x") + "more\n"):
        parcel = Parcel(kind="measured", text=node_text("a", fleet_class="box"), signature=signature)
        with pytest.raises(BaselineError, match="is no SSH signature of a baseline"):
            install(msgspec.json.encode(parcel), Config(), tmp_path / "storage", host="a")
    assert not (tmp_path / "storage").exists()


def test_a_real_signature_is_one_and_of_another_namespace_is_none(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    real = sign(b"text", tmp_path / "key", environment={})
    assert is_signature(real)
    other = ["ssh-keygen", "-Y", "sign", "-q", "-f", tmp_path / "key", "-n", "file"]
    assert not is_signature(subprocess.run(other, input=b"text", capture_output=True, check=True).stdout)
    for wrong in (
        real[:-1],
        real[1:],
        real.replace(b"\n", b"\r\n"),
        real * 2,
        real[:60] + real[70:],
        b"",
        b"\xff" * 99,
    ):
        assert not is_signature(wrong)
