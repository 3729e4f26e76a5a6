"""The schedule at work on real processes: what never happens twice, what ends a run, and what is left of it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from plumbline.config.model import GatesConfig
from plumbline.config.probes.network import RttConfig
from plumbline.config.types import Duration, QuietHours, Schedule
from plumbline.core.roots import Roots
from plumbline.core.storage_names import HEAVY_LOCK
from plumbline.core.wall_clock import WallClock
from plumbline.errors import ProbeRefused
from plumbline.probes.run import engine
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.model import Identity, Run
from plumbline.probes.run.plan import ProbingPlan
from plumbline.probes.run.result import Outcome, ProbeResult
from plumbline.probes.run.schedule import CALENDAR_SPLAY_S, Probing
from plumbline.probes.run.state import StateStore
from support.daemon import alive

WITHIN_S = 30.0
MONDAY_1_AM = time.mktime((2026, 11, 16, 1, 0, 0, 0, 0, -1))


class Hasty(RttConfig, frozen=True, kw_only=True, tag="hasty"):
    """With intervals shorter than a configuration may have, so that a test sees several."""

    def __post_init__(self) -> None:
        """Everything is allowed."""


@dataclass
class Seen:
    """What the runs of a probe did; not part of what makes two probes the same."""

    started: int = 0
    at_once: int = 0
    most_at_once: int = 0
    cleaned: int = 0
    pids: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Probe:
    """Runs ``sh -c script``, which tells its process id first."""

    name: str = "a"
    script: str = "sleep 60"
    interval_s: float = 3600.0
    timeout_s: float = 60.0
    heavy: bool = True
    at: Schedule | None = None
    folder: Path = Path("/nowhere")
    seen: Seen = field(default_factory=Seen, compare=False)

    @property
    def config(self) -> RttConfig:
        return Hasty(
            name=self.name, targets=("x",), interval=Duration(self.interval_s), timeout=Duration(self.timeout_s),
            at=self.at, max_load_per_cpu=1e6,
        )  # fmt: skip

    @property
    def identity(self) -> Identity:
        return Identity(self.name, "rtt", "network", "10g", "icmp-rtt-56", ("round-trip",), "00", "sh")

    def run(self, run: Run) -> ProbeResult:
        seen = self.seen
        seen.started += 1
        seen.at_once += 1
        seen.most_at_once = max(seen.most_at_once, seen.at_once)
        file = self.folder / f"{self.name}.{seen.started}"
        try:
            script = f"echo $$ > {file}; {self.script}"
            done = run.runner.run(("sh", "-c", script), timeout_s=self.timeout_s, keep_fds=run.keep_fds)
        finally:
            seen.at_once -= 1
        if done.cancelled:
            raise ProbeRefused("stopped", "stopped")
        return ProbeResult(
            probe=self.name, layer="network", device_class="10g", workload="icmp-rtt-56", config_hash="00", tool="sh",
            tool_version="1", started=run.clock(), duration=done.duration_s,
            outcome=Outcome.TIMEOUT if done.timed_out else Outcome.SUCCESS,
        )  # fmt: skip

    def clean_up(self, run: Run) -> None:
        assert not self.seen.started
        self.seen.cleaned += 1

    def pid(self, number: int = 1) -> int:
        file = self.folder / f"{self.name}.{number}"
        eventually(lambda: file.exists() and file.read_text().strip())
        return int(file.read_text())


def eventually(true: Callable[[], object], within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Clock:
    """Unix time that stands where it is put."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    made = StateStore(tmp_path / "state")
    made.open()
    yield made
    made.close()


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "loadavg").write_text("0.00 0.00 0.00 1/80 11206\n")
    return Roots.under(tmp_path)


@pytest.fixture
def probing(store: StateStore, roots: Roots, monkeypatch: pytest.MonkeyPatch) -> Iterator[Probing]:
    monkeypatch.setattr("plumbline.probes.run.schedule.FIRST_RUN_WITHIN_S", 0.05)
    made = Probing(store=store, roots=roots, host="storage1", environment=dict(os.environ))
    yield made
    made.stop(5.0)


def plan(*probes: Probe) -> ProbingPlan:
    return ProbingPlan(periodic=probes)


def test_a_probe_never_overlaps_itself_and_missed_ticks_are_dropped(probing: Probing, tmp_path: Path) -> None:
    slow = Probe(script="sleep 0.7", interval_s=0.2, heavy=False, folder=tmp_path)
    probing.apply(plan(slow), {})
    eventually(lambda: slow.seen.started >= 3)
    began, before = time.monotonic(), slow.seen.started
    time.sleep(3)
    runs = slow.seen.started - before
    assert slow.seen.most_at_once == 1
    # queued ticks would follow each other without a pause; each run takes more than three of them
    assert 1 <= runs <= (time.monotonic() - began) / 0.7 + 1


def test_clean_up_comes_once_and_before_the_first_run(probing: Probing, tmp_path: Path) -> None:
    quick = Probe(script="true", interval_s=0.2, folder=tmp_path)
    probing.apply(plan(quick), {})
    eventually(lambda: quick.seen.started >= 3)
    assert quick.seen.cleaned == 1


def test_nothing_is_cleaned_up_beside_somebody_elses_run(probing: Probing, store: StateStore, tmp_path: Path) -> None:
    quick = Probe(script="true", interval_s=0.2, folder=tmp_path)
    with HeavyLock(store.directory / HEAVY_LOCK).hold("plumbline probe run"):
        probing.apply(plan(quick), {})
        eventually(lambda: store.get("a").skipped.get("locked"))
        assert (quick.seen.cleaned, quick.seen.started) == (0, 0)
    eventually(lambda: quick.seen.started)
    assert quick.seen.cleaned == 1


def test_a_probe_that_leaves_the_configuration_leaves_no_process(probing: Probing, tmp_path: Path) -> None:
    one, other = Probe(folder=tmp_path), Probe(name="b", script="true", interval_s=0.2, heavy=False, folder=tmp_path)
    probing.apply(plan(one, other), {})
    pid = one.pid()
    probing.apply(plan(other), {})
    eventually(lambda: not alive(pid))
    assert [each.identity.probe for each in probing.statuses()] == ["b"]


def test_a_stop_leaves_no_process(probing: Probing, tmp_path: Path) -> None:
    one, light = Probe(folder=tmp_path), Probe(name="b", heavy=False, folder=tmp_path)
    probing.apply(plan(one, light), {})
    pids = [one.pid(), light.pid()]
    assert probing.stop(10.0) == []
    assert not any(map(alive, pids))


@pytest.mark.parametrize("jump_s", [400 * 86400.0, -400 * 86400.0])
def test_a_clock_that_is_set_during_a_run_does_not_make_its_result_old(
    roots: Roots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    monkeypatch.setattr("plumbline.probes.run.schedule.FIRST_RUN_WITHIN_S", 0.05)
    set_s = 0.0

    def wall() -> float:
        return time.time() + set_s

    store = StateStore(tmp_path / "state", WallClock(wall))
    store.open()
    probing = Probing(store=store, roots=roots, host="storage1", environment=dict(os.environ), clock=wall)
    try:
        slow = Probe(script="sleep 1", interval_s=3600.0, heavy=False, folder=tmp_path)
        probing.apply(plan(slow), {})
        eventually(lambda: slow.seen.started)
        set_s = jump_s
        eventually(lambda: store.get("a").result)
        result = store.get("a").result
        assert result is not None
        assert abs(wall() - result.finished) < 60
    finally:
        probing.stop(5.0)
        store.close()


def test_quiet_hours_that_begin_end_the_run(store: StateStore, roots: Roots, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("plumbline.probes.run.schedule.FIRST_RUN_WITHIN_S", 0.05)
    monkeypatch.setattr(engine.run_probe, "__kwdefaults__", engine.run_probe.__kwdefaults__ | {"look_again_s": 0.1})
    clock = Clock(MONDAY_1_AM)
    probing = Probing(store=store, roots=roots, host="storage1", environment=dict(os.environ), clock=clock)
    one = Probe(folder=tmp_path)
    try:
        probing.apply(plan(one), {}, GatesConfig(quiet_hours=(QuietHours.parse("daily 08:00-18:00"),)))
        pid = one.pid()
        clock.now += 7 * 3600
        eventually(lambda: not alive(pid))
        eventually(lambda: store.get("a").skipped)
    finally:
        probing.stop(5.0)
    record = store.get("a")
    assert (record.skipped, record.result) == ({"quiet-hours": 1}, None)
    assert record.last_skip == "stopped during the run: 08:00 is in the quiet hours daily 08:00-18:00"
    assert record.ticked == clock.now


def test_a_calendar_goes_on_where_it_was_after_a_restart(store: StateStore, roots: Roots, tmp_path: Path) -> None:
    night = Probe(at=Schedule("daily 02:30"), folder=tmp_path)
    found = []
    for hours in (0.0, 0.5):
        clock = Clock(MONDAY_1_AM + hours * 3600)
        probing = Probing(store=store, roots=roots, host="storage1", environment={}, clock=clock)
        probing.apply(plan(night), {})
        eventually(lambda probing=probing: probing.next_start(night) is not None)  # type: ignore[misc]
        left = probing.next_start(night)
        assert left is not None
        found.append(clock.now + left)
        assert probing.stop(5.0) == []
    assert night.seen.started == 0  # a start of the daemon is no moment of the calendar
    assert found[0] == pytest.approx(found[1], abs=5)
    assert 0 <= found[0] - (MONDAY_1_AM + 1.5 * 3600) <= CALENDAR_SPLAY_S + 5


def test_hosts_start_apart(roots: Roots, store: StateStore, tmp_path: Path) -> None:
    night = Probe(at=Schedule("daily 02:30"), folder=tmp_path)
    moments = []
    for number in range(20):
        host = Probing(store=store, roots=roots, host=f"storage{number}", environment={}, clock=Clock(MONDAY_1_AM))
        host.apply(plan(night), {})
        eventually(lambda host=host: host.next_start(night) is not None)  # type: ignore[misc]
        moments.append(host.next_start(night) or 0.0)
        host.stop(5.0)
    assert max(moments) - min(moments) > CALENDAR_SPLAY_S / 2
    assert len({round(moment) for moment in moments}) > 15


@pytest.mark.needs_root
@pytest.mark.parametrize("heavy", [True, False])
def test_a_run_that_hangs_in_the_kernel_stays_the_only_one(probing: Probing, store: StateStore, tmp_path: Path,
                                                           heavy: bool) -> None:  # fmt: skip
    """A freezer cgroup (v1) holds a process so that SIGKILL waits, as a hung disk does."""
    freezer = Path("/sys/fs/cgroup/freezer")
    if os.geteuid() != 0 or not (freezer / "cgroup.procs").exists():
        pytest.skip("needs root and a version 1 freezer cgroup")
    group = freezer / f"plumbline-stuck-{os.getpid()}"
    group.mkdir()
    hung = Probe(
        script=f"echo $$ > {group}/cgroup.procs; echo FROZEN > {group}/freezer.state; sleep 60",
        interval_s=0.3, timeout_s=0.5, heavy=heavy, folder=tmp_path,
    )  # fmt: skip
    well = Probe(name="b", script="true", interval_s=0.2, heavy=False, folder=tmp_path)
    try:
        probing.apply(plan(hung, well), {})
        eventually(lambda: store.get("a").runs.get(Outcome.TIMEOUT))
        eventually(lambda: store.get("a").skipped.get("stuck", 0) >= 3)
        assert hung.seen.started == 1
        assert len((group / "cgroup.procs").read_text().split()) == 1
        before = well.seen.started
        eventually(lambda: well.seen.started > before + 2)  # it is nobody else's matter
    finally:
        (group / "freezer.state").write_text("THAWED")
        eventually(lambda: not (group / "cgroup.procs").read_text().split())
        group.rmdir()
    eventually(lambda: hung.seen.started > 1)  # the disk let go: on we go (and fail: the group is gone)


def test_a_run_that_never_comes_back_holds_nobody_else_up(probing: Probing, tmp_path: Path) -> None:
    """Python's own system call hangs: nothing can end it, but it is one thread, and it is told."""
    never = threading.Event()

    class Hung(Probe):
        def run(self, run: Run) -> ProbeResult:
            self.seen.started += 1
            never.wait()
            raise ProbeRefused("stopped", "over")

    hung = Hung(interval_s=0.1, heavy=False, folder=tmp_path)
    well = Probe(name="b", script="true", interval_s=0.2, heavy=False, folder=tmp_path)
    probing.apply(plan(hung, well), {})
    eventually(lambda: well.seen.started > 5)
    assert hung.seen.started == 1
    (status, _) = probing.statuses()
    assert status.in_flight_s is not None
    assert status.in_flight_s > 0
    began = time.monotonic()
    assert probing.stop(0.5) == ["a"]
    assert time.monotonic() - began < 10
    never.set()
