"""The storage path is Plumbline's own and proven so; in any other directory nothing is touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.work_file import KeptRun, WorkFile
from plumbline.config.model import parse
from plumbline.errors import ConfigError, StateError
from plumbline.probes.ceph.osd_lookup import remember, remembered
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.run_now import check_storage
from plumbline.probes.run.state import DiskRecord, ProbeRecord, StateStore, read_state
from plumbline.sources.ceph.cluster_osds import ClusterOsds
from support.manifest import changes, manifest

MARKER = ".plumbline-storage"
OLD = Path(__file__).parents[3] / "fixtures" / "state"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="other users' files need root")
DEEP = b'{"schema_version": 3, "probes": {}, "x": ' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}"
"""Deeper than any stack: Python 3.14 takes what fits into its own, 200,000 levels, too."""
FOREIGN = json.dumps({"version": 4, "serial": 17, "resources": []}).encode()
"""Terraform's."""


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    (tmp_path / "storage").mkdir(mode=0o750)
    return tmp_path / "storage"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Somebody else's file."""
    (tmp_path / "outside").write_bytes(b"theirs")
    return tmp_path / "outside"


def opened(path: Path) -> StateStore:
    store = StateStore(path)
    store.open()
    return store


def saved(path: Path) -> None:
    """A storage path of ours with something in it."""
    store = opened(path)
    store.put("fio", ProbeRecord().with_skip("load", "busy"))
    store.close()


def to_file(name: str, content: bytes):
    return lambda storage, _: (storage / name).write_bytes(content)


def to_link(name: str):
    return lambda storage, outside: (storage / name).symlink_to(outside)


def to_fifo(name: str):
    return lambda storage, _: os.mkfifo(storage / name)


def to_folder(name: str):
    return lambda storage, _: (storage / name).mkdir()


def to_probe(marker: bytes):
    def make(storage: Path, _: Path) -> None:
        (storage / "canary").mkdir()
        (storage / "canary" / ".plumbline-probe").write_bytes(marker)

    return make


STRANGE = {
    "another program's state": to_file("state.json", FOREIGN),
    "an empty state": to_file("state.json", b""),
    "a state of no schema": to_file("state.json", b'{"schema_version": 0, "probes": {}}'),
    "a newer state": to_file("state.json", b'{"schema_version": 4}'),
    "a deep state": to_file("state.json", DEEP),
    "no text": to_file("state.json", b"\xff" * 4096),
    "a link as state": to_link("state.json"),
    "a pipe as state": to_fifo("state.json"),
    "a folder as state": to_folder("state.json"),
    "any file": to_file("notes.txt", b"theirs"),
    "any file of no name in UTF-8": to_file(os.fsdecode(b"notes\xff"), b"theirs"),
    "any folder": to_folder("data"),
    "a lock with something in it": to_file("lock", b"1234\n"),
    "a lock that is a link": to_link("lock"),
    "another's heavy lock": to_file("heavy-probe.lock", b"theirs"),
    "another's baseline": to_file("baseline.yaml", b"model: resnet\n"),
    "another's recording": to_file("record.work.json", b'{"version": 1}'),
    "another's list of OSDs": to_file("ceph-osds.json", b"[]"),
    "a copy": to_file("state.json.damaged-1", b"theirs"),
    "a probe's mark without its words": to_probe(b""),
    "our mark without its words": to_file(MARKER, b""),
    "our mark as a link": to_link(MARKER),
    "our mark as a folder": to_folder(MARKER),
}


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_a_directory_that_is_not_ours_is_refused_and_nothing_in_it_touched(make, storage, outside, tmp_path) -> None:
    make(storage, outside)
    before = manifest(tmp_path)

    for attempt in (lambda: opened(storage), lambda: check_storage(storage)):
        with pytest.raises(StateError) as refused:
            attempt()
        (line,) = str(refused.value).splitlines()
        assert str(storage) in line
        assert "--storage.path" in line or "move the file away" in line
        assert manifest(tmp_path) == before


def earlier_state(storage: Path) -> None:
    shutil.copy(OLD / "version-2.json", storage / "state.json")
    (storage / "lock").touch()
    (storage / "notes.txt").write_text("whatever a person keeps there")


def earlier_locks(storage: Path) -> None:
    (storage / "lock").touch()
    (storage / "heavy-probe.lock").write_text("fio-randread-4k, pid 4711\n")
    (storage / "canary").mkdir()
    (storage / "canary" / ".plumbline-probe").write_bytes(
        b"Plumbline's probes write here. Nothing else should: any file in this directory may be overwritten.\n"
    )
    remember(storage, ClusterOsds({}, {}))


def earlier_recording(storage: Path) -> None:
    (storage / "record.lock").write_text("plumbline baseline record, pid 12\n")
    (storage / "baseline.yaml").write_text("schema_version: 1\nsource: measured\nname: mine\nentries: []\n")
    work(storage).keep(KeptRun(step="rtt", parameters="aaaaaaaaaaaa", finished=1.0, figures=()))


def empty_file_system(storage: Path) -> None:
    (storage / "lost+found").mkdir(mode=0o700)


@pytest.mark.parametrize("make", [earlier_state, earlier_locks, earlier_recording, empty_file_system])
def test_what_an_earlier_release_left_is_taken_over(make, storage, tmp_path) -> None:
    make(storage)
    before = manifest(storage)
    opened(storage).close()
    after = manifest(storage)
    assert changes(before, after) == []
    assert (storage / MARKER).read_bytes().startswith(b"Plumbline keeps its state here.")
    # from now on the mark tells it
    (storage / "state.json").write_bytes(b"{")
    opened(storage).close()
    assert (storage / "state.json.damaged-1").read_bytes() == b"{"


def test_the_mark_is_made_with_the_directory(tmp_path) -> None:
    for path in (tmp_path / "a" / "b" / "state", tmp_path / "c"):
        opened(path).close()
        assert sorted(each.name for each in path.iterdir()) == [MARKER, "lock"]
        assert path.stat().st_mode & 0o777 == 0o750
    check_storage(tmp_path / "d")
    assert [each.name for each in (tmp_path / "d").iterdir()] == [MARKER]


def test_the_link_of_a_transient_user_is_followed(tmp_path) -> None:
    """systemd's DynamicUser= makes /var/lib/plumbline a link to private/plumbline."""
    (tmp_path / "private" / "plumbline").mkdir(parents=True, mode=0o750)
    (tmp_path / "plumbline").symlink_to("private/plumbline")
    saved(tmp_path / "plumbline")
    assert read_state(tmp_path / "plumbline").keys() == {"fio"}
    assert (tmp_path / "private" / "plumbline" / MARKER).exists()
    check_storage(tmp_path / "plumbline")


@pytest.mark.parametrize("mode", [0o770, 0o757, 0o1777])
def test_a_directory_in_which_others_may_write_is_refused(mode, storage) -> None:
    storage.chmod(mode)
    with pytest.raises(
        StateError, match=r"may be written by other users; chmod go-w, or name another .*--storage\.path"
    ):
        opened(storage)
    assert not any(storage.iterdir())


@needs_root
def test_a_daemon_of_root_on_the_directory_of_another_user_is_refused(storage, outside, tmp_path) -> None:
    (storage / "state.json.new").symlink_to(outside)
    os.chown(storage, 4711, 4711)
    before = manifest(tmp_path)
    with pytest.raises(StateError, match="belongs to user 4711"):
        opened(storage)
    with pytest.raises(ConfigError, match="belongs to user 4711 and this is user 0"):
        check_storage(storage)
    with pytest.raises(StateError, match="belongs to user 4711"), HeavyLock(storage / "heavy-probe.lock").hold("fio"):
        pass
    assert manifest(tmp_path) == before


def refused_to_bare_root(storage: Path) -> str:
    """What a daemon of root without capabilities, as in a container, says when it is started on ``storage``."""
    opening = "StateStore(pathlib.Path(sys.argv[1])).open()"
    code = f"import pathlib, sys; from plumbline.probes.run.state import StateStore; {opening}"
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", code, storage]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[-1].removeprefix("plumbline.errors.StateError: ")


GIVEN = "(docs/container.md, Another user); or choose another directory with --storage.path"


@needs_root
@pytest.mark.parametrize("whole", [False, True], ids=["only the directory", "neither"])
def test_the_state_of_another_user_is_named_as_such(whole: bool, storage: Path) -> None:
    """A container whose user is changed: cephadm gives the new user the directory and not what is in it."""
    saved(storage)
    for path in (storage, *storage.iterdir()):
        os.chown(path, 4711, 4711)
    if not whole:
        os.chown(storage, 0, 0)
    place = storage if whole else storage / MARKER
    before = manifest(storage)

    assert refused_to_bare_root(storage) == (
        f"{place}: belongs to user 4711, and this process is user 0. Run it as user 4711, or, if Plumbline made it:"
        f" chown -R 0:0 {storage} {GIVEN}"
    )
    assert manifest(storage) == before


@needs_root
def test_nobody_is_told_to_give_a_directory_of_something_else_away(storage: Path) -> None:
    (storage / "data").write_bytes(b"theirs")
    storage.chmod(0o755)
    os.chown(storage, 4711, 4711)
    assert refused_to_bare_root(storage) == (
        f"{storage}: belongs to user 4711, and this process is user 0. Run it as user 4711; or choose another directory"
        " with --storage.path"
    )


@needs_root
def test_an_empty_volume_of_another_user_may_be_given_away(storage: Path) -> None:
    storage.chmod(0o755)
    os.chown(storage, 4711, 4711)
    assert f"if Plumbline made it: chown -R 0:0 {storage} {GIVEN}" in refused_to_bare_root(storage)


# --- what is planted in a directory of ours


def work(storage: Path) -> WorkFile:
    return WorkFile(storage, release="0.1.0", host="stor01", fingerprint=Fingerprint(kernel="6.12.1"))


def hard(outside: Path, path: Path) -> None:
    path.hardlink_to(outside)


def soft(outside: Path, path: Path) -> None:
    path.symlink_to(outside)


@pytest.mark.parametrize("plant", [hard, soft])
def test_planted_links_lead_nowhere(plant, storage, outside) -> None:
    saved(storage)
    names = ("state.json.new", "record.work.json", "record.work.json.new", "heavy-probe.lock", "ceph-osds.json",
             "ceph-osds.json.new", "state.json.damaged-1")  # fmt: skip
    for name in names:
        plant(outside, storage / name)

    store = opened(storage)
    store.put("fio", store.get("fio").with_skip("load", "still busy"))
    assert not store.save_failed
    with pytest.raises(StateError, match=r"heavy-probe\.lock: (is a symbolic link|has \d names)"):
        HeavyLock(storage / "heavy-probe.lock").hold("fio").__enter__()
    with pytest.raises(StateError, match=r"record\.work\.json: (is a symbolic link|has \d names)"):
        work(storage).resume({}, now=1.0)
    remember(storage, ClusterOsds({}, {}))
    assert remembered(storage) is None
    store.close()
    (storage / "state.json").write_bytes(b"{")
    opened(storage).close()
    assert (storage / "state.json.damaged-2").read_bytes() == b"{"
    (storage / "state.json").unlink(missing_ok=True)
    plant(outside, storage / "state.json")
    with pytest.raises(StateError, match=r"state\.json: (is a symbolic link|has \d names)"):
        opened(storage)
    assert outside.read_bytes() == b"theirs"
    assert outside.stat().st_nlink == (len(names) + 2 if plant is hard else 1)


def test_a_file_that_is_no_lock_of_ours_is_not_written_over(storage) -> None:
    (storage / "heavy-probe.lock").write_bytes(b"theirs")
    with pytest.raises(StateError, match="was not made by Plumbline; move it away"):
        HeavyLock(storage / "heavy-probe.lock").hold("fio").__enter__()
    assert (storage / "heavy-probe.lock").read_bytes() == b"theirs"


def test_a_recording_that_is_damaged_is_set_aside(storage) -> None:
    (storage / "record.work.json").write_bytes(b"theirs")
    resumed = work(storage).resume({}, now=1.0)
    assert resumed.line.endswith("; kept as record.work.json.damaged-1, everything is measured again")
    assert (storage / "record.work.json.damaged-1").read_bytes() == b"theirs"


def test_a_state_that_somebody_moved_in_is_not_written_over(storage, caplog) -> None:
    saved(storage)
    store = opened(storage)
    (storage / "foreign").write_bytes(FOREIGN)
    (storage / "foreign").replace(storage / "state.json")
    store.put("fio", ProbeRecord())
    assert store.save_failed
    assert "state.json: was not made by Plumbline; move it away" in caplog.text
    assert (storage / "state.json").read_bytes() == FOREIGN
    (storage / "state.json").unlink()
    store.put("fio", ProbeRecord())
    assert not store.save_failed


def test_a_daemon_keeps_to_its_directory_and_says_when_another_took_its_place(storage, tmp_path, caplog) -> None:
    store = opened(storage)
    store.put("fio", ProbeRecord().with_skip("load", "first"))
    storage.rename(tmp_path / "away")
    second = opened(storage)
    second.put("fio", ProbeRecord().with_skip("load", "second"))
    before = manifest(storage)

    store.put("fio", ProbeRecord().with_skip("load", "first again"))

    assert store.save_failed
    assert f"{storage}: another plumbline uses this storage path" in caplog.text
    assert manifest(storage) == before
    assert read_state(tmp_path / "away")["fio"].last_skip == "first again"
    assert not second.save_failed
    shutil.rmtree(tmp_path / "away")
    store.put("fio", ProbeRecord())
    assert store.save_failed
    # whoever brings it back has everything
    for each in (store, second):
        each.close()


def test_what_was_left_of_an_interrupted_write_goes_and_nothing_else(storage) -> None:
    saved(storage)
    left = {".plumbline-0123456789abcdef.new": b'{"schema_version":3,"pro', ".plumbline-0123456789abcde0.new": b"",
            ".plumbline-0123456789abcde1.old": b'{"schema_version":3,"probes":{}}'}  # fmt: skip
    foreign = {".plumbline-0123456789abcde2.new": b"theirs", ".plumbline-notes": b"",
               ".plumbline-0123456789abcde3.new": b""}  # fmt: skip
    for name, content in (left | foreign).items():
        (storage / name).write_bytes(content)
    os.utime(storage / ".plumbline-0123456789abcde0.new", (1e9, 1e9))  # the other empty one may be a recording's
    opened(storage).close()
    assert {each.name for each in storage.iterdir()} == {MARKER, "lock", "state.json", *foreign}


# --- what is in the file


def test_names_that_are_not_utf_8_come_back_as_they_were(storage, caplog) -> None:
    odd = os.fsdecode(b"sd\xff\xfe")
    disks = tuple(DiskRecord(device, "S1\0", 1.0, 2.0) for device in (odd, "sdä", "sd\udfff", "a\0dcff", "\\u0000"))
    store = opened(storage)
    store.put_disks(disks)
    store.put(odd, ProbeRecord().with_skip(odd, f"/dev/{odd} is busy"))
    assert not store.save_failed
    assert not caplog.text
    store.close()
    again = opened(storage)
    assert again.disks == disks
    assert again.get(odd) == ProbeRecord().with_skip(odd, f"/dev/{odd} is busy")
    assert again.get(odd).last_skip == read_state(storage)[odd].last_skip == f"/dev/{odd} is busy"
    json.loads((storage / "state.json").read_bytes())


def test_whatever_ends_a_save_shows(storage, caplog) -> None:
    store = opened(storage)
    store.put("fio", ProbeRecord(last_skip=object()))  # type: ignore[arg-type]
    assert store.save_failed
    assert "can't be written" in caplog.text
    store.put("fio", ProbeRecord())
    assert not store.save_failed
    store.close()
    store.put("fio", ProbeRecord())
    assert store.save_failed


DAMAGED = {
    "nested": DEEP,
    "a negative count of runs": b'{"schema_version":3,"probes":{"fio":{"runs":{"success":-1}}}}',
    "a negative count of skips": b'{"schema_version":3,"probes":{"fio":{"skipped":{"load":-1}}}}',
    "a negative count in a bucket": b'{"schema_version":3,"probes":{"fio":{"totals":{"read":{"counts":{"1000":-5}}}}}}',
    "a negative sum": b'{"schema_version":3,"probes":{"fio":{"totals":{"read":{"sum":-0.5}}}}}',
    "a count beyond 64 bits": b'{"schema_version":3,"probes":{"fio":{"runs":{"success":99999999999999999999}}}}',
    "no number": b'{"schema_version":3,"probes":{"fio":{"totals":{"read":{"sum":NaN}}}}}',
    "a number without end": b'{"schema_version":3,"probes":{"fio":{"totals":{"read":{"sum":1e999}}}}}',
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_cannot_be_is_set_aside_and_the_daemon_starts(data, storage, caplog) -> None:
    saved(storage)
    (storage / "state.json").write_bytes(data)
    with pytest.raises(StateError, match="unreadable state"):
        read_state(storage)
    assert opened(storage).get("fio") == ProbeRecord()
    assert (storage / "state.json.damaged-1").read_bytes() == data
    assert "kept as state.json.damaged-1" in caplog.text


def test_a_state_without_end_is_set_aside_unread(storage, caplog) -> None:
    saved(storage)
    os.truncate(storage / "state.json", 2**40)  # a hole
    with pytest.raises(StateError, match="is larger than"):
        read_state(storage)
    assert opened(storage).get("fio") == ProbeRecord()
    assert (storage / "state.json.damaged-1").stat().st_size == 2**40
    assert "unreadable state (larger than 64 MiB); kept as state.json.damaged-1" in caplog.text


def test_a_pipe_in_the_place_of_the_state_holds_nobody(storage) -> None:
    saved(storage)
    (storage / "state.json").unlink()
    os.mkfifo(storage / "state.json")
    for attempt in (read_state, opened):
        with pytest.raises(StateError, match=r"state\.json: is not a regular file; move it away"):
            attempt(storage)


# --- names


@pytest.mark.parametrize(
    "name",
    ["state.json", "state.json.new", "state.json.damaged-1", "lock", "heavy-probe.lock", "record.lock",
     "probe-run.lock", "baseline.yaml", "baseline.yaml.bak", "record.work.json", "ceph-osds.json.new"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["canary", "fio, workload: randread-4k-qd1-j1"])
def test_a_probe_called_like_a_file_of_ours_is_refused(name, kind) -> None:
    with pytest.raises(ConfigError, match=r"probes\[0\]\.name = .*: Plumbline has a file of this name"):
        parse(f"probes: [{{type: {kind}, name: {name}}}]", where="c.yaml")
    parse(f"probes: [{{type: {kind}, name: {name}, directory: /srv/x}}]", where="c.yaml")
    parse(f"probes: [{{type: {kind}, name: a-{name}}}]", where="c.yaml")


# --- the disk below


@needs_root
def test_a_disk_that_turns_read_only_under_a_running_daemon(storage, tmp_path, caplog) -> None:
    """As ext4 does by itself when it meets an error."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", image, storage], check=True)
    try:
        found = subprocess.run(["findmnt", "-no", "SOURCE", storage], check=True, capture_output=True, text=True)
        fail = Path("/sys/fs/ext4") / Path(found.stdout.strip()).name / "trigger_fs_error"
        if not fail.exists():
            pytest.skip("this kernel's ext4 can't be told to fail")
        store = opened(storage)
        store.put("fio", ProbeRecord().with_skip("load", "before"))
        fail.write_text("test")
        for _ in range(2):
            store.put("fio", ProbeRecord().with_skip("load", "meanwhile"))
            assert store.save_failed
        assert caplog.text.count("state.json: can't be written: Read-only file system") == 1
        assert read_state(storage)["fio"].last_skip == "before"
        assert store.get("fio").last_skip == "meanwhile"
        store.close()
        with pytest.raises(StateError, match="can't be used for state: Read-only file system"):
            opened(storage)
    finally:
        subprocess.run(["umount", "-l", storage], check=True)
