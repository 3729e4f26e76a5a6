"""What is removed is Plumbline's by name and mark, and nothing else; dry by default."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from plumbline.cli import main
from plumbline.errors import StateError
from plumbline.leftovers import find, remove
from plumbline.probes import metadata_worker
from plumbline.probes.guard import MARKER, prepare_directory
from plumbline.state import ProbeRecord, StateStore
from support.disks import disk_folder


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory):
    with disk_folder(tmp_path_factory) as made:
        yield made


def canary_in(directory: Path) -> None:
    """As the canary's worker makes it."""
    with prepare_directory(directory, size_bytes=4096) as place:
        os.close(place.open_file("canary.dat", 4096, direct=True, dsync=True, pause=lambda _: None))


@pytest.fixture
def storage(folder: Path) -> Path:
    """Real leftovers: state, a damaged one, a canary's file, the locks."""
    storage = folder / "plumbline"
    StateStore(storage).open()
    (storage / "state.json").write_bytes(b"{")
    store = StateStore(storage)
    store.open()
    store.put("fio", ProbeRecord())
    store.close()
    canary_in(storage / "canary")
    (storage / "heavy-probe.lock").touch()
    (storage / "baseline.yaml").write_text("schema_version: 1\n")
    return storage


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def run(capsys, *argv: str) -> tuple[int, str, str]:
    code = main(["uninstall", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def nowhere(folder: Path) -> list[str]:
    """Flags that keep this machine's own /etc and /var out of it."""
    return ["--path.etc", str(folder / "etc"), "--path.var", str(folder / "var")]


def test_dry_run_shows_and_apply_leaves_nothing(folder: Path, storage: Path, capsys) -> None:
    data = folder / "data"
    data.mkdir()
    canary_in(data / "probe")
    config = folder / "config.yaml"
    config.write_text(
        "probes:\n- {type: canary, name: canary}\n"
        f"- {{type: canary, name: elsewhere, directory: {data}/probe, enabled: false}}\n"
    )
    flags = ["--config.file", str(config), "--storage.path", str(storage), *nowhere(folder)]
    before = everything(folder)

    code, out, _ = run(capsys, *flags)
    assert code == 0
    for name in ("state.json", "state.json.damaged-1", "lock", "baseline.yaml", "canary/canary.dat"):
        assert f"rm {storage}/{name}\n" in out
    assert f"rm {data}/probe/canary.dat\n" in out
    assert "# nothing was changed; --apply removes it" in out
    assert everything(folder) == before

    code, out, _ = run(capsys, *flags, "--apply")
    assert code == 0
    assert everything(folder) == ["config.yaml", "data"]
    assert f"removed {storage}\n" in out

    code, out, _ = run(capsys, *flags, "--apply")
    assert (code, "nothing of Plumbline is here" in out) == (0, True)


def test_what_is_not_ours_stays_and_is_named(folder: Path, storage: Path, capsys) -> None:
    (storage / "thesis.tex").write_text("mine")
    (storage / "canary" / "photo.jpg").write_text("mine")
    (storage / "folder").mkdir()
    (storage / "folder" / "state.json").write_text("not ours")
    code, out, _ = run(capsys, "--storage.path", str(storage), *nowhere(folder), "--apply")
    assert code == 1
    assert everything(storage) == ["canary", "canary/photo.jpg", "folder", "folder/state.json", "thesis.tex"]
    assert f"# left alone: {storage} holds what Plumbline did not make: canary, folder, thesis.tex" in out


def test_a_folder_without_our_mark_is_none_of_ours(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "canary.dat").write_text("somebody's")
    (folder / "home").mkdir()
    (folder / "home" / "lock").write_text("not empty")
    assert find(folder / "home", [folder / "data"]) == ()


def test_links_are_not_followed(folder: Path, storage: Path) -> None:
    """The service's user owns its directory and could put one there; root would follow it."""
    precious = folder / "precious"
    canary_in(precious)
    (storage / "link").symlink_to(precious)
    (storage / "state.json").unlink()
    (storage / "state.json").symlink_to(precious / "canary.dat")
    list(remove(find(storage)))
    assert everything(precious) == [MARKER, "canary.dat"]
    assert everything(storage) == ["link", "state.json"]


def test_a_folder_that_becomes_a_link_in_between(folder: Path, storage: Path) -> None:
    precious = folder / "precious"
    canary_in(precious)
    found = find(storage)
    (storage / "canary").rename(folder / "old")
    (storage / "canary").symlink_to(precious)
    with pytest.raises(StateError, match="canary: Not a directory"):
        list(remove(found))
    assert everything(precious) == [MARKER, "canary.dat"]
    assert (storage / "state.json").exists()


@pytest.mark.parametrize("name", ["lock", f"canary/{MARKER}"])
def test_nothing_is_touched_while_a_daemon_runs(folder: Path, storage: Path, name: str, capsys) -> None:
    before = everything(storage)
    with (storage / name).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, _, err = run(capsys, "--storage.path", str(storage), *nowhere(folder), "--apply")
    assert code == 1
    assert "a plumbline is at work there; stop it first: systemctl stop plumbline" in err
    assert everything(storage) == before


def test_files_of_an_interrupted_metadata_probe_go_too(folder: Path) -> None:
    probe = folder / "probe"
    prepare_directory(probe, size_bytes=0).close()
    (probe / metadata_worker.FOLDER).mkdir(mode=0o700)
    (probe / metadata_worker.FOLDER / "plumbline-000017").touch()
    list(remove(find(folder / "none", [probe])))
    assert everything(folder) == []


def test_the_link_of_a_transient_user_goes_with_its_directory(folder: Path, storage: Path, capsys) -> None:
    private = folder / "var/lib/private"
    private.mkdir(parents=True)
    storage.rename(private / "plumbline")
    (folder / "var/lib/plumbline").symlink_to("private/plumbline")
    code, _, _ = run(capsys, *nowhere(folder), "--apply")
    assert code == 0
    assert everything(folder) == ["var", "var/lib", "var/lib/private"]


def test_what_stands_elsewhere_is_said(folder: Path, capsys) -> None:
    (folder / "etc/ceph").mkdir(parents=True)
    (folder / "etc/ceph/ceph.conf").touch()
    (folder / "var/lib/dpkg/info").mkdir(parents=True)
    (folder / "var/lib/dpkg/info/plumbline.list").touch()
    config = folder / "c.yaml"
    config.write_text(
        "probes: [{type: s3, name: s, endpoint: 'http://h', bucket: our-bucket, "
        "credentials_file: 'credential:s3-keys'}]"
    )
    _, out, _ = run(capsys, "--config.file", str(config), "--storage.path", str(folder / "none"), *nowhere(folder))
    assert "plumbline uninstall --ceph, on its last node" in out
    assert "bucket our-bucket" in out
    assert "apt-get purge plumbline" in out
