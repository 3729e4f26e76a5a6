"""``plumbline baseline record``: this node's probes, run on purpose a few times, joined to the statistics.

The same engines as in the daemon measure, at the same pace and with the same parameters: a baseline is only worth
what it has in common with what is watched. A running daemon goes on; where its canary holds the directory, the
recording works in one of its own inside it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from plumbline import __version__
from plumbline.baseline.book import RECORDED
from plumbline.baseline.model import Target
from plumbline.baseline.record import Environment, Progress, RecordedBaseline, RunFigures, record
from plumbline.baseline.site import Device, format_site
from plumbline.baseline.writer import check_target, write_text
from plumbline.errors import BaselineError, ProbeRefused, StateError, Unavailable
from plumbline.planning import ProbingPlan
from plumbline.probes import gates
from plumbline.probes.canary import measure
from plumbline.probes.canary_job import CanaryJob
from plumbline.probes.canary_plan import CanaryPlan
from plumbline.probes.fio import FioPlan, FioProbe, FioTool, run_fio
from plumbline.probes.fio_raw import RawFioProbe, run_raw_fio
from plumbline.probes.histogram import quantile
from plumbline.probes.raw_canary_job import RawCanaryJob
from plumbline.probes.result import Outcome, ProbeResult
from plumbline.probes.runner import ProcessRunner
from plumbline.probing import device_busy_ms
from plumbline.roots import Roots
from plumbline.sources.block import read_block_devices

FASTER = 8.0
"""The canary's pace while recording, against its usual one: percentiles need operations, and a minute at the usual
pace has none beyond the p95. One operation at a time still meets an idle queue: on a virtio disk the medians at 10 and
at 80 operations a second differed by less than 10 %, which is as much as two runs of the same pace did."""

OWN_DIRECTORY = "record"
"""Below a probe's directory, while a daemon works in that itself."""


_BY_HAND = (
    "only canaries and fio on disks are recorded; write what you accept of this one into a file of baseline.files"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A finished recording and where it was written; ``kept``: where the file it replaced is."""

    recorded: RecordedBaseline
    path: Path
    kept: Path | None
    left_out: tuple[str, ...]
    """Probes that could not be recorded here, and why, one line each."""


class Recorder:
    """Runs probes for a recording."""

    def __init__(self, plan: ProbingPlan, *, storage: Path, roots: Roots, environment: Mapping[str, str]) -> None:
        self._canaries = {job.name: job for job in plan.canaries}
        self._fio = {job.identity.probe: job for job in plan.fio}
        self._storage, self._roots = storage, roots
        self._runner = ProcessRunner(environment)
        self._tool = FioTool()
        self._lock = gates.HeavyLock(storage / gates.HEAVY_LOCK)

    def fio_version(self) -> str:
        """As :meth:`FioTool.version`; refuses where there is no fio."""
        return self._tool.version(self._runner)

    def measure(self, targets: Sequence[Target], duration_s: float) -> Sequence[RunFigures]:
        """One run of the probe that ``targets`` belong to."""
        name = targets[0].probe
        try:
            if name in self._canaries:
                return self._measure_canary(self._canaries[name], duration_s)
            return self._measure_fio(self._fio[name], duration_s)
        except ProbeRefused as refusal:
            raise BaselineError(name, str(refusal)) from refusal

    def busy(self, device: str) -> str:
        """Why ``device`` is not quiet now; empty when it is or nobody can say."""
        if not device:
            return ""
        try:
            gates.check_device_busy(
                lambda: device_busy_ms(self._roots, device), device=device, limit=0.5, wait=time.sleep
            )
        except ProbeRefused as refusal:
            return str(refusal).split(";")[0]
        except Unavailable:
            return ""
        return ""

    def _measure_canary(self, job: CanaryJob | RawCanaryJob, duration_s: float) -> list[RunFigures]:
        plan = job.hurried(FASTER).plan({})
        try:
            reading = measure(plan, duration_s)
        except ProbeRefused as refusal:
            if refusal.reason != "locked" or not isinstance(plan, CanaryPlan):
                raise
            reading = measure(replace(plan, directory=plan.directory / OWN_DIRECTORY), duration_s)
        return [RunFigures(each.workload, each.operation, each.latency) for each in reading.workloads]

    def _measure_fio(self, job: FioProbe | RawFioProbe, duration_s: float) -> list[RunFigures]:
        plan = replace(job.plan, runtime_s=duration_s, timeout_s=job.plan.timeout_s + duration_s)
        with self._lock.hold(plan.probe) as lock_fd:
            result: ProbeResult
            if isinstance(plan, FioPlan):
                result = run_fio(plan, runner=self._runner, tool=self._tool, clock=time.time, keep_fds=(lock_fd,))
            else:
                result = run_raw_fio(plan, runner=self._runner, tool=self._tool, clock=time.time, keep_fds=(lock_fd,))
        if result.outcome is not Outcome.SUCCESS:
            raise BaselineError(plan.probe, f"{result.outcome}: {result.message}")
        capped = job.plan.rate_iops is not None
        return [
            RunFigures(
                result.workload,
                each.operation,
                latency=each.latency,
                # what a cap allowed says nothing of what the device can do
                iops=None if capped else each.iops,
                throughput=None if capped else each.throughput,
            )
            for each in result.operations
        ]


def record_here(
    plan: ProbingPlan,
    *,
    storage: Path,
    output: Path | None,
    host: str,
    roots: Roots,
    environment: Mapping[str, str],
    only: Sequence[str] = (),
    runs: int = 5,
    run_duration_s: float | None = None,
    force: bool = False,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Recording:
    """Measure, check, write. ``output`` is ``baseline.yaml`` in ``storage`` unless given, ``only`` names probes.

    Raises :class:`BaselineError` when nothing can or should be written.
    """
    try:
        storage.mkdir(parents=True, exist_ok=True, mode=0o750)
    except OSError as error:
        raise StateError(f"{storage}: can't be made: {error.strerror}; choose another with --storage.path") from error
    path = output or storage / RECORDED
    check_target(path, force=force)
    targets = [target for target in plan.targets() if target.probe in recordable(plan)]
    known, left_out = {target.probe for target in targets}, not_recordable(plan)
    for name in only:
        if name in left_out:
            raise BaselineError("record", left_out[name], value=name)
        if name not in known:
            raise BaselineError("record", f"no such probe; there are: {', '.join(sorted(known))}", value=name)
    if only:
        targets, left_out = [target for target in targets if target.probe in only], {}
    recorder = Recorder(plan, storage=storage, roots=roots, environment=environment)
    tools = {"plumbline": __version__}
    fio_probes = {job.identity.probe for job in plan.fio} & {target.probe for target in targets}
    if fio_probes:
        try:
            tools["fio"] = recorder.fio_version()
        except ProbeRefused as refusal:
            left_out |= dict.fromkeys(sorted(fio_probes), str(refusal))
            targets = [target for target in targets if target.probe not in fio_probes]
    recorded = record(
        targets,
        measure=recorder.measure,
        quantile=quantile,
        environment=Environment(
            host=host,
            recorded=datetime.now(UTC),
            kernel=platform.release(),
            tools=tools,
            devices=_devices(roots, {target.device for target in targets}),
        ),
        runs=runs,
        run_duration_s=run_duration_s,
        busy=recorder.busy,
        progress=progress,
        force=force,
    )
    kept = write_text(path, format_site(recorded.file), force=force)
    return Recording(recorded, path, kept, tuple(f"{name}: {why}" for name, why in left_out.items()))


def recordable(plan: ProbingPlan) -> frozenset[str]:
    """Names of the probes that a recording runs."""
    return frozenset((*(job.name for job in plan.canaries), *(probe.identity.probe for probe in plan.fio)))


def not_recordable(plan: ProbingPlan) -> dict[str, str]:
    """All others, and what to do instead."""
    names = (*(job.name for job in plan.continuous), *(probe.identity.probe for probe in plan.periodic))
    return dict.fromkeys((name for name in names if name not in recordable(plan)), _BY_HAND)


def _devices(roots: Roots, names: set[str]) -> tuple[Device, ...]:
    """What the file says of the disks that were measured."""
    try:
        found = read_block_devices(roots, on_skip=lambda _item, _reason: None, keep=names.__contains__)
    except Unavailable:
        return ()
    return tuple(
        Device(
            name=each.name,
            device_class=each.device_class or "unknown",
            model=each.model or "",
            serial=each.serial or "",
        )
        for each in found
    )
