"""What a configuration means on a host, and what is remembered of its probes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from plumbline.config.model import Config
from plumbline.config.probes import ProbeConfig
from plumbline.config.probes.disk import CanaryConfig, FioConfig
from plumbline.config.types import Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.probes.run.kinds import KINDS
from plumbline.probes.run.plan import ANSWER_WITHIN_S, ProbingPlan, make_plan
from plumbline.probes.run.reading import CanaryState
from plumbline.probes.run.result import Outcome, ProbeResult
from plumbline.probes.run.schedule import Probing
from plumbline.probes.run.state import ProbeRecord, StateStore

CATALOGUE = load_catalogue()
NOWHERE = Roots.under(Path("/nowhere"))
WRITE = "randwrite-4k-qd1-j1"


def plan(
    *probes: CanaryConfig | FioConfig, storage: Path = Path("/nowhere/state"), roots: Roots = NOWHERE
) -> ProbingPlan:
    return make_plan(Config(probes=probes), storage=storage, roots=roots, environment={})


def test_each_probe_has_a_directory_of_its_own_in_the_storage_path_or_the_one_it_names() -> None:
    made = plan(
        CanaryConfig(name="canary"),
        CanaryConfig(name="other", directory="/srv/probe"),
        FioConfig(name="fio-a", workload=WRITE),
    )
    assert [job.plan({}).directory for job in made.continuous] == [Path("/nowhere/state/canary"), Path("/srv/probe")]
    assert [job.plan.directory for job in made.periodic] == [Path("/nowhere/state/fio-a")]


def test_every_kind_of_probe_has_a_builder() -> None:
    assert KINDS.keys() == set(get_args(ProbeConfig))


def test_what_is_switched_off_is_not_planned() -> None:
    assert plan(CanaryConfig(name="a", enabled=False), FioConfig(name="b", workload=WRITE, enabled=False)) == (
        ProbingPlan()
    )


def test_the_class_is_the_sites_word_or_unknown_where_no_disk_is_found() -> None:
    made = plan(CanaryConfig(name="a", device_class="ec-hdd"), CanaryConfig(name="b"))
    assert [(job.plan({}).device_class, job.device) for job in made.continuous] == [("ec-hdd", ""), ("unknown", "")]


def disk_below(folder: Path, sysfs: Path) -> Path:
    """sysfs in which ``folder`` stands on an SSD; the disk's directory."""
    number = folder.stat().st_dev
    disk = sysfs / "devices" / "sda"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue" / "rotational").write_text("0\n")
    (disk / "size").write_text("2048\n")
    (disk / "dev").write_text(f"{os.major(number)}:{os.minor(number)}\n")
    for link in ("block/sda", "class/block/sda", f"dev/block/{os.major(number)}:{os.minor(number)}"):
        (sysfs / link).parent.mkdir(parents=True, exist_ok=True)
        (sysfs / link).symlink_to(disk)
    return disk


def test_the_class_is_that_of_the_disk_below_and_the_device_is_known(tmp_path: Path) -> None:
    disk_below(tmp_path, tmp_path / "sys")
    made = plan(
        CanaryConfig(name="a"), FioConfig(name="b", workload=WRITE), storage=tmp_path, roots=Roots.under(tmp_path)
    )
    assert [(job.plan({}).device_class, job.device) for job in made.continuous] == [("ssd", "sda")]
    assert [(job.plan.device_class, job.device) for job in made.periodic] == [("ssd", "sda")]


def test_a_disk_that_does_not_answer_has_no_class_and_costs_a_second_in_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = disk_below(tmp_path, tmp_path / "sys")
    os.mkfifo(disk / "serial")  # nobody writes: reading it hangs, as the serial of a hung virtio disk does
    (disk / "size").unlink()
    os.mkfifo(disk / "size")
    began = time.monotonic()
    probes = [CanaryConfig(name=f"canary-{n}") for n in range(5)]

    made = plan(*probes, storage=tmp_path, roots=Roots.under(tmp_path))

    assert time.monotonic() - began < 3 * ANSWER_WITHIN_S  # and not five times
    assert {job.plan({}).device_class for job in made.continuous} == {"unknown"}
    assert f"{tmp_path / 'canary-0'}: the disk below does not answer" in caplog.text


def test_targets_are_every_operation_of_every_workload_with_its_parameters() -> None:
    made = plan(
        CanaryConfig(name="canary", device_class="ssd", workloads=("randread-4k-qd1-j1",)),
        FioConfig(name="mixed", device_class="hdd", workload="randrw75-4k-qd16-j4"),
        FioConfig(name="free", device_class="hdd", workload=WRITE),
        FioConfig(name="capped", device_class="hdd", workload=WRITE, rate_iops=50.0),
    )
    targets = made.targets()
    assert [(each.probe, each.device_class, each.workload, each.operation, each.rate_iops) for each in targets] == [
        ("canary", "ssd", "randread-4k-qd1-j1", "read", None),
        ("mixed", "hdd", "randrw75-4k-qd16-j4", "read", None),
        ("mixed", "hdd", "randrw75-4k-qd16-j4", "write", None),
        ("free", "hdd", WRITE, "write", None),
        ("capped", "hdd", WRITE, "write", 50.0),
    ]
    hashes = {each.probe: each.config_hash for each in targets}
    assert hashes["canary"] == CATALOGUE.get("randread-4k-qd1-j1", where="", key="").config_hash()
    assert hashes["free"] != hashes["capped"]


# --- running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    made = StateStore(tmp_path / "state")
    made.open()
    yield made
    made.close()


@pytest.fixture
def probing(store: StateStore) -> Iterator[Probing]:
    made = Probing(store=store, roots=NOWHERE, host="storage1", environment={})
    yield made
    assert made.stop(5.0) == []


def result(of: ProbingPlan, outcome: Outcome, started: float) -> ProbeResult:
    (job,) = of.periodic
    return ProbeResult(
        probe=job.config.name, layer="disk", device_class="ssd", workload=WRITE, config_hash=job.plan.config_hash,
        tool="fio", tool_version="3.33", started=started, duration=10.0, outcome=outcome,
    )  # fmt: skip


def test_the_status_of_a_periodic_probe_is_what_is_remembered(probing: Probing, store: StateStore) -> None:
    made = plan(FioConfig(name="fio-a", workload=WRITE, device_class="ssd"))
    good, bad = (
        result(made, outcome, time.time() - ago) for outcome, ago in ((Outcome.SUCCESS, 60), (Outcome.TIMEOUT, 30))
    )
    store.put("fio-a", ProbeRecord().with_result(good).with_skip("load", "busy").with_result(bad))

    probing.apply(made, {})
    (status,) = probing.statuses()

    assert (status.identity, status.interval_s) == (made.periodic[0].identity, 21600.0)
    assert (status.record.result, status.record.success) == (bad, good)
    assert status.record.runs == {Outcome.SUCCESS: 1, Outcome.TIMEOUT: 1}
    assert status.record.skipped == {"load": 1}
    assert status.in_flight_s is None


def test_probes_that_are_configured_no_more_are_forgotten(probing: Probing, store: StateStore) -> None:
    made = plan(FioConfig(name="fio-a", workload=WRITE, device_class="ssd"))
    store.put("fio-a", ProbeRecord().with_result(result(made, Outcome.SUCCESS, time.time())))
    store.put("fio-old", ProbeRecord().with_skip("load", "busy"))

    probing.apply(made, {})

    assert store.get("fio-old") == ProbeRecord()
    assert store.get("fio-a").result is not None
    probing.apply(ProbingPlan(), {})
    assert probing.statuses() == []


def canary(folder: Path, **changes: object) -> ProbingPlan:
    settings: dict[str, object] = {"name": "canary", "directory": str(folder / "probe"), "device_class": "ssd"}
    return plan(CanaryConfig(**settings | {"file_size": Size(1 << 20), "rate": 50.0} | changes))  # type: ignore[arg-type]


def until(true: object, within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_unchanged_canary_is_not_touched_and_a_changed_one_is_another(probing: Probing, tmp_path: Path) -> None:
    probing.apply(canary(Path("/dev/shm/nowhere")), {})
    (before,) = probing.readings()
    probing.apply(canary(Path("/dev/shm/nowhere")), {})
    (same,) = probing.readings()
    assert (before.runs, same.runs) == (1, 1)

    probing.apply(canary(Path("/dev/shm/nowhere"), rate=20.0), {})
    (other,) = probing.readings()
    assert other.runs == 1
    # the refusal is the worker's: its parent directory does not exist
    until(lambda: probing.readings()[0].state is CanaryState.REFUSED)
    assert probing.readings()[0].reason == "missing"

    probing.apply(ProbingPlan(), {})
    assert probing.readings() == []


def test_a_baselines_bound_becomes_an_edge_of_that_workload_alone(probing: Probing, tmp_path: Path) -> None:
    made = canary(Path("/dev/shm/nowhere"))
    probing.apply(made, {("canary", "randread-4k-qd1-j1", "read"): (0.000123,)})
    (reading,) = probing.readings()
    bounds = {each.operation: each.bounds for each in reading.workloads}
    assert bounds == {"read": (0.000123,), "write": ()}
    edges = {each.operation: each.latency.edges for each in reading.workloads}
    assert 0.000123 in edges["read"]
    assert 0.000123 not in edges["write"]


def test_the_last_minutes_are_remembered_for_each_operation(probing: Probing) -> None:
    probing.apply(canary(Path("/dev/shm/nowhere")), {})
    (followed,) = probing.followed()
    (first, _) = followed.canary.read().workloads
    assert followed.recent(first) is None
    probing.poll()
    lately = followed.recent(followed.canary.read().workloads[0])
    assert lately is not None
    assert lately.count == 0
    assert followed.medians(first) == ()


def test_a_changed_canary_has_nothing_to_remember_and_the_old_one_keeps_its_own(probing: Probing) -> None:
    """A page that is being made while the configuration changes goes on with the old one: never half of each."""
    probing.apply(canary(Path("/dev/shm/nowhere")), {})
    probing.poll()
    (old,) = probing.followed()
    probing.apply(canary(Path("/dev/shm/nowhere"), rate=20.0), {})
    (new,) = probing.followed()
    (reading, _) = new.canary.read().workloads
    assert new.recent(reading) is None
    assert old.recent(old.canary.read().workloads[0]) is not None
    probing.apply(canary(Path("/dev/shm/nowhere"), rate=20.0), {})
    assert probing.followed() == [new], "unchanged"


@pytest.mark.parametrize("cluster", [True, False])
def test_the_cluster_is_needed_where_a_probe_loads_it(tmp_path: Path, cluster: bool) -> None:
    (fio,) = plan(FioConfig(name="a", workload=WRITE, enabled=True), storage=tmp_path).periodic

    class Loads:
        config, heavy = fio.config, True
        identity = msgspec.structs.replace(fio.identity, cluster=cluster)

    store = StateStore(tmp_path / "state")
    probing = Probing(store=store, roots=NOWHERE, host="a", environment={})
    assert not probing.needs_cluster
    probing.apply(ProbingPlan(periodic=(Loads(),)), {})  # type: ignore[arg-type]
    assert probing.needs_cluster is cluster
    probing.apply(ProbingPlan(), {})
    assert not probing.needs_cluster
    probing.stop(1.0)
