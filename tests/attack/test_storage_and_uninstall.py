"""Foreign things under every name that Plumbline gives: whatever it does there, they are as before.

Each attempt compares everything foreign before and after, content, inode, owner, times and all. What Plumbline may do
with a plain file of its own user in a directory that carries its mark is to give it another name; nothing is lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.work_file import KeptRun, WorkFile
from plumbline.baseline.writer import kept, write_text
from plumbline.cli import main
from plumbline.commands.uninstall_files import find, remove
from plumbline.core.storage_names import MARKER as STORAGE_MARKER
from plumbline.errors import PlumblineError
from plumbline.probes.ceph.osd_lookup import remember
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.guard import MARKER as PROBE_MARKER
from plumbline.probes.run.guard import MARKER_TEXT as PROBE_MARKER_TEXT
from plumbline.probes.run.run_now import check_storage
from plumbline.probes.run.state import ProbeRecord, StateStore, open_storage
from plumbline.sources.ceph.cluster_osds import ClusterOsds
from support.manifest import Entry, manifest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes and owners need root")

OTHER = 12345
FOREIGN = '{"version": 4, "terraform_version": "1.5.7", "resources": []}\n'


class World:
    """A storage path, and beside it what belongs to others."""

    def __init__(self, root: Path, *, marked: bool = True) -> None:
        self.root, self.storage, self.probe = root, root / "storage", root / "probe"
        (root / "foreign" / "folder").mkdir(parents=True)
        (root / "foreign" / "precious").write_text(FOREIGN)
        (root / "foreign" / "folder" / "deep").write_text("deep")
        if marked:
            open_storage(self.storage).close()
        else:
            self.storage.mkdir(0o700)
        self.probe.mkdir(0o700)
        (self.probe / PROBE_MARKER).write_bytes(PROBE_MARKER_TEXT)
        self.ours = {".", "storage", "probe"} | {
            str(each.relative_to(root)) for each in (*self.storage.iterdir(), *self.probe.iterdir())
        }

    def plant(self, kind: str, *paths: Path) -> dict[str, Entry]:
        """Put a foreign thing there, at each path; everything foreign as it is then."""
        for path in paths:
            path.unlink(missing_ok=True)
            KINDS[kind](path, self.root / "foreign")
            self.ours.discard(str(path.relative_to(self.root)))
        return {name: entry for name, entry in manifest(self.root).items() if name not in self.ours}

    def lost(self, before: Mapping[str, Entry]) -> list[str]:
        """What is no longer as it was, under its name or, set aside or kept as a backup, under that and an ending."""
        after = manifest(self.root)
        return [
            f"{path}: {entry} is now {after.get(path)}"
            for path, entry in before.items()
            if after.get(path) != entry
            and not any(name.startswith((f"{path}.damaged-", f"{path}.bak")) and after[name] == entry for name in after)
        ]


def _folder(path: Path, _: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("mine")


def _content(path: Path, _: Path) -> None:
    path.write_text(FOREIGN)
    os.utime(path, ns=(1, 1))


def _owner(path: Path, _: Path) -> None:
    path.touch()
    os.chown(path, OTHER, OTHER)


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda path, foreign: path.symlink_to(foreign / "precious"),
    "dangling link": lambda path, foreign: path.symlink_to(foreign / "not-there"),
    "link to a directory": lambda path, foreign: path.symlink_to(foreign / "folder"),
    "hard link": lambda path, foreign: path.hardlink_to(foreign / "precious"),
    "fifo": lambda path, _: os.mkfifo(path),
    "device": lambda path, _: os.mknod(path, 0o60600, os.makedev(7, 250)),
    "directory": _folder,
    "file of another user": _owner,
    "foreign content": _content,
}
NAMES = (
    "state.json", "state.json.new", "state.json.damaged-1", "state.json.version-1", "lock", "heavy-probe.lock",
    "record.lock", "baseline.yaml", "baseline.yaml.bak", "record.work.json", "record.work.json.new", "ceph-osds.json",
    "ceph-osds.json.new", ".plumbline-0123456789abcdef.new",
)  # fmt: skip
PROBE_NAMES = ("canary.dat", "fio.0", "fio.json", "fio-partial.0", "metadata")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """In memory where that can be had: hundreds of attempts flush each file they write."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as made:
        yield Path(made)


@pytest.fixture
def world(root: Path) -> World:
    return World(root)


def a_daemon(storage: Path) -> None:
    """All that a daemon, an on-demand run and a recording write in the storage path, twice: as after a restart."""
    for _ in range(2):
        store = StateStore(storage)
        with contextlib.suppress(PlumblineError), contextlib.closing(store):
            store.open()
            store.put("fio", ProbeRecord())
        with contextlib.suppress(PlumblineError):
            remember(storage, ClusterOsds({}, {}))
        for lock in ("heavy-probe.lock", "record.lock"):
            with contextlib.suppress(PlumblineError), HeavyLock(storage / lock).hold("fio"):
                pass
        with contextlib.suppress(PlumblineError):
            work = WorkFile(storage, release="1", host="h", fingerprint=Fingerprint())
            work.resume({}, now=0.0)
            work.keep(KeptRun(step="a", parameters="b", finished=0.0, figures=()))
            work.remove()
        for force in (False, True):
            with contextlib.suppress(PlumblineError):
                check_storage(storage)  # as a recording does first
                write_text(storage / "baseline.yaml", "ours", over=kept(storage / "baseline.yaml") if force else None)


def uninstall(storage: Path) -> None:
    """As a person calls it, with the probe's directory in the configuration."""
    root = storage.parent
    config = root / "foreign" / "plumbline.yaml"
    nowhere = ["--path.etc", str(root / "none"), "--path.var", str(root / "none")]
    main(["uninstall", "--config.file", str(config), "--storage.path", str(storage), *nowhere, "--apply"])


def configure(world: World) -> None:
    (world.root / "foreign" / "plumbline.yaml").write_text(
        f"probes: [{{type: canary, name: canary, directory: {world.probe}, enabled: false}}]\n"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*NAMES, STORAGE_MARKER])
def test_the_storage_path_under_a_daemon(world: World, name: str, kind: str) -> None:
    before = world.plant(kind, world.storage / name)
    a_daemon(world.storage)
    assert world.lost(before) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [NAMES, (STORAGE_MARKER,)], ids=["all names", "the mark"])
def test_the_storage_path_under_uninstall(world: World, names: tuple[str, ...], kind: str) -> None:
    configure(world)
    before = world.plant(kind, *(world.storage / name for name in names))
    uninstall(world.storage)
    assert world.lost(before) == []
    assert not world.probe.exists()
    assert sorted(path.name for path in world.storage.iterdir()) == sorted(names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [PROBE_NAMES, (PROBE_MARKER,)], ids=["all names", "the mark"])
def test_a_probes_directory_under_uninstall(world: World, names: tuple[str, ...], kind: str) -> None:
    if kind == "foreign content" and names is PROBE_NAMES:
        names = ("fio.٣", "metadata")  # in a directory with our mark a plain file with a name of ours is ours
    configure(world)
    before = world.plant(kind, *(world.probe / name for name in names))
    uninstall(world.storage)
    assert world.lost(before) == []
    assert not world.storage.exists()
    assert sorted(path.name for path in world.probe.iterdir()) == sorted(names)


@pytest.mark.parametrize("act", [a_daemon, uninstall])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["state.json", "baseline.yaml"])
def test_a_directory_without_our_mark(root: Path, name: str, kind: str, act: Callable[[Path], None]) -> None:
    """Nothing in it may even get another name."""
    world = World(root, marked=False)
    configure(world)
    before = world.plant(kind, world.storage / name)
    if act is a_daemon:
        with pytest.raises(PlumblineError):
            StateStore(world.storage).open()
    act(world.storage)
    after = manifest(world.root)
    assert {path: after.get(path) for path in before} == before
    assert (world.storage / name).lstat()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["report.html", "report.html.bak"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_and_its_backup(world: World, kind: str, name: str, force: bool) -> None:
    if name.endswith(".bak"):
        (world.root / "foreign" / "report.html").write_text("older")
    before = world.plant(kind, world.root / "foreign" / name)
    with contextlib.suppress(PlumblineError):
        path = world.root / "foreign" / "report.html"
        write_text(path, "new", over=kept(path) if force else None)
    assert world.lost(before) == []


def _write(path: Path) -> None:
    with path.open("w") as file:
        file.write("ours")


def _write_and_rename(path: Path) -> None:
    path.with_name("new").write_text("ours")
    path.with_name("new").replace(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


NAIVE = [
    *((_write, kind) for kind in ("link", "hard link", "file of another user", "foreign content")),
    *((_write_and_rename, kind) for kind in KINDS if kind != "directory"),
    *((_remove, kind) for kind in KINDS),
]


@pytest.mark.parametrize(("naive", "kind"), NAIVE)
def test_naive_code_is_caught(world: World, naive: Callable[[Path], None], kind: str) -> None:
    before = world.plant(kind, world.storage / "state.json")
    naive(world.storage / "state.json")
    assert len(world.lost(before)) >= 1


# --- beside somebody who exchanges directories all the time ---

RACE_S = 5.0
_EXCHANGER = """
import os, sys
from plumbline.core.renaming import exchange
folder = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
print(flush=True)
while True:
    try:
        exchange(sys.argv[2], sys.argv[3], folder)
    except OSError:
        pass
"""


@contextlib.contextmanager
def exchanging(folder: Path, one: str, other: str) -> Iterator[None]:
    """A process that exchanges two names in ``folder`` as fast as it can."""
    process = subprocess.Popen(
        [sys.executable, "-c", _EXCHANGER, str(folder), one, other], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


def foreign_twin(world: World) -> None:
    """What the links lead to: all names of ours, of which only the mark of the probe's directory is not foreign."""
    twin = world.root / "foreign" / "twin"
    twin.mkdir(0o700)
    for name in (*NAMES, "canary.dat", "fio.0"):
        (twin / name).write_text(FOREIGN)
    (twin / PROBE_MARKER).write_bytes(PROBE_MARKER_TEXT)


def rounds(*, until: Callable[[], bool] = lambda: True) -> Iterator[int]:
    """For a while, and on for ten times as long where what has to happen in a race has not: on a busy machine the other
    side may win every one for seconds."""
    began, number = time.monotonic(), 0
    while number < 10 or time.monotonic() - began < (RACE_S if until() else 10 * RACE_S):
        yield (number := number + 1)


@pytest.mark.long
@pytest.mark.parametrize("which", ["storage", "probe"])
def test_uninstall_beside_a_directory_exchanged_with_a_link(world: World, which: str) -> None:
    foreign_twin(world)
    (world.root / "place").mkdir()
    (world.root / "place" / "link").symlink_to("../foreign/twin")
    place = world.root / "place" / "directory"
    before = manifest(world.root / "foreign")
    removed: list[Path] = []
    with exchanging(world.root / "place", "directory", "link"):
        for _ in rounds(until=lambda: bool(removed)):
            fresh = world.root / "fresh"
            fresh.mkdir(0o700)
            if which == "storage":
                open_storage(fresh).close()
                (fresh / "state.json").write_bytes(b'{"schema_version":3,"probes":{},"disks":[]}')
            else:
                (fresh / PROBE_MARKER).write_bytes(PROBE_MARKER_TEXT)
                (fresh / "canary.dat").write_bytes(b"ours")
            with contextlib.suppress(OSError):
                fresh.rename(place)
            with contextlib.suppress(PlumblineError):
                folders = find(place) if which == "storage" else find(world.root / "none", [place])
                removed.extend(remove(folders))
            shutil.rmtree(fresh, ignore_errors=True)
            for name in ("directory", "link"):
                left = world.root / "place" / name
                if left.is_dir() and not left.is_symlink():
                    with contextlib.suppress(OSError):
                        left.rename(world.root / "left")
                        shutil.rmtree(world.root / "left")
    assert manifest(world.root / "foreign") == before
    assert removed


@pytest.mark.long
@pytest.mark.parametrize("kind", ["link", "hard link", "foreign content", "directory"])
def test_a_daemon_beside_a_state_file_exchanged_with_a_foreign_one(world: World, kind: str) -> None:
    """Somebody with the rights of the daemon's user, who may write in its directory."""
    store = StateStore(world.storage)
    store.open()
    store.put("fio", ProbeRecord())
    before = world.plant(kind, world.storage / "foreign")
    planted = before["storage/foreign"]
    before = {path: entry for path, entry in before.items() if path.startswith("foreign")}
    with exchanging(world.storage, "state.json", "foreign"), contextlib.closing(store):
        for number in rounds():
            store.put("fio", ProbeRecord(runs={}, last_skip=str(number)))
    assert world.lost(before) == []
    assert planted in manifest(world.storage).values()
