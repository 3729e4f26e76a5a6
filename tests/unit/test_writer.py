"""Writing a recorded baseline on a real file system."""

from __future__ import annotations

import stat

import pytest

from plumbline.baseline.writer import check_target, write_text
from plumbline.errors import BaselineError


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_new_file(tmp_path):
    path = tmp_path / "baseline.yaml"
    assert write_text(path, "new µ\n", force=False) is None
    assert path.read_text("utf-8") == "new µ\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert names(tmp_path) == ["baseline.yaml"]


def test_an_existing_file_is_not_touched(tmp_path):
    path = tmp_path / "baseline.yaml"
    path.write_text("old")
    with pytest.raises(BaselineError, match=r"exists already; --force replaces it and keeps the old one as \.bak"):
        write_text(path, "new", force=False)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["baseline.yaml"]


def test_force_keeps_the_old_one(tmp_path):
    path = tmp_path / "baseline.yaml"
    backup = tmp_path / "baseline.yaml.bak"
    path.write_text("old")
    backup.write_text("older")
    assert write_text(path, "new", force=True) == backup
    assert (path.read_text(), backup.read_text()) == ("new", "old")
    assert names(tmp_path) == ["baseline.yaml", "baseline.yaml.bak"]


def test_force_without_an_old_one(tmp_path):
    assert write_text(tmp_path / "baseline.yaml", "new", force=True) is None
    assert names(tmp_path) == ["baseline.yaml"]


def test_refused_before_measuring(tmp_path):
    with pytest.raises(BaselineError, match=r"there is no directory .*/none; create it first"):
        check_target(tmp_path / "none" / "baseline.yaml", force=False)
    with pytest.raises(BaselineError, match="is a directory; name a file"):
        check_target(tmp_path, force=True)


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    # with the temporary name around it, longer than a file name may be
    path = tmp_path / ("n" * 250)
    with pytest.raises(BaselineError, match="can't be written: File name too long"):
        write_text(path, "new", force=False)
    assert names(tmp_path) == []
