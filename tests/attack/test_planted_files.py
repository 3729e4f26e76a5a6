"""Foreign things of every kind under every name that a command or the daemon writes, moves or deletes.

Each attempt makes a fresh place, plants something foreign, runs the real code, and compares everything foreign before
and after: content, inode, owner, mode, times. A refusal is right; a loss is not. A file may only have got another name
(``.damaged-N``, ``.bak``), whole and as it was.

The names come from the code: a call that writes or deletes a name without a plant fails the last test.
"""

from __future__ import annotations

import ast
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
import pytest

import plumbline
from plumbline.background import leases
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.text import format_record
from plumbline.baseline.record.work_file import KeptRun, WorkFile
from plumbline.baseline.site import parse_site
from plumbline.baseline.writer import check_target, kept, write_text
from plumbline.claims.claim_file import ClaimState, add_result, identity_of
from plumbline.commands.ceph import keyring as ceph_keyring
from plumbline.commands.fleet_node import install
from plumbline.commands.uninstall_files import find, remove
from plumbline.config.installation import Installation, announce
from plumbline.config.model import Config
from plumbline.core import storage_names
from plumbline.core.files import OwnDirectory
from plumbline.core.storage_names import (
    BESIDE_LOCK,
    CANDIDATE,
    CLASS_FILE,
    HEAVY_LOCK,
    LEASE_FILE,
    LOCK_FILE,
    LOCKS,
    MARKER,
    MARKER_TEXT,
    NEXT_SIGNATURE,
    OSDS_FILE,
    RECORD_LOCK,
    RECORDED,
    SEEN_FILE,
    SIGNATURE,
    STATE_FILE,
    WORK_FILE,
    claim_file,
)
from plumbline.errors import PlumblineError
from plumbline.fleet.acceptance import accept, review
from plumbline.fleet.classes import class_file
from plumbline.fleet.node import Parcel
from plumbline.fleet.store import ACCEPTED, CLASSES, PENDING, STATE, Session, Store
from plumbline.fleet.store import RECORDED as OF_NODES
from plumbline.probes.canary.canary_worker import FILE_NAME as CANARY
from plumbline.probes.ceph.osd_lookup import remember
from plumbline.probes.filesystem import metadata_worker
from plumbline.probes.fio.fio_job import FILE as FIO
from plumbline.probes.run import guard
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.result import Outcome
from plumbline.probes.run.state import ProbeRecord, StateStore, open_storage
from plumbline.probes.run.storage import holds_baseline
from plumbline.sources.ceph.cluster_osds import ClusterOsds
from support.fleet_files import node_text, signature_text
from support.manifest import Entry, manifest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="owners need root")

PACKAGE = Path(plumbline.__file__).parent
FOREIGN = b'{"version": 4, "terraform_version": "1.5.7", "resources": []}\n'
USER = "client.plumbline"
KEYRING = f"[{USER}]\n\tkey = AQBUnQ==\n".encode()
CLAIM = "fast"


def class_text() -> str:
    site = parse_site(node_text("a", fleet_class="box"), where="a", host=None)
    return format_record(class_file("box", {"a": site}, when=datetime(2026, 11, 25, tzinfo=UTC), by="ada"))


MEASURED, OF_A_CLASS = node_text("a", fleet_class="box"), class_text()

# --- what runs: each in a place of its own, where a run before has left what it leaves ---


def a_daemon(place: Path) -> None:
    store = StateStore(place)
    with contextlib.closing(store):
        store.open()
        store.put("fio", ProbeRecord())
        store.look()


def the_osds(place: Path) -> None:
    remember(place, ClusterOsds({}, {}))


def locks(place: Path) -> None:
    for name in (HEAVY_LOCK, RECORD_LOCK, BESIDE_LOCK):
        with contextlib.suppress(PlumblineError), HeavyLock(place / name).hold("fio"):
            pass


def a_recording(place: Path) -> None:
    work = WorkFile(place, release="1", host="h", fingerprint=Fingerprint())
    work.resume({}, now=0.0)
    work.keep(KeptRun(step="a", parameters="b", finished=0.0, figures=()))
    for path, over in (
        (place / CANDIDATE, holds_baseline("measured")),
        (place / RECORDED, kept(place / RECORDED)),
    ):
        with contextlib.suppress(PlumblineError):
            check_target(path, over=over)
            write_text(path, MEASURED, over=over)
    work.remove()


def an_installation(place: Path) -> None:
    for kind, text in (("class", OF_A_CLASS), ("measured", MEASURED)):
        with contextlib.suppress(PlumblineError):
            data = msgspec.json.encode(Parcel(kind=kind, text=text, signature=signature_text(kind)))
            install(data, Config(), place, host="a")


def a_claim(place: Path) -> None:
    identity = identity_of(CLAIM, "ceph")
    result = identity.result(
        tool_version="1", started=1.0, duration=1.0, outcome=Outcome.FAILURE, operations=(), message=""
    )
    add_result(place, ClaimState(CLAIM, "ceph", 60.0, 30.0), result)


def a_lease(place: Path) -> None:
    with leases.opened(place) as own:
        leases.start(own, leases.Lease("stor02", "kernel", "ada", 1.0, 2.0))
    watch = leases.LeaseWatch(place, wall=lambda: 1.5)
    for _ in range(2):  # what it answers is known once it has read
        with contextlib.suppress(PlumblineError):
            watch.slot.refresh()
            watch.scraped(watch.slot.value)


def a_place_of_a_daemon(place: Path) -> None:
    announce(Installation(None, Path("/srv"), pid=1), {"RUNTIME_DIRECTORY": str(place)})()


def a_fleet(place: Path) -> None:
    """A recording that starts anew, and its acceptance."""
    store = Store(place)
    with contextlib.suppress(PlumblineError), store.alone():
        store.keep_session(Session(started=1.0))
    store.write(OF_NODES, "a.yaml", MEASURED)
    with store.alone("accept"):
        reviewed = review(store)
        accept(store, reviewed, by="ada", key="k", sign=lambda _: signature_text("now").encode())


def a_report(place: Path) -> None:
    for over in (None, kept(place / "report.html")):
        with contextlib.suppress(PlumblineError):
            write_text(place / "report.html", "new", over=over)


def a_keyring(place: Path) -> None:
    ceph_keyring.check_place(str(place / "keyring"), USER)
    ceph_keyring.write_key(str(place / "keyring"), KEYRING, USER)


def a_keyring_taken_back(place: Path) -> None:
    ceph_keyring.remove_key(str(place / "keyring"), USER)


def probes(place: Path) -> None:
    with guard.prepare_directory(place, size_bytes=4096, direct=False) as directory:
        for name in (CANARY, f"{FIO}.0"):
            with contextlib.suppress(PlumblineError):
                os.close(directory.open_file(name, 4096, direct=False, dsync=False))
        for name in (f"{FIO}.1", "fio.json"):
            with contextlib.suppress(PlumblineError, FileNotFoundError):
                directory.files.remove(name, guard.MARK)
    metadata_worker.run(str(place), 2, 10, 60.0)


def uninstall(place: Path) -> None:
    list(remove(find(place)))


def storage(place: Path) -> None:
    open_storage(place).close()


def folder(place: Path) -> None:
    place.mkdir(mode=0o700)


def fleet_folder(place: Path) -> None:
    for each in (place, *(place / name for name in (OF_NODES, ACCEPTED, CLASSES))):
        each.mkdir(mode=0o700)


class Scene(NamedTuple):
    """``genuine``: name → what a run before has left there. ``by_mark``: the mark makes plain files with names ours."""

    make: Callable[[Path], None]
    act: Callable[[Path], None]
    genuine: Mapping[str, bytes]
    by_mark: bool = False


STATE_TEXT = b'{"schema_version":3,"probes":{},"disks":[],"paths":[]}'
WORK_TEXT = b'{"version":1,"release":"1","host":"h","fingerprint":{},"runs":[]}'
CLAIM_TEXT = b'{"version":1,"storage_class":"ceph","interval_s":60.0,"timeout_s":30.0,"record":{}}'
OSDS_TEXT = b'{"osds": [], "hosts": {}}'
LEASE_TEXT = b'{"version":1,"leases":[{"host":"a","why":"b","who":"c","since_ts":1.0,"until_ts":2.0}]}'
SEEN_TEXT = b'{"version":1,"seen":[["a",2.0]]}'
PLACE_TEXT = b'{"config_file":null,"storage_path":"/srv","url":null,"pid":1}'
HELD = b"fio, pid 4711\n"
SIGNED = signature_text("before").encode()
OF_STORAGE: dict[str, bytes] = {
    STATE_FILE: STATE_TEXT, f"{STATE_FILE}.damaged-1": b"{", f"{STATE_FILE}.version-1": STATE_TEXT, LOCK_FILE: HELD,
    HEAVY_LOCK: HELD, RECORD_LOCK: HELD, BESIDE_LOCK: HELD, WORK_FILE: WORK_TEXT, OSDS_FILE: OSDS_TEXT,
    LEASE_FILE: LEASE_TEXT, SEEN_FILE: SEEN_TEXT,
    claim_file(CLAIM): CLAIM_TEXT, RECORDED: MEASURED.encode(), f"{RECORDED}.bak": MEASURED.encode(),
    CANDIDATE: MEASURED.encode(), CLASS_FILE: OF_A_CLASS.encode(), f"{CLASS_FILE}.bak": OF_A_CLASS.encode(),
    **{file + suffix: SIGNED for file in (RECORDED, CLASS_FILE) for suffix in (SIGNATURE, NEXT_SIGNATURE)},
    ".plumbline-0123456789abcdef.new": STATE_TEXT[:9],
}  # fmt: skip


def of_storage(*starts: str) -> dict[str, bytes]:
    return {name: text for name, text in OF_STORAGE.items() if name.startswith(starts)}


SCENES = {
    "a daemon": Scene(storage, a_daemon, of_storage("state.json", LOCK_FILE, ".plumbline-")),
    "the cluster's OSDs": Scene(storage, the_osds, of_storage(OSDS_FILE)),
    "locks of runs now and recordings": Scene(storage, locks, of_storage(*LOCKS[1:])),
    "baseline record": Scene(storage, a_recording, of_storage(WORK_FILE, RECORDED)),
    "baseline install": Scene(storage, an_installation, of_storage("baseline.")),
    "probe claim": Scene(storage, a_claim, of_storage("volume-claim.")),
    "maintenance": Scene(storage, a_lease, of_storage("maintenance.")),
    "uninstall": Scene(storage, uninstall, OF_STORAGE),
    "fleet record, fleet accept": Scene(fleet_folder, a_fleet, {
        STATE: b"""{"version":1,"started":1.0,"options":[],"turns":{}}""", PENDING: b"{",
        "record.lock": HELD, "accept.lock": HELD,
        f"{OF_NODES}/a.yaml": MEASURED.encode(),
        f"{ACCEPTED}/a.yaml": MEASURED.encode(), f"{ACCEPTED}/a.yaml.sig": SIGNED, f"{ACCEPTED}/a.yaml.bak": b"",
        f"{CLASSES}/box.yaml": OF_A_CLASS.encode(), f"{CLASSES}/box.yaml.sig": SIGNED, f"{CLASSES}/box.yaml.bak": b"",
    }),
    "where a daemon is": Scene(folder, a_place_of_a_daemon, {"daemon.json": PLACE_TEXT}),
    "report": Scene(folder, a_report, {"report.html": b"<!DOCTYPE html>", "report.html.bak": b"<!DOCTYPE html>"}),
    "ceph setup": Scene(folder, a_keyring, {"keyring": KEYRING}),
    "ceph remove": Scene(folder, a_keyring_taken_back, {"keyring": KEYRING}),
    "probes": Scene(folder, probes, {
        guard.MARKER: guard.MARKER_TEXT, CANARY: b"x", f"{FIO}.0": b"x", f"{FIO}.1": b"x", "fio.json": b"{",
        "metadata": b"", "metadata/plumbline-000001": b"x",
    }, by_mark=True),
    "probes in a directory without a mark": Scene(folder, probes, {CANARY: b"x", f"{FIO}.0": b"x", "thesis.tex": b"x"}),
}  # fmt: skip

# --- what is planted ---


def _old(path: Path, data: bytes, mode: int = 0o640) -> None:
    path.write_bytes(data)
    path.chmod(mode)
    os.utime(path, ns=(1, 1))


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("mine")


def _of_another(path: Path) -> None:
    path.write_bytes(FOREIGN)
    os.chown(path, 12345, 12345)


PLAIN: dict[str, Callable[[Path, bytes], object]] = {
    "foreign content": lambda path, _: _old(path, FOREIGN),
    "random bytes": lambda path, _: _old(path, os.urandom(3000)),
    "an empty file": lambda path, _: _old(path, b""),
    "begins like ours": lambda path, genuine: _old(path, genuine.rstrip() + b"\nforeign: [\n"),
    "a read-only file": lambda path, _: _old(path, FOREIGN, 0o400),
}
ODD: dict[str, Callable[[Path, bytes], object]] = {
    "a link": lambda path, _: path.symlink_to(_foreign(path)),
    "a dangling link": lambda path, _: path.symlink_to("not-there"),
    "a hard link": lambda path, _: path.hardlink_to(_foreign(path)),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a directory": lambda path, _: _directory(path),
    "a file of another user": lambda path, _: _of_another(path),
    "a name with codes": lambda path, _: _old(path.with_name(f"{path.name}\n\x1b[2J"), FOREIGN),
}
KINDS = PLAIN | ODD
NOTHING_TO_LOSE = {*LOCKS, ".plumbline-0123456789abcdef.new"}
"""Where an empty file counts as ours, beside our mark: a process that was killed after creating it leaves it so."""


def _foreign(path: Path) -> Path:
    """A precious file outside, on the same file system."""
    top = next(each for each in path.parents if each.name == "place").parent
    precious = top / "precious"
    if not precious.exists():
        _old(precious, FOREIGN)
    return precious


def attempts() -> Iterator[tuple[str, str, str]]:
    """(scene, name, kind)"""
    for scene, (_, _, genuine, by_mark) in SCENES.items():
        for name in genuine:
            for kind in KINDS:
                ours = by_mark and kind in PLAIN and name != guard.MARKER
                if not ours and not (kind == "an empty file" and name in NOTHING_TO_LOSE and scene != "report"):
                    yield scene, name, kind


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """In memory where that can be had: each attempt flushes each file. Probes refuse memory."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path_factory.mktemp("planted")) as made:
        yield Path(made)


def lost(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    return [
        path
        for path, entry in before.items()
        if after.get(path) != entry
        and not any(name.startswith((f"{path}.damaged-", f"{path}.bak")) and after[name] == entry for name in after)
    ]


def made(root: Path, scene: Scene, name: str) -> Path:
    """The place, with all that a run before has left but for ``name``."""
    root.mkdir()
    place = root / "place"
    scene.make(place)
    if scene.by_mark:
        (place / guard.MARKER).write_bytes(guard.MARKER_TEXT)
    path = place / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    for other in (f"{OF_NODES}/a.yaml", RECORDED, STATE_FILE):
        if other in scene.genuine and other != name and scene.act is not uninstall:
            (place / other).write_bytes(scene.genuine[other])
    path.unlink(missing_ok=True)
    return path


@pytest.fixture
def memory_is_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the probes' guard, which else refuses to measure memory."""
    monkeypatch.setattr(guard, "MEMORY_FILESYSTEMS", frozenset())


@pytest.mark.usefixtures("memory_is_a_disk")
def test_nothing_foreign_is_lost(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong, number = [], 0
    for number, (title, name, kind) in enumerate(attempts(), 1):
        scene, root = SCENES[title], top / str(number)
        path = made(root, scene, name)
        known = set(manifest(root))
        KINDS[kind](path, scene.genuine[name])
        before = {each: entry for each, entry in manifest(root).items() if each not in known}
        with contextlib.suppress(PlumblineError, OSError):
            scene.act(root / "place")
        wrong += [f"{title}: {name!r} {kind}: {each!r}" for each in lost(before, manifest(root))]
    capsys.readouterr()
    assert wrong == []
    assert number >= 150


@pytest.mark.usefixtures("memory_is_a_disk")
def test_nothing_that_is_put_there_after_the_look_is_lost(top: Path) -> None:
    """The file is ours when it is looked at, and is exchanged with a foreign one before the step itself."""
    wrong, hit = [], 0
    for title, scene in SCENES.items():
        for name, genuine in scene.genuine.items():
            if scene.by_mark and name != guard.MARKER:
                continue
            root = top / f"exchanged-{title}-{name.replace('/', '-')}"
            path = made(root, scene, name)
            path.write_bytes(genuine)
            planted: list[Entry] = []
            look = OwnDirectory._look

            def exchanged(
                own: OwnDirectory, looked: str, proof: object, *, missing: bool = True, path: Path = path,
                planted: list[Entry] = planted, look: Callable[..., None] = look,
            ) -> None:  # fmt: skip
                look(own, looked, proof, missing=missing)
                if looked == path.name and not planted and path.parent.samefile(own.name):
                    _old(path.with_name("theirs"), FOREIGN)
                    path.with_name("theirs").rename(path)
                    planted.append(manifest(path.parent)[path.name])

            with mock.patch.object(OwnDirectory, "_look", exchanged), contextlib.suppress(PlumblineError, OSError):
                scene.act(root / "place")
            hit += len(planted)
            wrong += [f"{title}: {name!r}" for entry in planted if entry not in manifest(root).values()]
    assert wrong == []
    assert hit >= 15


def test_naive_code_would_be_caught(top: Path) -> None:
    for number, naive in enumerate(
        (Path.unlink, lambda path: path.write_bytes(b"ours"), lambda path: path.chmod(0o644))
    ):
        root = top / f"naive-{number}"
        path = made(root, SCENES["a daemon"], STATE_FILE)
        _old(path, FOREIGN)
        before = manifest(root)
        naive(path)
        assert lost(before, manifest(root)) == ["place/state.json"]


# --- no name without a plant ---

PLANTED = {
    "background/leases.py:LEASE_FILE": LEASE_FILE,
    "background/leases.py:SEEN_FILE": SEEN_FILE,
    "baseline/record/work_file.py:WORK_FILE": WORK_FILE,
    "baseline/writer.py:path.name": "report.html",
    "commands/ceph/keyring.py:Path(path).name": "keyring",
    "commands/fleet_node.py:CANDIDATE": CANDIDATE,
    "commands/fleet_node.py:CLASS_FILE": CLASS_FILE,
    "commands/fleet_node.py:CLASS_FILE + SIGNATURE": CLASS_FILE + SIGNATURE,
    "commands/fleet_node.py:name": RECORDED,
    "commands/fleet_node.py:name + NEXT_SIGNATURE": RECORDED + NEXT_SIGNATURE,
    "commands/fleet_node.py:name + SIGNATURE": RECORDED + SIGNATURE,
    "config/installation.py:_NAME": "daemon.json",
    "commands/uninstall_files.py:name": STATE_FILE,  # and every other name of a storage path
    "fleet/store.py:name": f"{ACCEPTED}/a.yaml",
    "probes/ceph/osd_lookup.py:OSDS_FILE": OSDS_FILE,
    "probes/fio/fio.py:name": f"{FIO}.0",
    "probes/filesystem/metadata_worker.py:name": "metadata/plumbline-000001",
    "probes/run/gates.py:self._path.name": HEAVY_LOCK,
    "probes/run/guard.py:MARKER": guard.MARKER,
    "probes/run/guard.py:name": CANARY,
    "claims/claim_file.py:file": claim_file(CLAIM),
    "probes/run/state.py:STATE_FILE": STATE_FILE,
    "probes/run/state.py:kept": f"{STATE_FILE}.version-1",
    "probes/run/storage.py:name": ".plumbline-0123456789abcdef.new",
    "probes/run/storage.py:LOCK_FILE": LOCK_FILE,
    "probes/run/storage.py:MARKER": MARKER,
}
"""Module, and the name as it is written there → a name of the grid that comes to this call."""
NO_FILES = {
    "fleet/store.py:RECORDED",
    "fleet/store.py:''",
    "baseline/fingerprint.py:part",
    "report/baseline/plot.py:' '",
}
"""Folders of a store, whose files have a row of their own; texts."""
_CALLS = {"replace": (3, 3), "remove": (2, 2), "create": (2, 2), "edit": (2, 3), "set_aside": (1, 1), "lock": (1, 1)}
_GENERAL = ("core/files.py", "fleet/together.py", "core/directories.py")


def named(source: str) -> Iterator[str]:
    """The name in each call that replaces, removes, creates, writes to or moves a file of ours."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        function = ast.unparse(node.func).rpartition(".")
        least, most = _CALLS.get(function[2], (9, 0))
        if (function[0] and least <= len(node.args) <= most) or function[2] == "Change":
            yield ast.unparse(node.args[0])


def test_every_name_in_the_code_has_a_plant() -> None:
    found = {
        f"{module}:{name}"
        for path in PACKAGE.rglob("*.py")
        if not (module := str(path.relative_to(PACKAGE))).startswith(_GENERAL)
        for name in named(path.read_text("utf-8"))
    }
    assert found - set(PLANTED) == NO_FILES
    assert set(PLANTED) - found == set()
    planted = {name for scene in SCENES.values() for name in scene.genuine}
    assert set(PLANTED.values()) - planted == {MARKER}  # tests/attack/test_storage_and_uninstall.py plants the mark


def test_every_constant_name_of_the_storage_path_has_one() -> None:
    constants = {
        value
        for name, value in vars(storage_names).items()
        if name.isupper() and isinstance(value, str) and value[0] != "."
    }
    assert constants - set(OF_STORAGE) == set()
    assert MARKER_TEXT.startswith(b"Plumbline keeps its state here.")


def test_a_new_name_in_the_code_is_found() -> None:
    assert list(named("directory.replace(NEW, data, proof, mode=1)\nChange(name + '.x', None, p)\nown.lock('l')")) == [
        "NEW", "name + '.x'", "'l'",
    ]  # fmt: skip
    assert list(named("text.replace('a', 'b')\nnames.remove(x)")) == []
