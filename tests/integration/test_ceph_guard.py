"""The cluster's gates and its lock against a real cluster: what closes them, who gets it, and when."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from plumbline.config.model import CephConfig, GatesConfig
from plumbline.config.probes.network import RttConfig
from plumbline.config.types import Duration
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.ceph_access import NAMESPACE
from plumbline.probes.ceph.cluster import LOCK_NAME, LOCK_OBJECT, CephGuard
from plumbline.probes.run.engine import Gates, run_probe
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.model import Identity, Run
from plumbline.probes.run.result import Outcome, ProbeResult
from support.ceph_cluster import CephCluster
from support.ceph_probes import set_up
from support.daemon import alive, eventually, freeze, running

pytestmark = [pytest.mark.integration, pytest.mark.ceph]

LEASE_S = 9.0
PROMPT_S = 40.0
"""A busy machine's share on top of a bound."""


@pytest.fixture(scope="module")
def config(shared_ceph: CephCluster) -> Iterator[CephConfig]:
    with set_up(shared_ceph) as made:
        yield made


@pytest.fixture
def guard(ceph: CephCluster, config: CephConfig) -> Iterator[Callable[..., CephGuard]]:
    with contextlib.ExitStack() as stack:

        def make(ceph: CephConfig = config, lease_s: float = LEASE_S, **gates: object) -> CephGuard:
            made = CephGuard(ceph, GatesConfig(**gates), host="node-a", lease_s=lease_s)  # type: ignore[arg-type]
            stack.callback(made.close)
            return made

        yield make


def reason(guard: CephGuard) -> str:
    """Why it is closed, ``""`` when it is open."""
    try:
        guard.check()
    except ProbeRefused as refusal:
        return refusal.reason
    return ""


def refusal(call: Callable[[], object]) -> ProbeRefused:
    with pytest.raises(ProbeRefused) as caught:
        call()
    return caught.value


def hold_once(guard: CephGuard) -> None:
    with guard.hold("mine"):
        pass


def free(guard: CephGuard) -> bool:
    """Whether it gets the lock."""
    with contextlib.suppress(ProbeRefused), guard.hold("mine"):
        return True
    return False


# -- gates


def test_a_healthy_cluster_is_fit(guard: Callable[..., CephGuard]) -> None:
    strict = guard(health="ok")
    assert reason(strict) == ""
    assert strict.look().reachable
    assert strict.session_pid is not None


def test_one_question_serves_many(guard: Callable[..., CephGuard], ceph: CephCluster) -> None:
    asking = guard()
    asking.check()
    freeze(asking.session_pid or 0)  # it would not answer another
    try:
        for _ in range(10):
            asking.check()
    finally:
        os.kill(asking.session_pid or 0, signal.SIGCONT)


def test_flags_of_maintenance_close_it_and_scrub_flags_do_not(
    guard: Callable[..., CephGuard], ceph: CephCluster
) -> None:
    asking = guard()
    ceph.ceph("osd", "set", "noscrub")
    ceph.ceph("osd", "set", "noout")
    try:
        eventually(lambda: reason(asking) == "maintenance", within_s=60)
        assert "noout is set" in str(refusal(asking.check))
        ceph.ceph("osd", "unset", "noout")
        eventually(lambda: reason(asking) == "", within_s=60)
        assert ceph.health() == "HEALTH_WARN"  # of noscrub
    finally:
        ceph.ceph("osd", "unset", "noscrub")
        ceph.ceph("osd", "unset", "noout")


def test_an_osd_that_stops_closes_it_until_all_is_well(guard: Callable[..., CephGuard], ceph: CephCluster) -> None:
    asking, patient, strict = guard(), guard(recovery=True), guard(recovery=True, health="ok")
    ceph.stop_osd(2)
    eventually(lambda: reason(asking) == "recovery", within_s=60)
    assert "undersized" in str(refusal(asking.check))
    assert reason(patient) == ""
    assert reason(strict) == "health"
    assert "OSD_DOWN" in str(refusal(strict.check))
    ceph.start_osd(2)
    eventually(lambda: reason(asking) == "" and reason(strict) == "", within_s=120)


def test_full_osds_and_a_full_pool_of_ours_close_it(
    guard: Callable[..., CephGuard], ceph: CephCluster, config: CephConfig
) -> None:
    asking = guard(health="any")
    ceph.ceph("osd", "set-nearfull-ratio", "0.0001")
    try:
        eventually(lambda: reason(asking) == "full", within_s=60)
        assert "OSD_NEARFULL" in str(refusal(asking.check))
    finally:
        ceph.ceph("osd", "set-nearfull-ratio", "0.85")
    eventually(lambda: reason(asking) == "", within_s=60)

    ceph.add_pool("theirs", application="rbd")
    for pool, closes in (("theirs", False), (config.pool, True)):
        ceph.ceph("osd", "pool", "set-quota", pool, "max_objects", "1")
        ceph.run("rados", "-p", pool, "-N", NAMESPACE, "put", "one", ceph.conf)
        ceph.run("rados", "-p", pool, "-N", NAMESPACE, "put", "two", ceph.conf)
        eventually(lambda: "POOL_FULL" in ceph.ceph_json("health")["checks"], within_s=60)
        if closes:
            eventually(lambda: reason(asking) == "full", within_s=60)
            assert config.pool in str(refusal(asking.check))
        else:
            time.sleep(5)
            assert reason(asking) == ""
        ceph.ceph("osd", "pool", "set-quota", pool, "max_objects", "0")
        for name in ("one", "two"):
            ceph.run("rados", "-p", pool, "-N", NAMESPACE, "rm", name)
    ceph.remove_pool("theirs")
    eventually(lambda: reason(asking) == "", within_s=60)


@pytest.mark.parametrize("connected", [True, False])
def test_a_monitor_that_hangs_closes_it_within_the_bound(
    guard: Callable[..., CephGuard], ceph: CephCluster, config: CephConfig, connected: bool
) -> None:
    asking = guard(msgspec.structs.replace(config, timeout=Duration(3.0)))
    if connected:
        asking.check()
        time.sleep(5)  # the answer's life
    ceph.freeze("mon.a")
    began = time.monotonic()
    assert refusal(asking.check).reason == "unreachable"
    assert time.monotonic() - began < 12 + PROMPT_S
    ceph.thaw("mon.a")
    eventually(lambda: reason(asking) == "", within_s=120)


def test_a_session_that_hangs_is_replaced(guard: Callable[..., CephGuard], config: CephConfig) -> None:
    asking = guard(msgspec.structs.replace(config, timeout=Duration(1.0)))
    asking.check()
    first = asking.session_pid or 0
    freeze(first)
    time.sleep(5)
    assert refusal(asking.check).reason == "unreachable"
    assert not Path(f"/proc/{first}").exists()
    eventually(lambda: reason(asking) == "", within_s=60)
    assert asking.session_pid != first


def test_wrong_keys_and_no_pool_say_what_to_do(
    guard: Callable[..., CephGuard], ceph: CephCluster, config: CephConfig, tmp_path: Path
) -> None:
    wrong = tmp_path / "keyring"
    wrong.write_text("[client.plumbline]\n\tkey = AQBLxb5mAAAAABAAvG5Lv0mSO0Pca6H0MF8Dkg==\n")
    wrong.chmod(0o600)
    asking = guard(msgspec.structs.replace(config, keyring=str(wrong)))
    refused = refusal(asking.check)
    assert refused.reason == "unreachable"
    assert "does the keyring hold this user's key" in str(refused)
    nowhere = guard(msgspec.structs.replace(config, pool="not-there"))
    refused = refusal(lambda: hold_once(nowhere))
    assert refused.reason == "no-pool"
    assert "plumbline ceph setup" in str(refused)
    ceph.add_pool("theirs", application="rbd")
    foreign = guard(msgspec.structs.replace(config, pool="theirs"))
    assert refusal(lambda: hold_once(foreign)).reason == "not-allowed"
    ceph.remove_pool("theirs")


# -- the lock

HOLDER = """
import sys, time
from plumbline.config.model import CephConfig, GatesConfig
from plumbline.probes.ceph.cluster import CephGuard
guard = CephGuard(
    CephConfig(conf=sys.argv[1], keyring=sys.argv[2]), GatesConfig(), host="node-b", lease_s=float(sys.argv[3])
)
with guard.hold("bench"):
    print(guard.session_pid, flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def holder(config: CephConfig) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that holds the lock, and its session's process id."""
    argv = [sys.executable, "-c", HOLDER, config.conf, config.keyring or "", str(LEASE_S)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def test_the_second_is_refused_and_told_who_holds_it(guard: Callable[..., CephGuard], config: CephConfig) -> None:
    waiting = guard()
    with holder(config) as (process, _):
        time.sleep(LEASE_S + 2)  # it is renewed
        refused = refusal(lambda: hold_once(waiting))
        assert refused.reason == "locked"
        assert f"bench@node-b pid {process.pid} " in str(refused)
    assert not waiting.held


def test_when_the_holders_node_dies_the_lease_ends_and_the_next_gets_it(
    guard: Callable[..., CephGuard], config: CephConfig
) -> None:
    waiting = guard()
    with holder(config) as (process, session):
        process.kill()
        os.kill(session, signal.SIGKILL)  # nobody is left who could give it back
        died = time.monotonic()
        assert refusal(lambda: hold_once(waiting)).reason == "locked"

        eventually(lambda: free(waiting), within_s=LEASE_S + PROMPT_S)
        assert time.monotonic() - died < LEASE_S + PROMPT_S


def test_when_the_daemon_alone_dies_its_session_gives_the_lock_back_and_ends(
    guard: Callable[..., CephGuard], config: CephConfig
) -> None:
    waiting = guard(lease_s=600)
    with holder(config) as (process, session):
        process.kill()
        process.wait()
        eventually(lambda: not alive(session), within_s=30)
        eventually(lambda: free(waiting), within_s=30)


class Sleeper:
    """A heavy probe that lasts."""

    def __init__(self) -> None:
        self.config = RttConfig(name="a", targets=("x",), timeout=Duration(60))
        self.heavy = True
        self.identity = Identity("a", "rtt", "network", "10g", "icmp-rtt-56", ("round-trip",), "00", "plumbline")
        self.began = threading.Event()

    def run(self, run: Run) -> ProbeResult:
        self.began.set()
        done = run.runner.run(("sleep", "120"), timeout_s=150)
        if done.cancelled:
            raise ProbeRefused("stopped", "stopped")
        return ProbeResult(
            probe="a", layer="network", device_class="10g", workload="icmp-rtt-56", config_hash="00", tool="plumbline",
            tool_version="1", started=0.0, duration=done.duration_s, outcome=Outcome.SUCCESS,
        )  # fmt: skip

    def clean_up(self, run: Run) -> None:
        pass


@pytest.mark.parametrize("how", ["broken", "session-killed", "cluster-hangs"])
def test_a_lock_lost_under_way_ends_the_run(
    guard: Callable[..., CephGuard], ceph: CephCluster, config: CephConfig, tmp_path: Path, how: str
) -> None:
    holding, probe = guard(msgspec.structs.replace(config, timeout=Duration(2.0))), Sleeper()
    eventually(lambda: free(holding), within_s=LEASE_S + PROMPT_S)  # of whoever was killed before

    def lose() -> None:
        assert probe.began.wait(60)
        if how == "broken":
            said = ceph.run(
                "rados", "-p", config.pool, "-N", NAMESPACE, "lock", "info", LOCK_OBJECT, LOCK_NAME, "--format", "json"
            )
            (locker,) = msgspec.json.decode(said)["lockers"]
            words = (LOCK_OBJECT, LOCK_NAME, locker["name"], "--lock-cookie", locker["cookie"])
            ceph.run("rados", "-p", config.pool, "-N", NAMESPACE, "lock", "break", *words)
        elif how == "session-killed":
            os.kill(holding.session_pid or 0, signal.SIGKILL)
        else:
            for number in range(3):
                ceph.freeze_osd(number)

    losing = threading.Thread(target=lose)
    losing.start()
    began = time.monotonic()
    refused = refusal(
        lambda: run_probe(
            probe,
            runner=ProcessRunner(dict(os.environ)),
            host_lock=HeavyLock(tmp_path / "lock"),
            cluster=holding,
            gates=Gates(),
            clock=time.time,
            stopping=threading.Event(),
            look_again_s=0.5,
        )
    )
    lasted = time.monotonic() - began
    losing.join()
    ceph.heal()
    assert refused.reason == "lock-lost"
    assert str(refused).startswith("stopped during the run: the cluster's lock for heavy probes is lost")
    assert lasted < LEASE_S + PROMPT_S
    with HeavyLock(tmp_path / "lock").hold("next"):
        pass


def test_a_reload_under_way_leaves_the_lock_alone(guard: Callable[..., CephGuard], config: CephConfig) -> None:
    holding, waiting = guard(), guard()
    with holding.hold("mine") as lease:
        holding.configure(msgspec.structs.replace(config, timeout=Duration(8.0)), GatesConfig())
        time.sleep(LEASE_S)
        lease.check()
        assert refusal(lambda: hold_once(waiting)).reason == "locked"
    hold_once(waiting)


# -- daemons


def test_two_daemons_run_their_heavy_probes_one_at_a_time_and_outlive_each_other(
    ceph: CephCluster, config: CephConfig, tmp_path: Path
) -> None:
    def settings(directory: Path) -> dict[str, object]:
        fio = {
            "type": "fio", "name": "slow", "workload": "randread-4k-qd1-j1", "directory": str(directory),
            "runtime": "10s", "timeout": "30s", "interval": "60s", "file_size": "1MiB", "max_load_per_cpu": 1000,
            "max_device_busy": 1,
        }  # fmt: skip
        return {
            "probes": [fio],
            "ceph": {"conf": config.conf, "keyring": config.keyring, "timeout": "10s"},
            "gates": {"health": "any", "recovery": True},
        }

    def holders() -> list[str]:
        tried = ceph.try_run(
            "rados", "-p", config.pool, "-N", NAMESPACE, "lock", "info", LOCK_OBJECT, LOCK_NAME, "--format", "json"
        )
        return [each["cookie"] for each in msgspec.json.decode(tried.stdout or "{}").get("lockers", [])]

    with contextlib.ExitStack() as stack:
        daemons = {}
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            (tmp_path / f"{name}-data").mkdir()
            daemon = stack.enter_context(running(tmp_path / name, config=settings(tmp_path / f"{name}-data")))
            daemons[daemon.pid] = daemon

        # the same host and probe: both start at the same moment, one of them is refused
        def refused_pid() -> int:
            found = (
                pid
                for pid, each in daemons.items()
                if each.metrics().get("plumbline_probe_runs_skipped_total", probe="slow", reason="locked")
            )
            return next(found, 0)

        loser = eventually(refused_pid, within_s=180)
        (winner,) = daemons.keys() - {loser}
        assert "another heavy probe is running: slow@" in daemons[loser].said()
        (cookie,) = eventually(holders, within_s=60)
        assert f" pid {winner} " in cookie

        # its node dies while it holds the lock; within the lease the other one gets it
        doomed = [winner, *daemons[winner].children()]
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        got = eventually(
            lambda: daemons[loser].metrics().get("plumbline_probe_runs_total", probe="slow", result="success"),
            within_s=240,
        )
        assert got >= 1
