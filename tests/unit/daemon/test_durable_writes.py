"""From what the daemon remembers of a probe of durable writes to the finding about its disk."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from plumbline.checks.disk_flush import WORKLOAD
from plumbline.config.model import Config
from plumbline.config.probes.disk import FioConfig
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.daemon.running import HostContext
from plumbline.daemon.wiring import Wiring, no_daemon
from plumbline.metrics.snapshot import Readings
from plumbline.probes.disk.fio_probe import FioProbe
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run.plan import ProbingPlan
from plumbline.probes.run.result import OperationResult, Outcome
from plumbline.probes.run.state import ProbeRecord, StateStore
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.queuesettings import QueueReading
from support.disk_facts import NVME

READINGS = Readings.of(DevicesReading((NVME.block,)), QueueReading((replace(NVME.queue, device="nvme0n1"),)))


def probe(workload: str) -> FioProbe:
    config = FioConfig(name="journal", workload=workload)
    load = load_catalogue().get(workload, where="test", key="workload")
    return FioProbe(config, FioPlan.of(config, load, directory=Path("/d"), device_class="nvme"), "nvme0n1")


def test_the_newest_good_run_of_the_same_parameters_is_judged(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "storage")
    context = HostContext(None, store.directory, Roots.under(tmp_path), {}, "node-1")
    wired = Wiring(context, Config(vantage="host"), store, state=no_daemon)
    journal = probe(WORKLOAD)
    result = journal.identity.result(
        tool_version="3.33", started=0.0, duration=60.0, outcome=Outcome.SUCCESS,
        operations=(OperationResult(operation="write", rates=(900.0,) * 60),),
    )  # fmt: skip

    def judged(planned: FioProbe, record: ProbeRecord) -> list[str]:
        wired.running = replace(wired.running, plan=ProbingPlan((planned,), ()))
        wired.record = {"journal": record}.__getitem__
        findings = wired.judge.look(READINGS, 1.0)
        return [finding.actual for finding in findings if finding.check == "disk.flush"]

    good = ProbeRecord(success=result)
    assert judged(journal, good) == ["900 durable writes/s (middle half 900 to 900); write through"]
    assert judged(journal, ProbeRecord(result=result)) == []
    assert judged(journal, ProbeRecord(success=replace(result, config_hash="other"))) == []
    assert judged(probe("randwrite-4k-qd1-j1-dsync"), good) == []
