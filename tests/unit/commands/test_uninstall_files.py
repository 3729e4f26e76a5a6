"""What is removed is Plumbline's by name and mark, and nothing else; dry by default."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from plumbline.claims.claim_file import ClaimState, add_result, identity_of
from plumbline.cli import main
from plumbline.commands.uninstall_files import find, remove
from plumbline.errors import StateError
from plumbline.probes.filesystem import metadata_worker
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.guard import MARKER, MARKER_TEXT, prepare_directory
from plumbline.probes.run.result import Outcome
from plumbline.probes.run.state import ProbeRecord, StateStore, open_storage
from support.disks import disk_folder
from support.manifest import changes, manifest


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory):
    with disk_folder(tmp_path_factory) as made:
        yield made


def canary_in(directory: Path) -> None:
    """As the canary's worker makes it."""
    with prepare_directory(directory, size_bytes=4096) as place:
        os.close(place.open_file("canary.dat", 4096, direct=True, dsync=True, pause=lambda _: None))


BASELINE = """# Baseline of host, recorded 2026-01-01.
schema_version: 1
source: measured
host: host
recorded: 2026-01-01T00:00:00Z
entries: []
"""


@pytest.fixture
def storage(folder: Path) -> Path:
    """Real leftovers: state, a damaged one, a canary's file, the locks."""
    storage = folder / "plumbline"
    for _ in range(2):
        store = StateStore(storage)
        store.open()
        store.put("fio", ProbeRecord())
        store.close()
        if not (storage / "state.json.damaged-1").exists():
            os.truncate(storage / "state.json", 40)
    canary_in(storage / "canary")
    with HeavyLock(storage / "heavy-probe.lock").hold("fio"):
        pass
    result = identity_of("fast", "ssd").result(tool_version="", started=1.0, duration=1.0, outcome=Outcome.SUCCESS)
    add_result(storage, ClaimState("fast", "ssd", 60.0, 9.0), result)
    (storage / "baseline.yaml").write_text(BASELINE)
    (storage / "baseline.yaml.bak").write_text(BASELINE)
    (storage / "baseline.yaml.bak-1").write_text(BASELINE)
    (storage / ".plumbline-0123456789abcdef.new").write_bytes(b'{"schema_ver')
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
    for name in ("state.json", "state.json.damaged-1", "lock", "baseline.yaml.bak-1", "canary/canary.dat"):
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
    (folder / "home" / "thesis.tex").write_text("mine")
    assert find(folder / "home", [folder / "data"]) == ()


STATE = b'{"schema_version":3,"probes":{},"disks":[]}'


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("name", ["state.json", "baseline.yaml", "lock", "record.work.json", "ceph-osds.json.new"])
def test_files_of_others_with_names_of_ours_stay(folder: Path, name: str, marked: bool, capsys) -> None:
    """In a storage path of ours, and where no daemon ever ran."""
    storage = folder / "plumbline"
    if marked:
        open_storage(storage).close()
    else:
        storage.mkdir()
    (storage / name).write_text('{"version": 4, "terraform_version": "1.5.7", "serial": 12, "resources": []}')
    before = manifest(storage)
    code, out, _ = run(capsys, "--storage.path", str(storage), *nowhere(folder), "--apply")
    del before[".plumbline-storage" if marked else "."]
    assert changes(before, manifest(storage)) == []
    assert (code, f"# left alone: {storage} holds what Plumbline did not make: " in out) == (1, True)


def test_a_baseline_that_a_person_wrote_stays(folder: Path) -> None:
    open_storage(folder / "plumbline").close()
    (folder / "plumbline" / "baseline.yaml").write_text(BASELINE.replace("measured", "site"))
    list(remove(find(folder / "plumbline")))
    assert everything(folder) == ["plumbline", "plumbline/baseline.yaml"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", STATE),
        ("state.json", b'{"schema_version":9,"probes":{},"later":1}'),
        ("state.json.version-1", STATE),
        ("state.json.damaged-3", STATE[:30] + b"\0" * 5),
        ("lock", b""),
        ("heavy-probe.lock", b"fio/sda, pid 4711\n"),
        ("baseline.yaml", BASELINE.encode()),
        ("record.work.json", b'{"version":1,"release":"0.1.0","host":"h","fingerprint":{},"runs":[]}'),
        ("ceph-osds.json", b'{"osds": [[0, "ssd", "h", "up"]], "hosts": {}}'),
        (".plumbline-0123456789abcdef.new", b""),
        (".plumbline-0123456789abcdef.old", b"fio/sda, pid 4711\n"),
    ],
)
def test_what_plumbline_writes_goes(folder: Path, name: str, content: bytes) -> None:
    open_storage(folder / "plumbline").close()
    (folder / "plumbline" / name).write_bytes(content)
    list(remove(find(folder / "plumbline")))
    assert everything(folder) == []


def test_a_storage_path_of_an_earlier_release_goes(folder: Path) -> None:
    """It has no mark; its files show whose they are, and an empty one shows nothing."""
    storage = folder / "plumbline"
    storage.mkdir()
    (storage / "state.json").write_bytes(STATE)
    (storage / "heavy-probe.lock").write_text("fio/sda, pid 4711\n")
    (storage / "lock").touch()
    (storage / "thesis.tex").write_text("mine")
    list(remove(find(storage)))
    assert everything(storage) == ["lock", "thesis.tex"]


def test_digits_are_the_ten_that_plumbline_writes(folder: Path) -> None:
    canary_in(folder / "probe")
    for name in ("fio.٣", "state.json.damaged-٣", "fio.3"):
        (folder / "probe" / name).touch()
    (metadata := folder / "probe" / "metadata").mkdir(mode=0o700)
    (metadata / "plumbline-٠٠٠٠١٧").touch()
    list(remove(find(folder / "none", [folder / "probe"])))
    assert everything(folder) == [
        "probe", "probe/fio.٣", "probe/metadata", "probe/metadata/plumbline-٠٠٠٠١٧", "probe/state.json.damaged-٣",
    ]  # fmt: skip


@pytest.mark.parametrize("content", [b"", b"Plumbline", MARKER_TEXT + b"\n"])
def test_a_probes_mark_is_read(folder: Path, content: bytes) -> None:
    canary_in(folder / "probe")
    (folder / "probe" / MARKER).write_bytes(content)
    before = manifest(folder)
    assert find(folder / "none", [folder / "probe"]) == ()
    assert manifest(folder) == before


def test_names_steer_no_terminal(folder: Path, storage: Path, capsys) -> None:
    (storage / "a\x1b[2Jb\n# nothing").touch()
    Path(os.fsdecode(os.fsencode(storage) + b"/odd-\xff")).touch()
    code, out, _ = run(capsys, "--storage.path", str(storage), *nowhere(folder))
    assert code == 1
    assert r"did not make: a\x1b[2Jb\n# nothing, odd-\udcff" in out
    assert all(line.isprintable() for line in out.splitlines())


def _another(path: Path) -> None:
    """As found, but another: with the same names, and content of ours."""
    canary_in(path)


def _link(path: Path) -> None:
    canary_in(path.parent.parent / "elsewhere")
    path.symlink_to("../elsewhere")


@pytest.mark.parametrize("put", [_another, _link])
def test_only_the_very_directory_that_was_found_is_touched(folder: Path, storage: Path, put) -> None:
    found = find(storage)
    (storage / "canary").rename(folder / "moved")
    put(storage / "canary")
    before = manifest(folder)
    with pytest.raises(StateError, match="canary: was replaced by something else; nothing was touched, look again"):
        list(remove(found))
    assert manifest(folder) == before


def test_a_directory_exchanged_before_it_is_removed_stays(folder: Path, storage: Path) -> None:
    """All is removed from the one that was found; the empty one that has its name now is somebody's."""
    found = [each for each in find(storage) if each.path == storage / "canary"]
    removing = remove(found)
    for path in removing:
        if path.name == MARKER:
            break
    (storage / "canary").rename(folder / "moved")
    (storage / "canary").mkdir(mode=0o711)
    before = manifest(storage)
    with pytest.raises(StateError, match="canary: changes while it is being opened"):
        list(removing)
    assert manifest(storage) == before


def test_a_file_exchanged_after_the_look_stays(folder: Path, storage: Path) -> None:
    found = find(storage)
    (storage / "state.json").unlink()
    (storage / "state.json").write_text("{}")
    with pytest.raises(StateError, match=r"state\.json: was not made by Plumbline"):
        list(remove(found))
    assert (storage / "state.json").read_text() == "{}"


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


def test_an_rpm_is_erased_by_its_own_package_manager(folder: Path, capsys) -> None:
    (folder / "usr/lib/systemd/system").mkdir(parents=True)
    (folder / "usr/lib/systemd/system/plumbline.service").touch()
    (folder / "etc").mkdir()
    (folder / "etc/os-release").write_text('ID="rocky"\nID_LIKE="rhel centos fedora"\n')
    _, out, _ = run(capsys, *nowhere(folder))
    assert "# to remove programs, unit and configuration: dnf remove plumbline\n" in out
