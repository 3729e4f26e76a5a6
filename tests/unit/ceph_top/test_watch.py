"""Looks at OSDs again and again: when they are made, and what later ones do about errors."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from plumbline.ceph_top.watch import Where, tops
from plumbline.errors import PlumblineError, Unavailable
from support.admin_sockets import AdminSocket
from support.answering import answering
from support.osd_fleet import answers


class Clock:
    """Time passes where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("s")


def where(folder: Path, **prometheus: str) -> Where:
    return Where(sockets=[f"{folder}/*.asok"], host="storage1", **prometheus)


def looking(of: Where, clock: Clock):
    return tops(of, interval_s=5.0, clock=clock, sleep=clock.sleep)


def test_each_interval_is_told_of_once(folder):
    clock = Clock()
    served = AdminSocket(folder / "ceph-osd.4.asok", answers(peers=2))
    try:
        first, second = itertools.islice(looking(where(folder), clock), 2)
    finally:
        served.close()
    assert clock.slept == [5.0, 5.0]
    assert (first.interval_s, second.interval_s) == (5.0, 5.0)
    (osd,) = second.osds
    assert (osd.daemon, osd.host, osd.operations_per_s) == ("osd.4", "storage1", 0.0)
    assert second.sources == ("admin sockets of storage1, last 5.0 s",)
    assert second.notes == ()


def test_without_any_source_it_ends_at_once(folder):
    clock = Clock()
    with pytest.raises(Unavailable, match="no OSD's admin socket here"):
        next(looking(where(folder), clock))
    with pytest.raises(PlumblineError, match="Connection refused"):
        next(looking(where(folder, prometheus="http://127.0.0.1:9"), clock))
    assert clock.slept == []


def test_a_prometheus_that_goes_away_later_is_a_note(folder):
    up = {"metric": {"__name__": "plumbline_osd_socket_up", "ceph_daemon": "osd.1"}, "value": [1.5, "1"]}
    body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [up]}}).encode()

    clock = Clock()
    with answering(lambda request: request.answer(body)) as url:
        shown = looking(where(folder, prometheus=url), clock)
        first = next(shown)
    assert [osd.daemon for osd in first.osds] == ["osd.1"]
    assert clock.slept == [], "it looks back by itself"
    later = next(shown)
    assert later.osds == ()
    assert len(later.notes) == 1
    assert "Connection refused" in later.notes[0]
