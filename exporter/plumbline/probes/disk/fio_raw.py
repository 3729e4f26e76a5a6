"""fio on raw disks, which are only ever read.

fio never gets a disk's name. It gets ``/proc/self/fd/N``, where N is our own descriptor: opened read-only and checked
by :mod:`.raw_device`, so that a later replacement of the name has no effect, and a colon in a path does not split it
into two files. fio opens that path again itself; all of the following keep it from writing:

- the workload's pattern, ``read`` or ``randread``; :class:`RawFioPlan` accepts no other, nor does the configuration
- ``--readonly``: fio refuses to start a job that writes or trims, and opens with O_RDONLY
- ``--allow_file_create=0``
- in the service, ``DeviceAllow=block-* r``: the kernel then refuses any other open, even to root

``--invalidate=0``: by default fio first sends BLKFLSBUF to the disk, which writes out dirty buffers and drops the page
cache of file systems mounted from it. ``--norandommap``: the map of blocks already read would take 512 MiB for a disk
of 16 TiB. Sequential jobs get separate parts of the disk, or all but one would read the disk's cache. The report goes
to memory: nothing is written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from plumbline.config.probes.disk import FioConfig
from plumbline.config.workloads import BlockWorkload, Pattern
from plumbline.core.process import Runner
from plumbline.probes.disk import fio
from plumbline.probes.disk.fio_job import JOB, PERCENTILES, LatencySearch, rate_options
from plumbline.probes.disk.raw_device import RawDevice, open_device
from plumbline.probes.disk.raw_disks import raw_disks
from plumbline.probes.identify import identify
from plumbline.probes.model import Host, Identity, Plan, Run
from plumbline.probes.result import Outcome, ProbeResult
from plumbline.probes.tool import FIO, Tool

_ALIGNED = 2**20


@dataclass(frozen=True, slots=True)
class RawFioPlan:
    """One read-only run on one disk. Times in seconds."""

    probe: str
    workload: BlockWorkload
    device: str
    """The kernel's name of the disk."""
    device_class: str
    dev: str
    sys: str
    runtime_s: float
    timeout_s: float
    rate_iops: int | None = None
    search: LatencySearch | None = None

    def __post_init__(self) -> None:
        if self.workload.pattern not in (Pattern.READ, Pattern.RANDREAD) or not self.workload.direct:
            raise ValueError(f"fio {self.probe}: {self.workload.id} is not a direct read")

    @property
    def config_hash(self) -> str:
        """See :meth:`BlockWorkload.config_hash`."""
        return self.workload.config_hash(rate_iops=self.rate_iops)


@dataclass(frozen=True, slots=True)
class RawFioProbe:
    """The periodic probe of one disk."""

    config: FioConfig
    plan: RawFioPlan
    tool: Tool = field(default=FIO, compare=False)

    heavy = True

    @property
    def identity(self) -> Identity:
        """See :class:`~plumbline.probes.model.Identity`."""
        plan = self.plan
        return identify(
            self.config,
            plan.workload,
            probe=plan.probe,
            device_class=plan.device_class,
            tool="fio",
            target=plan.device,
            device=plan.device,
            rate_iops=plan.rate_iops,
        )

    def run(self, run: Run) -> ProbeResult:
        """See :func:`run_raw_fio`."""
        return run_raw_fio(self.plan, runner=run.runner, tool=self.tool, clock=run.clock, keep_fds=run.keep_fds)

    def clean_up(self, run: Run) -> None:
        """Nothing to do: a run leaves nothing behind."""


def build(config: FioConfig, workload: BlockWorkload, host: Host) -> Plan:
    """One probe per disk; without disks, one in a directory."""
    if not config.devices:
        return fio.build(config, workload, host)
    probes = []
    for name, disk in raw_disks(config.devices, host):
        plan = RawFioPlan(
            probe=f"{config.name}/{name}",
            workload=workload,
            device=name,
            device_class=config.device_class or (disk and disk.device_class) or "unknown",
            dev=str(host.roots.dev),
            sys=str(host.roots.sys),
            runtime_s=float(config.runtime),
            timeout_s=float(config.timeout),
            rate_iops=config.rate_iops,
        )
        probes.append(RawFioProbe(config, plan))
    return Plan(periodic=tuple(probes))


def run_raw_fio(
    plan: RawFioPlan,
    *,
    runner: Runner,
    tool: Tool,
    clock: Callable[[], float],
    keep_fds: Sequence[int] = (),
) -> ProbeResult:
    """Run ``plan`` once. ``clock`` is Unix time; ``keep_fds`` stay open in fio (the locks').

    Raises :class:`ProbeRefused`: ``tool-missing``, the reasons of :data:`.raw_device.ADVICE`, ``stopped``.
    """
    version = tool.version(runner)
    device = open_device(plan.device, dev=plan.dev, sys=plan.sys, block_bytes=plan.workload.block_size)
    try:
        started = clock()
        completed, outcome, message, report = fio.measure(
            lambda report: argv(plan, device, report=report),
            plan.workload,
            runner=runner,
            timeout_s=plan.timeout_s,
            left_s=plan.timeout_s,
            files={device.fd: plan.device},
            keep_fds=keep_fds,
        )
    finally:
        device.close()
    return ProbeResult(
        probe=plan.probe,
        layer=plan.workload.layer,
        device_class=plan.device_class,
        workload=plan.workload.id,
        config_hash=plan.config_hash,
        tool="fio",
        tool_version=version,
        started=started,
        duration=completed.duration_s,
        outcome=outcome,
        operations=tuple(fio.operations_of(plan.workload, report)) if report and outcome is Outcome.SUCCESS else (),
        message=message,
    )


def argv(plan: RawFioPlan, device: RawDevice, *, report: str) -> tuple[str, ...]:
    """fio's command line. ``fio_job.py`` explains the options that both have."""
    workload = plan.workload
    share = device.size_bytes // workload.jobs // _ALIGNED * _ALIGNED
    apart = workload.pattern is Pattern.READ and workload.jobs > 1 and share >= workload.block_size
    return (
        "fio",
        f"--name={JOB}",
        "--readonly",
        f"--filename=/proc/self/fd/{device.fd}",
        "--allow_file_create=0",
        "--invalidate=0",
        f"--rw={workload.pattern.value}",
        f"--bs={workload.block_size}",
        *((f"--size={share}", f"--offset_increment={share}") if apart else ()),
        f"--numjobs={workload.jobs}",
        f"--ioengine={'psync' if workload.iodepth == 1 else 'libaio'}",
        f"--iodepth={workload.iodepth}",
        "--direct=1",
        *rate_options(workload, plan.rate_iops),
        "--time_based=1",
        f"--runtime={max(1, round(plan.runtime_s * 1000))}ms",
        "--thread=1",
        "--group_reporting=1",
        "--exitall_on_error=1",
        "--norandommap=1",
        "--randrepeat=0",
        *(plan.search.options() if plan.search else ()),
        *PERCENTILES,
        "--output-format=json+",
        f"--output={report}",
        "--eta=never",
    )
