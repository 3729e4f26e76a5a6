"""When the cluster map is asked for, what is shown when nobody answers, and where it is not this node's business."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from plumbline.background.ceph import CEPH_MAP_EVERY_S, KEPT_S, CephMapWatch
from plumbline.config.model import CephConfig, Config
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.probes.ceph.ceph_task import ask_map
from plumbline.sources.ceph.ceph_osds import head_daemon
from support.ceph_map import answers, said

pytestmark = pytest.mark.usefixtures("private_files")

FSID = "118b4ac0-805d-4ea7-86a6-8fc54d89e369"


class Cluster:
    """Runs the task: notes what it is asked, and answers what it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.answer = Completed((), 0, json.dumps(answers()).encode())

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = 0,
    ) -> Completed:
        del keep_fds
        assert max_output_bytes > 1 << 24, "a big cluster's map is some MiB"
        assert 5 < timeout_s < CEPH_MAP_EVERY_S
        self.asked.append(tuple(argv))
        return self.answer


class Node:
    """A node with a key to a cluster, and a clock that is set."""

    def __init__(self, folder: Path) -> None:
        self.conf, self.roots = folder / "ceph.conf", Roots.under(folder)
        self.conf.write_text(f"[global]\nkeyring = {folder}/keyring\n")
        (folder / "keyring").write_text("[client.plumbline]\n")
        self.config = self.with_map("always")
        self.cluster, self.now, self.set_s = Cluster(), 1_000_000.0, 0.0
        self.watch = CephMapWatch(
            lambda: self.config,
            roots=self.roots,
            environment={},
            runner=self.cluster,
            wall=lambda: self.now + self.set_s,
            clock=lambda: self.now,
        )

    def with_map(self, word: str, conf: Path | None = None) -> Config:
        ceph = CephConfig(conf=str(conf or self.conf), map=word)  # type: ignore[arg-type]
        return Config(ceph=ceph)

    def look(self) -> float:
        """When the map that is shown was read; raises what is shown instead."""
        self.watch.map.refresh()
        return self.watch.map.value.read_ts


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_map_as_told(node: Node) -> None:
    assert node.look() == node.now
    assert [pool.name for pool in node.watch.map.value.pools] == ["images", "vms", "spread", "archive"]
    facts = json.loads(node.cluster.asked[0][-1])
    assert (facts["task"], facts["access"]["user"], facts["access"]["conf"]) == (
        "map",
        "client.plumbline",
        str(node.conf),
    )
    job = node.watch.map.job
    assert (job.interval_s, job.first_delay_s) == (60.0, 0.0)


def test_the_last_map_is_shown_for_a_while(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    read_at = node.look()
    node.cluster.answer = Completed((), 1, stderr=b"noise\n/etc/ceph/ceph.conf: no monitor answered\n")
    caplog.set_level("INFO")
    for _ in range(3):
        node.now = read_at + KEPT_S
        assert node.look() == read_at
    assert caplog.text.count("the cluster map can't be read: /etc/ceph/ceph.conf: no monitor answered") == 1
    node.now += 1
    with pytest.raises(PlumblineError, match=r"^the cluster map can't be read: .*no monitor answered$"):
        node.look()
    node.cluster.answer = Cluster().answer
    assert node.look() == node.now


@pytest.mark.parametrize("set_s", [400 * 86400.0, 3600.0, -3600.0, -400 * 86400.0])
def test_a_clock_that_is_set_neither_drops_the_last_map_nor_keeps_it(node: Node, set_s: float) -> None:
    read_at = node.look()
    node.cluster.answer = Completed((), 1, stderr=b"no monitor answered\n")
    node.set_s = set_s
    node.now += KEPT_S
    assert node.look() == read_at
    node.now += 1
    with pytest.raises(PlumblineError, match="no monitor answered"):
        node.look()


def told(answer: object) -> Completed:
    return Completed((), 0, json.dumps(answer).encode())


def test_a_change_of_manager_loses_nothing(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    read_at = node.look()
    caplog.set_level("INFO")
    node.cluster.answer = told({**answers(), "use": None, "unread": "no manager"})
    for _ in range(2):
        node.now = read_at + KEPT_S
        assert node.look() == read_at
    assert len(node.watch.map.value.osd_use) == 3
    assert caplog.text.count("no manager; the last map is shown for up to 300 s") == 1
    node.now += 1  # for good: what the monitors know is shown
    assert node.look() == node.now
    assert (node.watch.map.value.unread, node.watch.map.value.osd_use) == ("no manager", {})
    node.now += 60  # and is kept no longer than whatever comes next
    assert node.look() == node.now
    node.cluster.answer = told(answers())
    assert node.look() == node.now
    assert len(node.watch.map.value.osd_use) == 3


def test_without_a_manager_from_the_start(node: Node) -> None:
    node.cluster.answer = told({**answers(), "use": None, "unread": "no manager"})
    assert node.look() == node.now
    assert len(node.watch.map.value.osds) == 3


def test_another_clusters_map_is_not_kept(node: Node, tmp_path: Path) -> None:
    node.look()
    other = tmp_path / "other.conf"
    other.write_text(node.conf.read_text())
    node.config = node.with_map("always", other)
    node.cluster.answer = Completed((), None, timed_out=True)
    with pytest.raises(PlumblineError, match=r"^the cluster map can't be read: no answer within 41 s$"):
        node.look()


def test_answers_that_are_none(node: Node) -> None:
    node.cluster.answer = Completed((), 0, b'{"osd tree": ')
    with pytest.raises(ParseError, match=r"^the cluster map: not JSON"):
        node.look()
    node.cluster.answer = Completed((), 0, b"[]")
    with pytest.raises(ParseError, match=r"^the cluster map: an answer is missing"):
        node.look()
    node.cluster.answer = Completed((), None, cancelled=True)
    with pytest.raises(PlumblineError, match="stopping"):
        node.look()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"map": "never"}, r"^ceph\.map is never$"),
        ({"map": "auto"}, r"^no monitor or manager is set up on this host; ceph\.map: always queries the map anyway$"),
        ({"conf": "/nowhere/ceph.conf"}, r"^/nowhere/ceph\.conf: not there, so this node has no Ceph cluster"),
        ({"user": "somebody"}, r"^no key of client\.somebody: .*; run `plumbline ceph setup`"),
    ],
)
def test_where_it_is_not_asked_for(node: Node, change: dict[str, str], why: str) -> None:
    node.look()
    node.config = Config(ceph=CephConfig(**{"conf": str(node.conf), "map": "always", **change}))  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match=why):
        node.look()
    assert len(node.cluster.asked) == 1


@pytest.mark.parametrize(
    "path",
    [
        "var/lib/ceph/mon/ceph-stor01/store.db",
        "var/lib/ceph/mgr/ceph-stor01/keyring",
        f"var/lib/ceph/{FSID}/mon.stor01/store.db",
        f"var/lib/ceph/{FSID}/mgr.stor01.abcdef/keyring",
        "var/lib/rook/mon-a/data/store.db",
        "etc/systemd/system/ceph-mon.target.wants/ceph-mon@stor01.service",
        "etc/systemd/system/ceph-mgr.target.wants/ceph-mgr@stor01.service",
        f"etc/systemd/system/ceph-{FSID}.target.wants/ceph-{FSID}@mon.stor01.service",
        f"etc/systemd/system/ceph-{FSID}.target.wants/ceph-{FSID}@mgr.stor01.abcdef.service",
    ],
)
def test_automatically_beside_a_monitor_or_manager(node: Node, tmp_path: Path, path: str) -> None:
    node.config = node.with_map("auto")
    with pytest.raises(Unavailable):
        node.look()
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).touch()
    assert (tmp_path / path).is_relative_to(head_daemon(node.roots))
    assert node.look() == node.now


@pytest.mark.parametrize(
    "path",
    [
        "var/lib/ceph/osd/ceph-3/block",
        f"var/lib/ceph/{FSID}/osd.3/block",
        f"var/lib/ceph/{FSID}/crash/posted",
        "var/lib/ceph/tmp/mon.x",
        f"var/lib/rook/rook-ceph/{FSID}_{FSID}/block",
        "etc/systemd/system/ceph-osd.target.wants/ceph-osd@3.service",
        f"etc/systemd/system/ceph-{FSID}.target.wants/ceph-{FSID}@osd.3.service",
        "etc/systemd/system/multi-user.target.wants/ceph-mon.target",
    ],
)
def test_not_beside_osds_alone(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).touch()
    for empty in ("mon", "mgr"):  # as the packages make them
        (tmp_path / "var/lib/ceph" / empty).mkdir(parents=True)
    assert head_daemon(Roots.under(tmp_path)) == ""


OSD = {"osd": 1, "up": 1, "cluster_addrs": {"addrvec": [{"type": "v2", "addr": "127.0.0.1:6802", "nonce": 1836220246}]}}


class Monitors:
    """Answers commands; a manager that is not there fails."""

    def __init__(self, manager: Exception | None = None, release: str = "pacific", tracked: object = None) -> None:
        self._manager, self._release, self._tracked = manager, release, tracked

    def mon_command(self, prefix: str) -> object:
        if prefix == "osd df" and self._manager is not None:
            raise self._manager
        if prefix == "osd pool availability-status":
            assert self._release == "tentacle", "older monitors don't know the command"
            if isinstance(self._tracked, Exception):
                raise self._tracked
            return self._tracked
        if prefix == "mon dump":
            return {"epoch": 1, "mons": [{"rank": 0, "name": "a", "addr": "10.0.0.1:6789/0"}], "quorum": [0]}
        dump = {
            **said("osd-dump"),
            "pg_upmap_items": "megabytes",
            "osds": [{**OSD, "uuid": "f041dc88"}],
            "require_osd_release": self._release,
        }
        return {**answers(), **answers()["use"], "osd dump": dump}[prefix]


def test_the_questions() -> None:
    got = ask_map(Monitors())  # type: ignore[arg-type]
    assert got.keys() == {*answers(), "availability"}
    assert got["osd dump"].keys() == {
        "pools",
        "erasure_code_profiles",
        "full_ratio",
        "backfillfull_ratio",
        "nearfull_ratio",
        "osds",
        "require_osd_release",
    }
    assert got["osd dump"]["osds"] == [OSD]
    assert got["use"] == answers()["use"]
    assert got["availability"] is None
    assert got["mon dump"] == {"mons": [{"name": "a"}]}


def test_availability_is_asked_of_monitors_that_know_it_and_may_be_switched_off() -> None:
    assert ask_map(Monitors(release="tentacle", tracked=[]))["availability"] == []  # type: ignore[arg-type]
    off = OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), "osd pool availability-status")
    assert ask_map(Monitors(release="tentacle", tracked=off))["availability"] is None  # type: ignore[arg-type]
    assert ask_map(Monitors(release="tentacle", tracked=ParseError("ceph", "not JSON: -nan")))["availability"] is None  # type: ignore[arg-type]
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "osd pool availability-status")
    with pytest.raises(PermissionError):
        ask_map(Monitors(release="tentacle", tracked=denied))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "failure", [TimeoutError(110, os.strerror(110), "ceph osd df"), ParseError("ceph osd df", "not JSON")]
)
def test_without_a_manager_nothing_is_said_of_what_is_used(failure: Exception) -> None:
    got = ask_map(Monitors(failure))  # type: ignore[arg-type]
    assert (got["use"], got["unread"]) == (None, str(failure))
    assert got["osd tree"] == said("osd-tree")
