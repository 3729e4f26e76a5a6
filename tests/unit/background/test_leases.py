"""Leases of maintenance: from the command's file to the metric, and back to the command as "scraped"."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from plumbline.background.leases import (
    LEASE_BEGINNING,
    Lease,
    Leases,
    LeaseWatch,
    end,
    opened,
    parse_leases,
    read_leases,
    read_seen,
    start,
)
from plumbline.collectors import maintenance
from plumbline.errors import ParseError, StateError
from plumbline.probes.run.storage import MARKER_TEXT

NOW = 1_700_000_000.0
HOUR = 3600.0
pytestmark = pytest.mark.usefixtures("private_files")


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    (tmp_path / ".plumbline-storage").write_bytes(MARKER_TEXT)
    return tmp_path


def lease(host: str = "stor02", *, why: str = "firmware", since: float = NOW, lasts: float = HOUR) -> Lease:
    return Lease(host, why, "root", since, since + lasts)


def exported(leases: Leases) -> dict[tuple[str, ...], float]:
    return {labels: value for _, labels, value in maintenance.samples(leases)}


def test_a_lease_is_exported_with_its_end_and_lapses_by_itself(storage: Path) -> None:
    with opened(storage) as own:
        start(own, lease())
        start(own, lease("", why="switch"))
        leases = read_leases(own, NOW)
    assert exported(leases) == {
        ("stor02", "firmware", "root"): NOW + HOUR,
        ("", "switch", "root"): NOW + HOUR,
    }
    assert [each.host for each in leases.in_force(NOW + HOUR - 1)] == ["stor02", ""]
    assert leases.in_force(NOW + HOUR) == ()


def test_a_change_waits_for_the_one_before_it(storage: Path) -> None:
    def another() -> None:
        with opened(storage) as own:
            start(own, lease("stor03"))

    other = threading.Thread(target=another)
    first = os.open(storage, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(first, fcntl.LOCK_EX)
        other.start()
        other.join(0.2)
        assert other.is_alive(), "it did not wait"
    finally:
        os.close(first)
    other.join(30)
    with opened(storage) as own:
        assert [each.host for each in read_leases(own, NOW)] == ["stor03"]
        end(own, "stor03", NOW + 1)
        start(own, lease("stor04"))


def test_the_end_of_one_is_exported_for_a_day(storage: Path) -> None:
    with opened(storage) as own:
        start(own, lease())
        end(own, "stor02", NOW + 60)
        assert exported(read_leases(own, NOW + 61)) == {("stor02", "firmware", "root"): NOW + 60}
        assert read_leases(own, NOW + 60 + 86400) == ()
        with pytest.raises(StateError, match="no maintenance of stor02 is in force here"):
            end(own, "stor02", NOW + 62)


def test_another_one_of_the_same_host_ends_the_first(storage: Path) -> None:
    with opened(storage) as own:
        start(own, lease(lasts=10 * HOUR))
        start(own, lease(why="disk", since=NOW + 60))
        leases = read_leases(own, NOW + 61)
    assert exported(leases) == {("stor02", "firmware", "root"): NOW + 60, ("stor02", "disk", "root"): NOW + 60 + HOUR}


def test_a_clock_that_was_set_back_leaves_no_lease_that_cannot_be_ended(storage: Path) -> None:
    with opened(storage) as own:
        start(own, lease(since=NOW + 2 * HOUR))
        assert [each.host for each in read_leases(own, NOW).in_force(NOW)] == ["stor02"]
        end(own, "stor02", NOW)
        assert exported(read_leases(own, NOW + 1)) == {("stor02", "firmware", "root"): NOW}


@pytest.mark.parametrize("ahead", [365 * 86400.0, 1e300])
def test_a_lease_by_a_clock_that_was_far_ahead_is_none(storage: Path, ahead: float) -> None:
    with opened(storage) as own:
        start(own, lease(since=NOW + ahead))
        assert read_leases(own, NOW) == ()


def test_the_command_sees_that_it_was_scraped(storage: Path) -> None:
    watch = LeaseWatch(storage, wall=lambda: NOW + 1)
    with opened(storage) as own:
        start(own, lease())
        watch.slot.refresh(threading.Event())
        assert read_seen(own) == frozenset()
        watch.scraped(watch.slot.value)
        watch.slot.refresh(threading.Event())
        assert read_seen(own) == {("stor02", NOW + HOUR)}
        end(own, "stor02", NOW + 2)
        watch.slot.refresh(threading.Event())
        assert read_seen(own) == frozenset()


@pytest.mark.parametrize(
    "wrong",
    [
        b"{",
        b'{"version":2,"leases":[]}',
        b'{"version":1,"leases":[{"host":"a b","why":"x","who":"y","since_ts":1,"until_ts":2}]}',
        b'{"version":1,"leases":[{"host":"a","why":"","who":"y","since_ts":1,"until_ts":2}]}',
        b'{"version":1,"leases":[{"host":"a","why":"x\\u001b[2J","who":"y","since_ts":1,"until_ts":2}]}',
        b'{"version":1,"leases":[{"host":"a","why":"x","who":"y","since_ts":2,"until_ts":1}]}',
        b'{"version":1,"leases":[{"host":"a","why":"x","who":"y","since_ts":1,"until_ts":300000}]}',
        LEASE_BEGINNING + b",".join([b'{"host":"a","why":"x","who":"y","since_ts":1,"until_ts":2}'] * 65) + b"]}",
    ],
)
def test_what_the_command_would_not_write_is_refused(wrong: bytes) -> None:
    with pytest.raises(ParseError):
        parse_leases(wrong, source="maintenance.json")


def test_a_foreign_file_of_that_name_stays(storage: Path) -> None:
    (storage / "maintenance.json").write_text('{"version":1,"leases":"mine"}')
    with opened(storage) as own, pytest.raises((ParseError, StateError)):
        start(own, lease())
    (storage / "maintenance.seen.json").write_text("mine")
    watch = LeaseWatch(storage, wall=lambda: NOW)
    (storage / "maintenance.json").unlink()
    with opened(storage) as own:
        start(own, lease())
    watch.slot.refresh(threading.Event())
    watch.scraped(watch.slot.value)
    watch.slot.refresh(threading.Event())
    assert (storage / "maintenance.seen.json").read_text() == "mine"


def test_a_directory_without_a_daemon_is_not_written_to(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no daemon has marked it"), opened(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
