"""From this host's plan to the steps of a recording: which probes, with which parameters, run by which engine.

Everything is measured as the daemon measures it, by :class:`~plumbline.probes.run.single_run.RunOnce`: the same locks,
gates, guard and leases, and the same parameters, so that the hash agrees. Only the length of a run may differ, which is
not part of the hash.
"""

import hashlib
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

import plumbline
from plumbline.baseline.record.statistics import RunFigures
from plumbline.baseline.record.walk import STOPPED, Measured, Step, Tell
from plumbline.commands.recording_meanwhile import Meanwhile
from plumbline.config.model import Config
from plumbline.config.probes.base import Periodic
from plumbline.config.types import Duration
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.core.units import si
from plumbline.errors import BaselineError, ProbeRefused, Unavailable, UnknownName
from plumbline.probes.fio import fio_target
from plumbline.probes.fio.fio_target import FioKind
from plumbline.probes.run import gates
from plumbline.probes.run.model import ContinuousJob, Identity, PeriodicProbe, Progress
from plumbline.probes.run.plan import ProbingPlan, not_recordable
from plumbline.probes.run.reading import CanaryReading
from plumbline.probes.run.result import Outcome, ProbeResult
from plumbline.probes.run.run_now import Group, Item, group_name, name_of, together
from plumbline.probes.run.schedule import device_busy_ms
from plumbline.probes.run.single_run import RunOnce

_T = TypeVar("_T")

CANARY_RUN_S = 12.0  # How long a canary works in one run: five runs take a minute, which shows its p95 on any disk
WAIT_S = 300.0  # How long a run waits for its turn, while another probe works or the disk or node is busy
_AGAIN_S = 5.0
_BUSY_LIMIT = 0.5
# Reasons to try again: they pass by themselves
_PASSING = frozenset({"locked", "load", "device-busy", "nic-busy"})
# Fields of a probe's configuration that say when it runs, not what
_NO_PART = frozenset(
    {"name", "interval", "at", "timeout", "max_load_per_cpu", "max_device_busy", "stuck_after", "enabled"}
)


class Request(msgspec.Struct, frozen=True):
    layers: Collection[str] = ()  # Empty: all
    probes: Sequence[str] = ()  # Names as configured, or name/target; empty: all
    without: Sequence[str] = ()
    runs: int = 5
    run_duration_s: float | None = None  # None: each probe's own, for canaries CANARY_RUN_S
    latency_target_s: float | None = None  # Search for the most IOPS within this latency; None: don't
    latency_percentile: float = 99.0
    force: bool = False
    candidate: bool = False  # For the fleet to judge first: written beside the baseline in force, which stays
    fleet_class: str = ""


def with_run_duration(config: Config, seconds: float | None) -> Config:
    """The configuration with other run lengths; timeouts grow with them. Probes not bounded by time (packets, objects,
    bytes) stay as they are."""
    if seconds is None:
        return config
    return msgspec.structs.replace(config, probes=tuple(_lasting(probe, seconds) for probe in config.probes))


def _lasting(probe: object, seconds: float) -> object:
    if not isinstance(probe, Periodic) or not hasattr(probe, "runtime"):
        return probe
    seconds = max(1.0, math.ceil(seconds) if probe.whole_seconds else seconds)
    more = max(0.0, seconds - probe.runtime) * 2  # for both directions, or a write before the reads
    timeout = Duration(probe.timeout + more)
    rests = max(probe.interval, Duration(2 * timeout))  # as the configuration requires; a recording runs at once
    return msgspec.structs.replace(probe, runtime=Duration(seconds), timeout=timeout, interval=rests)


def choose(plan: ProbingPlan, request: Request) -> tuple[list[Item], dict[str, str]]:
    """The probes to record, and those that were asked for but are left out, with the reason. Raises
    :class:`UnknownName` for a name that no probe has."""
    items: list[Item] = [*plan.continuous, *plan.periodic]
    for name in (*request.probes, *request.without):
        if not any(_is(item, name) for item in items):
            there = ", ".join(sorted(map(name_of, items))) or "none"
            raise UnknownName(f"record = {name!r}: no such probe; there are: {there}")
    asked = [item for item in items if not request.probes or any(_is(item, name) for name in request.probes)]
    asked = [item for item in asked if not request.layers or layer_of(item) in request.layers]
    left_out = {name_of(item): why for item in asked if (why := not_recordable(identities_of(item)))}
    for item in asked:
        if any(_is(item, name) for name in request.without):
            left_out.setdefault(name_of(item), "on request (--without)")
    return [item for item in asked if name_of(item) not in left_out], left_out


def identities_of(item: Item) -> tuple[Identity, ...]:
    return (item.identity,) if isinstance(item, PeriodicProbe) else item.identities()


def layer_of(item: Item) -> str:
    identities = identities_of(item)
    return identities[0].layer if identities else ""


def _is(item: Item, name: str) -> bool:
    own = name_of(item)
    return own == name or own.startswith(f"{name}/")


class Steps:
    """Makes the steps and runs them. ``stopping`` ends the run under way."""

    def __init__(self, once: RunOnce, request: Request, *, roots: Roots, stopping: threading.Event) -> None:
        self._once, self._request, self._roots, self._stopping = once, request, roots, stopping

    def of(self, items: Sequence[Item]) -> list[Step]:
        """One step per probe, or per canaries of one configuration entry; then the searches."""
        steps = [self._plain(group) for group in together(items)]
        if self._request.latency_target_s is None:
            return steps
        return [*steps, *self._searches(items, self._request.latency_target_s)]

    def _plain(self, group: Group) -> Step:
        first = group[0]
        if isinstance(first, PeriodicProbe):
            measure: Callable[[Tell], Measured] = partial(self._periodic, first)
            lasts_s = _lasts_s(first)
        else:
            jobs = tuple(job for job in group if not isinstance(job, PeriodicProbe))
            lasts_s = self._request.run_duration_s or CANARY_RUN_S
            measure = partial(self._canaries, jobs, lasts_s)
        return Step(
            name=group_name(group),
            layer=layer_of(first),
            parameters=parameters(group, lasts_s),
            runs=self._request.runs,
            lasts_s=lasts_s,
            measure=measure,
        )

    def _searches(self, items: Sequence[Item], target_s: float) -> Iterator[Step]:
        """One search per place and kind of operation. It looks for the depth, so of a series over depths it uses only
        the shallowest probe."""
        shallow: dict[tuple[str, ...], FioKind] = {}
        for item in items:
            if isinstance(item, FioKind):
                place = fio_target.place_of(item)
                if place is not None and (place not in shallow or _depth(item) < _depth(shallow[place])):
                    shallow[place] = item
        percentile = self._request.latency_percentile
        for probe in shallow.values():
            yield Step(
                name=f"{probe.identity.probe}: IOPS at {si(target_s, 's')}",
                layer=probe.identity.layer,
                parameters=parameters([probe], target_s, percentile),
                runs=1,
                lasts_s=fio_target.lasts_s(probe),
                measure=partial(self._search, probe, target_s, percentile),
                last=True,
            )

    def _periodic(self, probe: PeriodicProbe, tell: Tell) -> Measured:
        disturbed = self._busy(probe.identity.device) if self._request.force else ""
        result = self._run(probe, tell)
        return Measured(
            figures=tuple(figures_of(result, capped=probe.identity.rate_iops is not None, disturbed=disturbed)),
            tool=result.tool,
            tool_version=result.tool_version,
        )

    def _search(self, probe: FioKind, target_s: float, percentile: float, tell: Tell) -> Measured:
        result = fio_target.find(probe, target_s, percentile, lambda step: self._run(step, tell, check=False))
        _check(result)
        (operation,) = result.operations
        figures = RunFigures(
            probe=result.probe,
            workload=probe.identity.workload,
            operation=operation.operation,
            iops=operation.iops,
            sought=(target_s, percentile),
            depth=operation.queue_depth or 0,
        )
        return Measured((figures,), result.tool, result.tool_version)

    def _canaries(self, jobs: Sequence[ContinuousJob], run_s: float, tell: Tell) -> Measured:
        identities = [identity for job in jobs for identity in job.identities()]
        busy = {device: self._busy(device) for device in sorted({identity.device for identity in identities})}
        devices = {job.name: identity.device for job in jobs for identity in job.identities()}

        def measure() -> tuple[list[CanaryReading], Meanwhile]:
            meanwhile = Meanwhile(self._roots, devices, load_catalogue().by_id)
            readings = self._once.canaries(
                group_name(jobs), jobs, run_s=run_s, bounds={}, progress=_progress(tell), see=meanwhile.see
            )
            meanwhile.close(readings)
            return readings, meanwhile

        readings, meanwhile = self._patiently(measure, tell)
        figures = [
            recorded
            for job, reading in zip(jobs, readings, strict=True)
            for recorded in _of_reading(job, reading, meanwhile, devices[job.name], busy)
        ]
        return Measured(tuple(figures), "plumbline", plumbline.__version__)

    def _run(self, probe: PeriodicProbe, tell: Tell, *, check: bool = True) -> ProbeResult:
        result = self._patiently(
            lambda: self._once.periodic(probe, force=self._request.force, progress=_progress(tell)), tell
        )
        if check:
            _check(result)
        return result

    def _patiently(self, run: Callable[[], _T], tell: Tell) -> _T:
        until = time.monotonic() + WAIT_S
        while True:
            if self._stopping.is_set():
                raise ProbeRefused(STOPPED, "stopped")
            try:
                return run()
            except ProbeRefused as refusal:
                if refusal.reason not in _PASSING or time.monotonic() >= until:
                    raise
                tell(f"waiting: {refusal}", "")
            self._stopping.wait(_AGAIN_S)

    def _busy(self, device: str) -> str:
        """Why ``device`` is not quiet now; empty when it is, or when that is unknown."""
        if not device:
            return ""
        try:
            gates.check_device_busy(
                lambda: device_busy_ms(self._roots, device), device=device, limit=_BUSY_LIMIT, wait=self._stopping.wait
            )
        except ProbeRefused as refusal:
            return "" if refusal.reason == "device-gone" else str(refusal).split(";")[0]
        except Unavailable:
            return ""
        return ""


def figures_of(result: ProbeResult, *, capped: bool, disturbed: str = "") -> Iterator[RunFigures]:
    """The figures of a successful run. A capped rate says nothing about the device, so it is left out."""
    for operation in result.operations:
        yield RunFigures(
            probe=result.probe,
            workload=result.workload,
            operation=operation.operation,
            bins=operation.bins,
            latency=operation.latency,
            iops=None if capped else operation.iops,
            throughput=None if capped else operation.throughput,
            disturbed=disturbed,
        )


def _of_reading(
    job: ContinuousJob, reading: CanaryReading, meanwhile: Meanwhile, device: str, busy: Mapping[str, str]
) -> Iterator[RunFigures]:
    failed = {error: count for workload in reading.workloads for error, count in workload.errors.items() if count}
    if failed:
        errors = ", ".join(f"{count} {error}" for error, count in sorted(failed.items()))
        raise BaselineError(job.name, f"failed operations: {errors}")
    for workload in reading.workloads:
        if not workload.latency.count:
            raise BaselineError(job.name, f"{workload.workload}: {reading.message or 'no operation finished'}")
        yield RunFigures(
            probe=job.name,
            workload=workload.workload,
            operation=workload.operation,
            histogram=workload.latency,
            slices=meanwhile.slices((job.name, workload.workload, workload.operation)),
            load=meanwhile.load.get(device),
            disturbed=busy.get(device, ""),
        )


def parameters(group: Group, *more: float) -> str:
    """A hash over everything that makes the runs of ``group`` the same experiment."""
    facts: list[object] = [*more]
    for item in group:
        config = item.config  # type: ignore[union-attr]  # every kind has one; not part of what the engine needs
        names: Mapping[str, object] = {
            name: getattr(config, name) for name in type(config).__struct_fields__ if name not in _NO_PART
        }
        facts += [identities_of(item), sorted((name, repr(value)) for name, value in names.items())]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


def _check(result: ProbeResult) -> None:
    if result.outcome is not Outcome.SUCCESS:
        raise BaselineError(result.probe, f"{result.outcome}: {result.message}")


def _lasts_s(probe: PeriodicProbe) -> float:
    """Seconds for the measured part and what comes before and after it."""
    runtime = getattr(probe.config, "runtime", None)
    packets = getattr(probe.config, "packets", 0) * getattr(probe.config, "gap", 0.0)
    return 3.0 + len(probe.identity.operations) * float(packets or runtime or 5.0)


def _depth(probe: FioKind) -> int:
    return probe.plan.workload.iodepth * probe.plan.workload.jobs


def _progress(tell: Tell) -> Callable[[Progress], None]:
    return lambda now: tell(now.stage, now.figures)
