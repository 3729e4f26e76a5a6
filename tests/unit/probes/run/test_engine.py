"""One run of a probe: locks, gates before and throughout, and what ends it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.config.probes.network import RttConfig
from plumbline.config.types import Duration, Endpoint
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.run.engine import Gates, run_probe
from plumbline.probes.run.gates import HeavyLock, check_quiet_hours
from plumbline.probes.run.model import Identity, Run
from plumbline.probes.run.result import Outcome, ProbeResult

NOW = 1_700_000_000.0


class Probe:
    """Waits for ``wait_s`` or until it is told to stop, by a command of its own."""

    def __init__(self, *, heavy: bool = True, wait_s: float = 0.0) -> None:
        self.config = RttConfig(name="a", targets=(Endpoint("x"),), timeout=Duration(60))
        self.heavy, self._wait_s = heavy, wait_s
        self.identity = Identity("a", "rtt", "network", "10g", "icmp-rtt-56", ("round-trip",), "00", "plumbline")
        self.runs = 0
        self.fds: tuple[int, ...] = ()

    def run(self, run: Run) -> ProbeResult:
        self.runs += 1
        self.fds = run.keep_fds
        completed = run.runner.run(("sleep", str(self._wait_s)), timeout_s=50)
        if completed.cancelled:
            raise ProbeRefused("stopped", "stopped")
        return ProbeResult(
            probe="a", layer="network", device_class="10g", workload="icmp-rtt-56", config_hash="00", tool="plumbline",
            tool_version="1", started=run.clock(), duration=completed.duration_s, outcome=Outcome.SUCCESS,
        )  # fmt: skip

    def clean_up(self, run: Run) -> None:
        pass


class Held:
    """A lock; lost once somebody sets ``lost``."""

    def __init__(self) -> None:
        self.lost = threading.Event()

    def check(self) -> None:
        if self.lost.is_set():
            raise ProbeRefused("lock-lost", "it was taken away")


class Cluster:
    """A cluster whose lock may be held by another."""

    def __init__(self, held_by: str = "") -> None:
        self.held_by = held_by
        self.lease = Held()
        self.holders: list[str] = []

    def check(self) -> None:
        pass

    @contextlib.contextmanager
    def hold(self, holder: str) -> Iterator[Held]:
        if self.held_by:
            raise ProbeRefused("locked", f"held by {self.held_by}")
        self.holders.append(holder)
        try:
            yield self.lease
        finally:
            self.holders.append("")


class Gate:
    """Open for so many questions."""

    def __init__(self, opened: float) -> None:
        self.asked, self._opened = 0, opened

    def __call__(self) -> None:
        self.asked += 1
        if self.asked > self._opened:
            raise ProbeRefused("recovery", "12 PGs recover")


def run(probe: Probe, tmp_path: Path, **more: object) -> ProbeResult:
    settings: dict[str, object] = {
        "cluster": None,
        "gates": Gates(),
        "stopping": threading.Event(),
    }
    return run_probe(
        probe,
        runner=ProcessRunner({"PATH": "/usr/bin:/bin"}),
        host_lock=HeavyLock(tmp_path / "lock"),
        clock=lambda: NOW,
        look_again_s=0.05,
        **settings | more,  # type: ignore[arg-type]
    )


def refusal(probe: Probe, tmp_path: Path, **more: object) -> ProbeRefused:
    with pytest.raises(ProbeRefused) as caught:
        run(probe, tmp_path, **more)
    return caught.value


def test_a_heavy_probe_holds_this_hosts_lock_and_then_the_clusters(tmp_path: Path) -> None:
    probe, cluster = Probe(), Cluster()
    assert run(probe, tmp_path, cluster=cluster).outcome is Outcome.SUCCESS
    assert cluster.holders == ["a", ""]
    assert len(probe.fds) == 1


def test_a_light_probe_takes_no_lock(tmp_path: Path) -> None:
    probe = Probe(heavy=False)
    with HeavyLock(tmp_path / "lock").hold("b"):
        assert run(probe, tmp_path, cluster=Cluster(held_by="b")).outcome is Outcome.SUCCESS
    assert probe.fds == ()


@pytest.mark.parametrize("where", ["host", "cluster"])
def test_another_heavy_probe_is_at_work(tmp_path: Path, where: str) -> None:
    probe = Probe()
    with HeavyLock(tmp_path / "lock").hold("b") if where == "host" else contextlib.nullcontext():
        refused = refusal(probe, tmp_path, cluster=Cluster(held_by="b" if where == "cluster" else ""))
    assert refused.reason == "locked"
    assert "held by b" in str(refused)
    assert probe.runs == 0
    with HeavyLock(tmp_path / "lock").hold("c"):
        pass  # the host's lock was given back


@pytest.mark.parametrize("kind", ["before", "throughout"])
def test_a_closed_gate_lets_nothing_begin(tmp_path: Path, kind: str) -> None:
    probe = Probe()
    refused = refusal(probe, tmp_path, gates=Gates(**{kind: [Gate(opened=0)]}))
    assert (refused.reason, probe.runs) == ("recovery", 0)


def test_a_gate_that_closes_under_way_ends_the_run_and_says_why(tmp_path: Path) -> None:
    probe = Probe(wait_s=45)
    began = time.monotonic()
    refused = refusal(probe, tmp_path, gates=Gates(throughout=[Gate(opened=3)]))
    assert (refused.reason, str(refused)) == ("recovery", "stopped during the run: 12 PGs recover")
    assert probe.runs == 1
    assert time.monotonic() - began < 30


def test_a_lock_lost_under_way_ends_the_run_and_says_so(tmp_path: Path) -> None:
    probe, cluster = Probe(wait_s=45), Cluster()
    threading.Timer(0.5, cluster.lease.lost.set).start()
    began = time.monotonic()
    refused = refusal(probe, tmp_path, cluster=cluster)
    assert (refused.reason, str(refused)) == ("lock-lost", "stopped during the run: it was taken away")
    assert probe.runs == 1
    assert cluster.holders == ["a", ""]
    assert time.monotonic() - began < 30


def test_a_gate_that_waits_does_not_keep_a_lost_lock_from_being_seen(tmp_path: Path) -> None:
    probe, cluster, never = Probe(wait_s=45), Cluster(), threading.Event()
    asked: list[int] = []

    def hangs() -> None:
        asked.append(1)
        if len(asked) > 1:
            never.wait(60)

    threading.Timer(0.5, cluster.lease.lost.set).start()
    assert refusal(probe, tmp_path, cluster=cluster, gates=Gates(throughout=[hangs])).reason == "lock-lost"
    never.set()


def test_a_lock_lost_at_once_lets_nothing_begin(tmp_path: Path) -> None:
    probe, cluster = Probe(), Cluster()
    cluster.lease.lost.set()
    assert refusal(probe, tmp_path, cluster=cluster).reason == "lock-lost"
    assert probe.runs == 0


def test_gates_before_are_asked_once(tmp_path: Path) -> None:
    before, throughout = Gate(opened=1), Gate(opened=10**9)
    run(Probe(wait_s=1), tmp_path, gates=Gates([before], [throughout]))
    assert before.asked == 1
    assert throughout.asked > 1


def test_the_daemon_ends(tmp_path: Path) -> None:
    stopping = threading.Event()
    threading.Timer(0.3, stopping.set).start()
    assert refusal(Probe(wait_s=45), tmp_path, stopping=stopping).reason == "stopped"


@pytest.mark.parametrize(
    ("quiet", "hour", "closed"),
    [
        ("Mon-Fri 08:00-18:00", 8, True),
        ("Mon-Fri 08:00-18:00", 18, False),
        ("Sat,Sun 08:00-18:00", 12, False),
        ("daily 22:00-06:00", 5, True),
        ("Sun 22:00-06:00", 5, True),  # began yesterday
        ("Mon 22:00-06:00", 5, False),
    ],
)
def test_quiet_hours(quiet: str, hour: int, closed: bool) -> None:
    from plumbline.config.types import QuietHours

    monday = time.struct_time((2026, 11, 16, hour, 0, 0, 0, 320, 0))
    with pytest.raises(ProbeRefused, match="is in the quiet hours") if closed else contextlib.nullcontext():
        check_quiet_hours([QuietHours.parse(quiet)], monday)


def test_a_gate_that_fails_by_a_mistake_ends_the_run(tmp_path: Path) -> None:
    asked = [0]

    def gate() -> None:
        asked[0] += 1
        if asked[0] > 2:
            raise KeyError("a mistake of ours")

    probe = Probe(wait_s=50)
    refused = refusal(probe, tmp_path, gates=Gates(throughout=(gate,)))
    assert refused.reason == "gate-failed"
    assert "a mistake of ours" in str(refused)
