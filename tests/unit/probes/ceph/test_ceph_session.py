"""The session's worker as a process, where there is no cluster: what is said, within which time, and who ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.probes.ceph.ceph_session import CephSession
from plumbline.probes.ceph.librados import Access
from support.daemon import alive, eventually, freeze


@pytest.fixture
def session(tmp_path: Path) -> Iterator[CephSession]:
    access = Access("client.plumbline", str(tmp_path / "ceph.conf"), connect_timeout_s=1, operation_timeout_s=1)
    made = CephSession(access)
    yield made
    made.close()


def said(session: CephSession) -> str:
    with pytest.raises(OSError) as caught:  # noqa: PT011  (its text is what is looked at)
        session.ask("status")
    return str(caught.value)


def test_what_is_missing_is_said_and_the_worker_stays(session: CephSession) -> None:
    assert session.pid is None, "nobody has asked yet"
    first = said(session)
    assert "ceph.conf: not there" in first or "librados.so.2 is not installed" in first
    pid = session.pid
    assert pid is not None
    said(session)
    assert session.pid == pid


def test_a_worker_that_dies_is_replaced_after_a_pause(session: CephSession) -> None:
    said(session)
    os.kill(session.pid or 0, signal.SIGKILL)
    assert "the session with the cluster ended; the session starts again" in said(session)
    assert "next attempt in" in said(session)
    eventually(lambda: "next attempt" not in said(session))
    assert session.pid is not None


def test_a_worker_that_hangs_is_killed_in_time(session: CephSession) -> None:
    said(session)
    pid = session.pid or 0
    freeze(pid)
    began = time.monotonic()
    assert f"no answer within {session.limit_s:g} s" in said(session)
    assert time.monotonic() - began < session.limit_s + 30
    assert not Path(f"/proc/{pid}").exists()


def test_the_worker_ends_with_the_session(session: CephSession) -> None:
    said(session)
    pid = session.pid
    session.close()
    assert not Path(f"/proc/{pid}").exists()
    assert "the daemon is ending" in said(session)


def test_the_worker_ends_when_nobody_holds_the_other_end(tmp_path: Path) -> None:
    daemon = """
import sys, time
from plumbline.probes.ceph.ceph_session import CephSession
from plumbline.probes.ceph.librados import Access
made = CephSession(Access("client.x", sys.argv[1], connect_timeout_s=1, operation_timeout_s=1))
try:
    made.ask("status")
except OSError:
    print(made.pid, flush=True)
time.sleep(60)
"""
    argv = (sys.executable, "-c", daemon, str(tmp_path / "none"))
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        pid = int(killed.stdout.readline())
        killed.kill()

    eventually(lambda: not alive(pid))
