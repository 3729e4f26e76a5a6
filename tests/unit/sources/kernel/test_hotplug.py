"""The watcher on this kernel's real uevents."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import pyudev

from plumbline.core.roots import Roots
from plumbline.sources.kernel.hotplug import BlockHotplug
from support.descriptors import open_descriptors

HERE = Roots.under(Path("/"))


class Changes:
    """Counts calls; ``gate`` closed holds the watcher's thread inside the call."""

    def __init__(self) -> None:
        self.count = 0
        self.came = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self) -> None:
        self.count += 1
        self.came.release()
        self.gate.wait(10)

    def wait(self) -> bool:
        return self.came.acquire(timeout=5)


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def uevent() -> Path:
    """Where a written word becomes a real uevent of a real block device that nobody uses."""
    for path in sorted(Path("/sys/block").glob("loop*/uevent"), reverse=True):
        if os.access(path, os.W_OK) and not (path.parent / "loop").exists():
            return path
    pytest.skip("making uevents needs root and a free loop device")


@pytest.fixture
def watcher(changes: Changes) -> Iterator[BlockHotplug]:
    hotplug = BlockHotplug(HERE, changes, settle_s=0.02, receive_buffer_bytes=4096)
    hotplug.start()
    yield hotplug
    changes.gate.set()
    assert hotplug.stop(5)


def witness() -> Callable[[], list[str]]:
    """To be asked for the subsystems of all uevents since now."""
    monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
    monitor.start()
    return lambda: [device.subsystem for device in iter(lambda: monitor.poll(timeout=0), None)]


def test_the_source_depends_on_udevd(tmp_path: Path, changes: Changes) -> None:
    hotplug = BlockHotplug(Roots.under(tmp_path), changes)
    assert hotplug.source == "kernel"
    (tmp_path / "run/udev").mkdir(parents=True)
    (tmp_path / "run/udev/control").touch()
    assert hotplug.source == "udev"


def test_nothing_runs_before_start(changes: Changes) -> None:
    hotplug = BlockHotplug(HERE, changes)
    assert "hotplug" not in {each.name for each in threading.enumerate()}
    assert hotplug.stop(5)


def test_started_twice(watcher: BlockHotplug) -> None:
    with pytest.raises(RuntimeError, match="already started"):
        watcher.start()


def test_it_stops_and_can_start_again(changes: Changes) -> None:
    descriptors = open_descriptors()
    hotplug = BlockHotplug(HERE, changes)
    for _ in range(3):
        hotplug.start()
        assert hotplug.stop(5)
    assert open_descriptors() <= descriptors
    assert changes.count == 0


@pytest.mark.needs_root
def test_stopping_does_not_wait_for_the_settling(changes: Changes, uevent: Path) -> None:
    hotplug = BlockHotplug(HERE, changes, settle_s=60)
    hotplug.start()
    uevent.write_text("change")
    time.sleep(0.1)
    assert hotplug.stop(5)
    assert changes.count == 0


@pytest.mark.needs_root
def test_a_device_that_changes(watcher: BlockHotplug, changes: Changes, uevent: Path) -> None:
    uevent.write_text("change")
    assert changes.wait()


@pytest.mark.needs_root
def test_events_of_other_subsystems_do_not_count(watcher: BlockHotplug, changes: Changes, uevent: Path) -> None:
    """Other tests' disks come and go on this machine, so a witness hears what really happened in the meantime."""
    for _ in range(100):
        happened = witness()
        while changes.came.acquire(timeout=0.1):
            pass  # what is still to come of earlier ones
        Path("/sys/class/net/lo/uevent").write_text("change")
        came = changes.came.acquire(timeout=0.1)
        heard = happened()
        if "block" not in heard:
            break
    assert "net" in heard
    assert "block" not in heard
    assert not came
    uevent.write_text("change")
    assert changes.wait()


@pytest.mark.needs_root
def test_lost_events_count_as_a_change_and_end_nothing(
    watcher: BlockHotplug, changes: Changes, uevent: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With a receive buffer of 4 KiB and a reader that is held up, the kernel really drops events (ENOBUFS)."""
    caplog.set_level("DEBUG", "plumbline.sources.kernel.hotplug")
    changes.gate.clear()
    uevent.write_text("change")
    assert changes.wait()
    for _ in range(200):
        uevent.write_text("change")
    changes.gate.set()
    assert changes.wait()
    assert "block device events were lost" in caplog.text
    while changes.came.acquire(timeout=0.2):
        pass
    burst = changes.count
    assert burst < 20
    uevent.write_text("change")
    assert changes.wait()
    assert changes.count > burst
