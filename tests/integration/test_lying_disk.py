"""A file system that says yes and does something else below what we keep and what we measure."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.config.probes.filesystem import FilesystemConfig
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.probes.filesystem.filesystem import FilesystemProbe
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, ProbeResult
from plumbline.probes.run.state import ProbeRecord, StateStore
from support.lying_disk import LyingDisk, lying_disk

pytestmark = pytest.mark.needs_root


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LyingDisk]:
    with lying_disk(tmp_path / "disk") as made:
        yield made


def skipped(times: int) -> ProbeRecord:
    record = ProbeRecord()
    for _ in range(times):
        record = record.with_skip("load", "load 9 per CPU")
    return record


def opened(disk: LyingDisk) -> StateStore:
    store = StateStore(disk.point / "state")
    store.open()
    return store


def test_a_disk_that_is_full_only_when_it_is_asked_twice(disk: LyingDisk) -> None:
    """Writes succeed, fsync says ENOSPC: not saved is said, the file of before stays, and it is written again later."""
    store = opened(disk)
    store.put("fio", skipped(1))
    assert not store.save_failed
    before = (disk.tree / "state" / "state.json").read_bytes()
    disk.does("full-later")
    store.put("fio", skipped(2))
    assert store.save_failed
    assert (disk.tree / "state" / "state.json").read_bytes() == before
    disk.does("honest")
    store.put("fio", skipped(3))
    assert not store.save_failed
    store.close()
    again = opened(disk)
    assert again.get("fio").skipped == {"load": 3}
    again.close()


def test_writes_that_take_half_are_gone_on_with(disk: LyingDisk) -> None:
    store = opened(disk)
    disk.does("short")
    store.put("fio", skipped(2))
    assert not store.save_failed
    store.close()
    disk.does("honest")
    again = opened(disk)
    assert again.get("fio").skipped == {"load": 2}
    again.close()


@pytest.mark.parametrize("lie", ["cut", "wrong", "forgets"])
def test_a_state_that_is_not_what_was_written_is_damage_and_no_crash(disk: LyingDisk, lie: str) -> None:
    """It starts with what it can know, or says in one line why not; it never takes garbage for figures."""
    store = opened(disk)
    if lie == "forgets":
        disk.does(lie)
    store.put("fio", skipped(2))
    store.close()
    disk.does(lie)
    found = taken(disk)
    assert found in ({}, {"load": 2}) or (isinstance(found, str) and "\n" not in found)


def taken(disk: LyingDisk) -> object:
    """What a start makes of the state there, or the reason why there is none."""
    try:
        store = opened(disk)
    except PlumblineError as error:
        return str(error)
    store.close()
    return dict(store.get("fio").skipped)


@pytest.mark.parametrize("lie", ["honest", "full-later", "short", "forgets", "cut", "wrong"])
def test_a_probe_of_it_ends_with_a_result_and_leaves_no_file(disk: LyingDisk, lie: str) -> None:
    """Only what was done counts as done; whatever it says, the run ends, in one line, and takes its files away."""
    config = FilesystemConfig(name="fs", directory=str(disk.point / "probe"), workload="fs-metadata-1k")
    probe = FilesystemProbe(
        config, load_catalogue().by_id["fs-metadata-1k"], device_class="fuse", filesystem="fuse", device="",
        roots=Roots.under(Path("/")),
    )  # fmt: skip
    disk.does(lie)
    run = Run(runner=ProcessRunner(os.environ), clock=time.time, stopping=threading.Event())
    try:
        result: ProbeResult | PlumblineError = probe.run(run)
    except PlumblineError as error:
        result = error
    message = result.message if isinstance(result, ProbeResult) else str(result)
    assert "\n" not in message
    if lie == "honest":
        assert isinstance(result, ProbeResult)
        assert (result.outcome, message) == (Outcome.SUCCESS, "")
    assert not {path.name for path in disk.tree.glob("probe/*")} - {".plumbline-probe"}
