from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from plumbline.background.storage import DISK_USERS, StorageWatch
from plumbline.core.roots import Roots
from plumbline.errors import Unavailable

FIXTURES = Path(__file__).parents[2] / "fixtures"


def run(watch: StorageWatch, name: str) -> None:
    (job,) = [job for job in watch.jobs() if job.name == name]
    job.run(threading.Event())


def test_the_osd_of_a_disk_stays_when_its_users_can_not_be_read(tmp_path: Path) -> None:
    """An info metric whose labels change is another series; that must not happen because something hangs."""
    shutil.copytree(FIXTURES / "ceph-cephadm-node", tmp_path, symlinks=True, dirs_exist_ok=True)
    watch = StorageWatch(Roots.under(tmp_path))
    assert watch.osds == {}
    with pytest.raises(Unavailable, match="the users of the disks have not been read yet"):
        _ = watch.users.value
    run(watch, DISK_USERS)
    assert watch.osds["sdb"] == "osd.0"
    (tmp_path / "sys").rename(tmp_path / "gone")
    run(watch, DISK_USERS)
    with pytest.raises(Unavailable, match="is sysfs mounted there"):
        _ = watch.users.value
    assert watch.osds["sdb"] == "osd.0"
