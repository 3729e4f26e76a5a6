"""The guard with a cluster that is played: leases by the clock, refusals by what the session says."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.model import CephConfig, GatesConfig
from plumbline.config.types import Duration
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.ceph.cluster import FRESH_S, CephGuard, Lease
from support.daemon import eventually

pytestmark = pytest.mark.usefixtures("private_files")

FIT = {"status": {"health": {"checks": {}}, "pgmap": {}}, "detail": None}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Session:
    """Answers as told: a value, or an error number."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"status": FIT, "lock": True, "renew": True, "unlock": True, "lockers": []}
        self.asked: list[str] = []
        self.closed = threading.Event()
        self.pid = 1

    def ask(self, do: str, **_: object) -> Any:
        self.asked.append(do)
        answer = self.answers[do]
        if isinstance(answer, int) and not isinstance(answer, bool):
            raise OSError(answer, "said so")
        return answer

    def close(self, _timeout_s: float = 1.0) -> None:
        self.closed.set()


@pytest.fixture
def conf(tmp_path: Path) -> CephConfig:
    (tmp_path / "ceph.conf").write_text("[global]\n")
    (tmp_path / "keyring").write_text("[client.plumbline]\n")
    return CephConfig(conf=str(tmp_path / "ceph.conf"), keyring=str(tmp_path / "keyring"))


class Played:
    def __init__(self, conf: CephConfig, lease_s: float = 60.0) -> None:
        self.clock, self.sessions = Clock(), [Session(), Session()]
        left = iter(self.sessions)
        make: Callable[[CephAccess], Any] = lambda _access: next(left)  # noqa: E731
        self.guard = CephGuard(conf, GatesConfig(), host="node-a", lease_s=lease_s, clock=self.clock, session=make)

    @property
    def session(self) -> Session:
        return self.sessions[0]


@pytest.fixture
def played(conf: CephConfig) -> Played:
    return Played(conf)


def refused(call: Callable[[], object]) -> ProbeRefused:
    with pytest.raises(ProbeRefused) as caught:
        call()
    return caught.value


def hold(guard: CephGuard) -> None:
    with guard.hold("bench"):
        pass


def test_answers_and_failures_are_kept_for_a_while(played: Played) -> None:
    for answer, reason in ((FIT, ""), (errno.ETIMEDOUT, "unreachable")):
        played.clock.now += FRESH_S
        played.session.answers["status"] = answer
        before = len(played.session.asked)
        for _ in range(10):
            if reason:
                assert refused(played.guard.check).reason == reason
            else:
                played.guard.check()
        assert len(played.session.asked) == before + 1


def test_a_key_that_librados_can_not_read_has_a_reason_of_its_own(played: Played) -> None:
    played.session.answers["status"] = errno.EKEYREJECTED
    view = played.guard.look()
    assert (view.reachable, view.reason) == (False, "key-type")
    assert refused(played.guard.check).reason == "key-type"


def test_an_answer_that_is_none_is_no_cluster_that_is_fit(played: Played) -> None:
    played.session.answers["status"] = {"status": {"health": None, "pgmap": None}, "detail": None}
    assert refused(played.guard.check).reason == "unreachable"


def test_a_reload_takes_other_limits_at_once(played: Played, conf: CephConfig) -> None:
    warned = {"X": {"severity": "HEALTH_WARN", "summary": {"message": "m"}}}
    played.session.answers["status"] = {"status": {"health": {"checks": warned}, "pgmap": {}}, "detail": None}
    played.guard.check()
    played.guard.configure(conf, GatesConfig(health="ok"))
    assert refused(played.guard.check).reason == "health"
    assert not played.session.closed.is_set()


def test_a_reload_that_names_another_cluster_begins_another_session(played: Played, conf: CephConfig) -> None:
    played.guard.check()
    played.guard.configure(CephConfig(conf=conf.conf, keyring=conf.keyring, timeout=Duration(9)), GatesConfig())
    assert played.session.closed.is_set()
    played.guard.check()
    assert played.sessions[1].asked == ["status"]


def test_a_node_without_a_cluster_holds_nothing_and_asks_nobody(tmp_path: Path) -> None:
    played = Played(CephConfig(conf=str(tmp_path / "none")))
    with played.guard.hold("fio") as lease:
        played.clock.now += 1e6
        lease.check()
        assert not played.guard.held
    assert played.session.asked == []
    assert refused(played.guard.check).reason == "no-cluster"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (False, "locked"),
        (errno.ETIMEDOUT, "unreachable"),
        (errno.ENOTCONN, "unreachable"),
        (errno.EKEYREJECTED, "key-type"),
        (errno.ENOENT, "no-pool"),
        (errno.EDQUOT, "full"),
        (errno.ENOSPC, "full"),
        (errno.EPERM, "not-allowed"),
        (errno.EIO, "unreachable"),
    ],
)
def test_who_does_not_get_the_lock_is_told_why(played: Played, answer: object, reason: str) -> None:
    played.session.answers |= {"lock": answer, "lockers": [{"cookie": "fio@b pid 7 ab", "address": "192.0.2.1:0/1"}]}
    found = refused(lambda: hold(played.guard))
    assert found.reason == reason
    assert ("fio@b pid 7 ab (192.0.2.1:0/1)" in str(found)) is (reason == "locked")
    assert "unlock" not in played.session.asked


def test_the_lock_is_renewed_and_given_back(conf: CephConfig) -> None:
    played = Played(conf, lease_s=0.3)
    with played.guard.hold("fio"):
        assert played.guard.held
        eventually(lambda: played.session.asked.count("renew") > 2)
    assert played.session.asked[-1] == "unlock"
    assert not played.guard.held


def test_a_lock_that_is_anothers_is_lost_at_once(conf: CephConfig) -> None:
    played = Played(conf, lease_s=0.3)
    with played.guard.hold("fio") as lease:
        lease.check()
        played.session.answers["renew"] = False
        eventually(lambda: "renew" in played.session.asked)

        def lost() -> bool:
            try:
                lease.check()
            except ProbeRefused as refusal:
                return refusal.reason == "lock-lost"
            return False

        eventually(lost)


def test_a_lease_is_left_before_its_end_and_counts_from_the_question() -> None:
    clock = Clock()
    lease = Lease(60.0, clock)
    lease.begin(clock.now - 5)
    clock.now += 34.9
    lease.check()
    clock.now += 0.2
    assert refused(lease.check).reason == "lock-lost"
    lease.begin(clock.now)  # too late: whoever was told so has stopped
    assert refused(lease.check).reason == "lock-lost"


def test_what_can_not_be_given_back_does_not_spoil_the_run(played: Played) -> None:
    played.session.answers["unlock"] = errno.ETIMEDOUT
    hold(played.guard)


def test_a_session_that_was_replaced_is_closed_when_its_lock_is_given_back(played: Played, conf: CephConfig) -> None:
    with played.guard.hold("fio"):
        played.guard.configure(CephConfig(conf=conf.conf, keyring=conf.keyring, pool="x"), GatesConfig())
        assert not played.session.closed.is_set()
    assert played.session.closed.is_set()
