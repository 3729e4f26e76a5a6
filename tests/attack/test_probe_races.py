"""A probe at work while somebody exchanges its files with foreign ones in a loop: whatever was looked at may be another
file a microsecond later. Nothing foreign differs at the end, under whichever of the two names it then stands."""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from plumbline.config.probes.disk import FioConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.filesystem import metadata_worker
from plumbline.probes.fio.fio import remove_surplus, run_fio
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run import guard
from plumbline.probes.run.model import Run
from support.disks import disk_folder
from support.exchanging import exchanging
from support.filesystems import skip_without_root
from support.manifest import Entry, manifest

pytestmark = [pytest.mark.needs_root, pytest.mark.long]
SIZE = 1 << 17
LASTS_S = 2.0
SOMEBODY = 12345
PRECIOUS = b"precious" * 4096


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    skip_without_root("gives files away")
    with disk_folder(tmp_path_factory) as folder:
        place = folder / "race"
        place.mkdir()
        (place / "foreign").mkdir()
        (place / "foreign" / "precious").write_bytes(PRECIOUS)
        yield place


def hard_link(at: Path) -> None:
    at.hardlink_to(at.parent / "precious")


def symbolic_link(at: Path) -> None:
    at.symlink_to(at.parent / "precious")


def another_users_file(at: Path) -> None:
    at.write_bytes(PRECIOUS)
    os.chown(at, SOMEBODY, SOMEBODY)


def pipe(at: Path) -> None:
    os.mkfifo(at)


def folder(at: Path) -> None:
    at.mkdir()
    (at / "letter").write_bytes(PRECIOUS)


THINGS: tuple[Callable[[Path], None], ...] = (hard_link, symbolic_link, another_users_file, pipe, folder)


def plan(directory: Path) -> FioPlan:
    config = FioConfig(
        name="fio", workload="randwrite-4k-qd1-j1", runtime=Duration(1), timeout=Duration(60), file_size=Size(SIZE)
    )
    found = load_catalogue().get(config.workload, where="", key="")
    return FioPlan.of(config, found, directory=directory, device_class="ssd")


def canary(directory: Path) -> None:
    """From a file that is too short, so that it is written full each time."""
    with guard.prepare_directory(directory, size_bytes=SIZE, files=("canary.dat",)) as place:
        fd = place.open_file("canary.dat", SIZE, direct=True, dsync=True, pause=lambda _: None)
        os.close(fd)


def fio(directory: Path) -> None:
    run_fio(plan(directory), Run(ProcessRunner(os.environ), time.time, threading.Event()))


def tidying(directory: Path) -> None:
    remove_surplus(plan(directory))


def metadata(directory: Path) -> None:
    metadata_worker.run(str(directory), 2, 512, 60.0)


def metadata_tidying(directory: Path) -> None:
    metadata_worker.run(str(directory), 0, 0, 60.0)


STEPS: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("canary.dat", canary),
    (guard.MARKER, canary),
    ("fio.0", fio),
    ("fio.3", tidying),
    ("fio.json", tidying),
    ("metadata/plumbline-000000", metadata_tidying),
    ("metadata", metadata),
)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("thing", THINGS, ids=lambda made: made.__name__)
@pytest.mark.parametrize(("name", "step"), STEPS, ids=[f"{step.__name__}-{name}" for name, step in STEPS])
def test_a_file_exchanged_in_a_loop(
    root: Path, name: str, step: Callable[[Path], None], thing: Callable[[Path], None]
) -> None:
    probe, foreign = root / "probe", root / "foreign" / "thing"
    guard.prepare_directory(probe, size_bytes=SIZE).close()
    thing(foreign)
    before = by_inode(root / "foreign")
    at = probe / name
    ours(at, name)
    deadline = time.monotonic() + LASTS_S
    rounds = 0
    with exchanging(at, foreign) as exchanges:
        while time.monotonic() < deadline:
            with suppress(ProbeRefused, OSError):  # what it may say
                step(probe)
            if not os.path.lexists(at):
                ours(at, name)
            rounds += 1
    after = by_inode(root)
    for inode, entry in before.items():
        assert after.get(inode) == entry, (rounds, exchanges.done)
    assert rounds > 0
    assert exchanges.done > 0


def ours(at: Path, name: str) -> None:
    """What the probe would have left there: of a wrong size, so that there is something to do."""
    if name == "metadata":
        return
    at.parent.mkdir(mode=0o700, exist_ok=True)
    at.write_bytes(guard.MARKER_TEXT if name == guard.MARKER else b"x" * 4096)


def by_inode(folder: Path) -> dict[tuple[int, int], Entry]:
    """Everything but directories that are ours anyway, by what does not change with a name."""
    found = manifest(folder)
    return {entry.inode: entry for path, entry in found.items() if path not in {".", "probe", "foreign"}}


@pytest.mark.parametrize("step", [canary, fio, tidying, metadata], ids=lambda made: made.__name__)
def test_the_directory_exchanged_with_a_foreign_one_in_a_loop(root: Path, step: Callable[[Path], None]) -> None:
    probe, foreign = root / "probe", root / "foreign"
    guard.prepare_directory(probe, size_bytes=SIZE).close()
    for name in ("canary.dat", "fio.0", "fio.3", "fio.json"):
        (foreign / name).write_bytes(PRECIOUS)
    (foreign / "metadata").mkdir()
    (foreign / "metadata" / "plumbline-000000").write_bytes(PRECIOUS)
    before = manifest(foreign)
    deadline = time.monotonic() + LASTS_S
    with exchanging(probe, foreign) as exchanges:
        while time.monotonic() < deadline:
            with suppress(ProbeRefused, OSError):
                step(probe)
    if not (foreign / "precious").exists():
        probe, foreign = foreign, probe
    assert manifest(foreign) == before
    assert stat.S_ISDIR(probe.lstat().st_mode)
    assert exchanges.done > 0
