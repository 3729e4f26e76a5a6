"""The storage path is removed, replaced, made read-only or mounted over under a daemon: the gauge shows it, and the
daemon uses the path again by itself, with the checks of a start."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plumbline.core.storage_names import MARKER, MARKER_TEXT
from plumbline.probes.run.state import StateStore, read_state
from support.daemon import Daemon, eventually, running
from support.manifest import manifest

QUIET: dict[str, object] = {"probes": []}  # a probe would write in the storage path, too


def saved(daemon: Daemon) -> float | None:
    return daemon.metrics().get("plumbline_state_last_save_successful")


def state_in(folder: Path) -> bool:
    return (folder / "state.json").exists() and (folder / MARKER).read_bytes() == MARKER_TEXT


def test_a_path_that_is_removed_and_made_anew(tmp_path: Path) -> None:
    with running(tmp_path, config=QUIET) as daemon:
        assert saved(daemon) == 1
        shutil.rmtree(daemon.storage)
        assert eventually(lambda: saved(daemon) == 0)
        assert not daemon.storage.exists()
        daemon.storage.mkdir(mode=0o750)
        assert eventually(lambda: state_in(daemon.storage))
        assert eventually(lambda: saved(daemon) == 1)
        assert daemon.said().count("results are kept in memory only") == 1
        assert "was replaced by another directory; that is used now" in daemon.said()
        (daemon.storage / "state.json").unlink()
        assert eventually(lambda: state_in(daemon.storage))
        assert daemon.stop()[0] == 0
    store = StateStore(daemon.storage)  # no lock is left, and the next daemon reads it
    store.open()
    store.close()


def test_a_foreign_directory_and_that_of_another_daemon_are_left_alone(tmp_path: Path) -> None:
    foreign, other = tmp_path / "theirs", StateStore(tmp_path / "other")
    foreign.mkdir(mode=0o700)
    (foreign / "state.json").write_text('{"version": 4, "terraform_version": "1.5.7"}')
    (foreign / "thesis.tex").write_text("mine")
    other.open()
    before = manifest(foreign), manifest(tmp_path / "other")
    with running(tmp_path, config=QUIET) as daemon:
        daemon.storage.rename(tmp_path / "away")
        foreign.rename(daemon.storage)
        assert eventually(lambda: saved(daemon) == 0)
        assert "nothing in it was touched" in daemon.said()
        daemon.storage.rename(foreign)
        (tmp_path / "other").rename(daemon.storage)
        assert eventually(lambda: daemon.said().count("can't be written") == 1)
        assert saved(daemon) == 0
        assert (manifest(foreign), manifest(daemon.storage)) == before
        other.close()
        assert eventually(lambda: saved(daemon) == 1)
        assert read_state(daemon.storage) == {}
    assert manifest(foreign) == before[0]


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system")
def test_file_systems_mounted_over_it_and_taken_off(tmp_path: Path) -> None:
    """First one that can't be written to; then one that can, and that goes."""
    with running(tmp_path, config=QUIET) as daemon:
        storage = daemon.storage
        mount = ("mount", "-t", "tmpfs", "plumbline", storage, "-o")
        subprocess.run([*mount, "size=1m,mode=750,ro"], check=True)
        assert eventually(lambda: saved(daemon) == 0)
        assert "Read-only file system" in daemon.said()
        subprocess.run(["umount", "-l", storage], check=True)
        assert eventually(lambda: saved(daemon) == 1)
        subprocess.run([*mount, "size=1m,mode=750"], check=True)
        try:
            assert eventually(lambda: state_in(storage))
            assert saved(daemon) == 1
        finally:
            subprocess.run(["umount", "-l", storage], check=True)
        (storage / "state.json").unlink(missing_ok=True)
        assert eventually(lambda: state_in(storage))


def test_no_probe_makes_its_directory_in_a_foreign_one(tmp_path: Path) -> None:
    with running(tmp_path, config={"probes": [{"name": "canary", "type": "canary"}]}) as daemon:
        assert eventually((daemon.storage / "canary" / "canary.dat").exists)
        daemon.storage.rename(tmp_path / "away")
        daemon.storage.mkdir(mode=0o700)
        (daemon.storage / "thesis.tex").write_text("mine")
        before = manifest(daemon.storage)
        (tmp_path / "away" / "canary" / "canary.dat").unlink()  # the worker ends, the next one starts by the path
        assert eventually(lambda: "no longer, a storage path of Plumbline" in daemon.get("/").text)
        assert manifest(daemon.storage) == before
