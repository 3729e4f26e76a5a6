"""What stands in the place of a probe's files and was not made by it: nothing of it, and nothing it leads to, differs
after the probe was there. Each thing, in the place of each name, against each part of a probe that opens or removes."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from plumbline.config.probes.disk import FioConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.canary.canary_worker import FILE_NAME as CANARY
from plumbline.probes.filesystem import metadata_worker
from plumbline.probes.fio.fio import remove_surplus, run_fio
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run import guard
from plumbline.probes.run.model import Run
from support.disks import disk_folder
from support.filesystems import skip_without_root
from support.manifest import changes, manifest

pytestmark = [pytest.mark.needs_root]
SIZE = 1 << 17
CATALOGUE = load_catalogue()
SOMEBODY = 12345


class Place:
    """``foreign`` is somebody else's; ``probe`` is a probe's directory, marked; both below ``root``."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root, self.stack = root, stack
        self.foreign, self.probe = root / "foreign", root / "probe"
        self.foreign.mkdir()
        (self.foreign / "letters").mkdir()
        (self.foreign / "letters" / "plumbline-000000").write_bytes(b"dear reader")
        (self.foreign / "letters" / "fio.0").write_bytes(b"dear writer")
        (self.foreign / "precious").write_bytes(b"precious" * 1024)
        os.setxattr(self.foreign / "precious", "user.note", b"keep")
        guard.prepare_directory(self.probe, size_bytes=SIZE).close()

    def plan(self, workload: str = "randwrite-4k-qd1-j1") -> FioPlan:
        config = FioConfig(
            name="fio", workload=workload, runtime=Duration(1), timeout=Duration(60), file_size=Size(SIZE)
        )
        found = CATALOGUE.get(workload, where="", key="")
        return FioPlan.of(config, found, directory=self.probe, device_class="ssd")


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    skip_without_root("makes device nodes and mounts, gives files away")
    with disk_folder(tmp_path_factory) as folder, ExitStack() as stack:
        root = folder / "attack"
        root.mkdir()
        yield Place(root, stack)


def foreign_link(at: Path, place: Place) -> None:
    at.symlink_to(place.foreign / "precious")


def link_to_a_folder(at: Path, place: Place) -> None:
    at.symlink_to(place.foreign / "letters")


def link_to_nowhere(at: Path, place: Place) -> None:
    at.symlink_to(place.foreign / "not-there-yet")


def hard_link(at: Path, place: Place) -> None:
    at.hardlink_to(place.foreign / "precious")


def pipe(at: Path, _place: Place) -> None:
    os.mkfifo(at)


def listening_socket(at: Path, place: Place) -> None:
    made = place.stack.enter_context(socket.socket(socket.AF_UNIX))
    held = os.open(at.parent, os.O_PATH)  # a path may be too long for a socket
    try:
        made.bind(f"/proc/self/fd/{held}/{at.name}")
    finally:
        os.close(held)


def character_device(at: Path, _place: Place) -> None:
    os.mknod(at, stat.S_IFCHR | 0o600, os.makedev(1, 3))


def block_device(at: Path, _place: Place) -> None:
    os.mknod(at, stat.S_IFBLK | 0o600, os.makedev(7, 250))


def empty_folder(at: Path, _place: Place) -> None:
    at.mkdir(mode=0o755)
    os.chown(at, SOMEBODY, SOMEBODY)


def folder_with_files(at: Path, _place: Place) -> None:
    at.mkdir()
    (at / "letter").write_bytes(b"dear reader")
    (at / "fio.0").write_bytes(b"dear writer")


def another_users_file(at: Path, _place: Place) -> None:
    at.write_bytes(b"x" * SIZE)
    os.chown(at, SOMEBODY, SOMEBODY)


def unchangeable(at: Path, place: Place) -> None:
    at.write_bytes(b"somebody's")
    attribute(at, "i", place)


def append_only(at: Path, place: Place) -> None:
    at.write_bytes(b"somebody's")
    attribute(at, "a", place)


def attribute(at: Path, letter: str, place: Place) -> None:
    done = subprocess.run(["chattr", f"+{letter}", at], check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip("the file system has no such attribute")
    place.stack.callback(subprocess.run, ["chattr", f"-{letter}", at], check=True)


def mounted_file(at: Path, place: Place) -> None:
    at.write_bytes(b"")
    mount(place.foreign / "precious", at, place)


def mounted_folder(at: Path, place: Place) -> None:
    at.mkdir()
    mount(place.foreign / "letters", at, place)


def mount(what: Path, at: Path, place: Place) -> None:
    if subprocess.run(["mount", "--bind", what, at], check=False, capture_output=True).returncode != 0:
        pytest.skip("this host can't mount")
    place.stack.callback(subprocess.run, ["umount", at], check=True)


THINGS: tuple[Callable[[Path, Place], None], ...] = (
    foreign_link, link_to_a_folder, link_to_nowhere, hard_link, pipe, listening_socket, character_device, block_device,
    empty_folder, folder_with_files, another_users_file, unchangeable, append_only, mounted_file, mounted_folder,
)  # fmt: skip


def canary(place: Place) -> None:
    with guard.prepare_directory(place.probe, size_bytes=SIZE) as directory:
        os.close(directory.open_file(CANARY, SIZE, direct=True, dsync=True, pause=lambda _: None))


def fio(place: Place) -> None:
    run_fio(place.plan(), Run(ProcessRunner(os.environ), time.time, threading.Event()))


def fio_of_four(place: Place) -> None:
    run_fio(place.plan("randrw75-4k-qd16-j4"), Run(ProcessRunner(os.environ), time.time, threading.Event()))


def tidying(place: Place) -> None:
    remove_surplus(place.plan())


def metadata(place: Place) -> None:
    with suppress(OSError):  # the worker's main says it in one line
        metadata_worker.run(str(place.probe), 3, 512, 60.0)


def metadata_tidying(place: Place) -> None:
    with suppress(OSError):
        metadata_worker.run(str(place.probe), 0, 0, 60.0)


def refusal_of(step: Callable[[Place], None], place: Place) -> ProbeRefused | None:
    try:
        step(place)
    except ProbeRefused as refusal:
        return refusal
    return None


STEPS: tuple[tuple[str, Callable[[Place], None]], ...] = (
    (CANARY, canary),
    (guard.MARKER, canary),
    (guard.MARKER, tidying),
    (guard.MARKER, metadata),
    ("fio.0", fio),
    ("fio.2", fio_of_four),
    ("fio.3", tidying),
    ("fio.json", tidying),
    ("fio-partial.0", tidying),
    ("metadata", metadata),
    ("metadata/plumbline-000000", metadata),
    ("metadata/plumbline-000002", metadata_tidying),
)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("thing", THINGS, ids=lambda made: made.__name__)
@pytest.mark.parametrize(("name", "step"), STEPS, ids=[f"{step.__name__}-{name}" for name, step in STEPS])
def test_a_thing_in_the_place_of_a_file(
    place: Place, name: str, step: Callable[[Place], None], thing: Callable[[Path, Place], None]
) -> None:
    at = place.probe / name
    at.parent.mkdir(mode=0o700, exist_ok=True)
    if name == guard.MARKER:
        at.unlink()
        (place.probe / CANARY).write_bytes(b"somebody's")
        (place.probe / "fio.3").write_bytes(b"somebody's")
    thing(at, place)
    before = manifest(place.root)
    said = refusal_of(step, place)
    assert said is None or (said.reason in guard.ADVICE and "\n" not in str(said))
    assert changes(before, manifest(place.root)) == []
    assert not (place.foreign / "not-there-yet").exists()


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("thing", [each for each in THINGS if each is not empty_folder], ids=lambda made: made.__name__)
@pytest.mark.parametrize("step", [canary, fio, tidying, metadata, metadata_tidying], ids=lambda made: made.__name__)
def test_a_thing_in_the_place_of_the_directory(
    place: Place, step: Callable[[Place], None], thing: Callable[[Path, Place], None]
) -> None:
    shutil.rmtree(place.probe)
    thing(place.probe, place)
    before = manifest(place.root)
    said = refusal_of(step, place)
    assert said is None or said.reason in guard.ADVICE
    after = manifest(place.root)
    assert changes(before, after) == []
    assert set(after) == set(before), "nothing came into a foreign directory"


@pytest.mark.parametrize("content", [b"", b"somebody's", guard.MARKER_TEXT[:-1], guard.MARKER_TEXT * 2])
@pytest.mark.parametrize("step", [canary, fio, tidying, metadata, metadata_tidying], ids=lambda made: made.__name__)
def test_a_mark_that_is_not_ours(place: Place, step: Callable[[Place], None], content: bytes) -> None:
    (place.probe / guard.MARKER).write_bytes(content)
    for name in (CANARY, "fio.0", "fio.3", "fio.json", "fio-partial.0"):
        (place.probe / name).write_bytes(b"somebody's")
    (place.probe / "metadata").mkdir()
    (place.probe / "metadata" / "plumbline-000000").write_bytes(b"somebody's")
    before = manifest(place.root)
    with pytest.raises(ProbeRefused, match="was not made by Plumbline"):
        step(place)
    after = manifest(place.root)
    assert changes(before, after) == []
    assert set(after) == set(before)


def test_a_file_with_holes_is_ours_and_is_written_full(place: Place) -> None:
    (place.probe / "fio.0").touch()
    os.truncate(place.probe / "fio.0", SIZE)
    before = manifest(place.foreign)
    fio(place)
    assert (place.probe / "fio.0").stat().st_blocks * 512 >= SIZE
    assert changes(before, manifest(place.foreign)) == []
