"""PCI devices in the slow tier: read by a job, kept, and said once what can't be read."""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path

import pytest

from plumbline.background.storage import PCIE, StorageWatch
from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from support.pcispace import Express, add_function, space


def refresh(watch: StorageWatch) -> None:
    (job,) = [each for each in watch.jobs() if each.name == PCIE]
    job.run(threading.Event())


def test_the_slot_is_empty_until_the_job_has_run(tmp_path: Path) -> None:
    add_function(tmp_path / "sys", "pci0000:00/0000:01:00.0", config=space(Express()))
    watch = StorageWatch(Roots.under(tmp_path))
    with pytest.raises(Unavailable, match="PCI devices have not been read yet"):
        _ = watch.pcie.value
    refresh(watch)
    assert [each.address for each in watch.pcie.value.functions] == ["0000:01:00.0"]


def test_a_ports_errors_outlive_the_disk_below_it(tmp_path: Path) -> None:
    port = add_function(tmp_path / "sys", "pci0000:00/0000:00:01.0", config=space(Express(), class_=0x060400))
    below = add_function(tmp_path / "sys", "pci0000:00/0000:00:01.0/0000:01:00.0", config=space(Express()))
    (port / "aer_dev_correctable").write_text("RxErr 7\nTOTAL_ERR_COR 7\n")
    watch = StorageWatch(Roots.under(tmp_path))
    refresh(watch)
    assert watch.pcie.value.aer == {"0000:00:01.0": {"correctable": 7}}
    shutil.rmtree(below)
    (port / "aer_dev_correctable").write_text("RxErr 9\nTOTAL_ERR_COR 9\n")
    refresh(watch)
    assert watch.pcie.value.functions == ()
    assert watch.pcie.value.aer == {"0000:00:01.0": {"correctable": 9}}


def test_what_cant_be_read_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = add_function(tmp_path / "sys", "pci0000:00/0000:01:00.0", config=space(Express())[:64]) / "config"
    watch = StorageWatch(Roots.under(tmp_path))
    with caplog.at_level(logging.DEBUG, "plumbline.background.storage"):
        refresh(watch)
        refresh(watch)
        config.write_bytes(space(Express()))
        refresh(watch)
    first, second = caplog.messages
    assert "CAP_SYS_ADMIN" in first
    assert second == "pcie: everything can be read"
