"""fio on raw disks, which are only ever read.

fio never gets a disk's name but ``/proc/self/fd/N``, our own descriptor, opened read-only and checked by
:mod:`.raw_device`: a later replacement of the name has no effect, and a colon in a path does not split it into two
files. fio opens that path again itself; all of the following keep it from writing:

- the workload's pattern, ``read`` or ``randread``; :class:`RawFioPlan` accepts no other, nor does the configuration
- ``--readonly``: fio refuses to start a job that writes or trims, and opens with O_RDONLY
- ``--allow_file_create=0``
- in the service, ``DeviceAllow=block-* r``: the kernel then refuses any other open, even to root

``--invalidate=0``: by default fio first sends BLKFLSBUF to the disk, which writes out dirty buffers and drops the page
cache of file systems mounted from it. ``--norandommap``: the map of blocks already read would take 512 MiB for a disk
of 16 TiB. Sequential jobs get separate parts of the disk, or all but one would read the disk's cache. The report goes
to memory: nothing is written anywhere.
"""

from plumbline.config.workloads import Pattern
from plumbline.probes.disk.raw_device import RawDevice, open_device
from plumbline.probes.fio import fio
from plumbline.probes.fio.fio_job import JOB, RunPlan
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import ProbeResult
from plumbline.probes.run.tool import FIO, Tool

_ALIGNED = 2**20


class RawFioPlan(RunPlan, frozen=True, kw_only=True):
    device: str  # The kernel's name of the disk
    dev: str
    sys: str

    def __post_init__(self) -> None:
        if self.workload.pattern not in (Pattern.READ, Pattern.RANDREAD) or not self.workload.direct:
            raise ValueError(f"fio {self.probe}: {self.workload.id} is not a direct read")


def run_raw_fio(plan: RawFioPlan, run: Run, tool: Tool = FIO) -> ProbeResult:
    """Raises :class:`ProbeRefused`: ``tool-missing``, the reasons of :data:`.raw_device.ADVICE`, ``stopped``."""
    version = tool.version(run.runner)
    device = open_device(plan.device, dev=plan.dev, sys=plan.sys, block_bytes=plan.workload.block_size)
    try:
        started = run.clock()
        took_s, ending = fio.measure(
            lambda report: argv(plan, device, report=report), plan, run, {device.fd: plan.device}, plan.timeout_s
        )
    finally:
        device.close()
    return fio.result_of(plan, version, started, took_s, ending)


def argv(plan: RawFioPlan, device: RawDevice, *, report: str) -> tuple[str, ...]:
    workload = plan.workload
    share = device.size_bytes // workload.jobs // _ALIGNED * _ALIGNED
    apart = workload.pattern is Pattern.READ and workload.jobs > 1 and share >= workload.block_size
    return (
        "fio",
        f"--name={JOB}",
        "--readonly",
        f"--filename=/proc/self/fd/{device.fd}",
        "--invalidate=0",
        "--norandommap=1",
        *((f"--size={share}", f"--offset_increment={share}") if apart else ()),
        f"--numjobs={workload.jobs}",
        *plan.options(report),
    )
