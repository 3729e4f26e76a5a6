"""A typed plan for fio, and the command lines made from it.

fio's options: https://fio.readthedocs.io/en/latest/fio_doc.html. They are generated from a typed plan and never taken
from a user. The choices, and why:

- ``thread``: fio's job *processes* call ``setsid`` and would escape the kill of the process group.
- ``ioengine``: psync for one operation in flight (the plain system call, least overhead), libaio above.
- Files by descriptor (``/proc/self/fd/N``), one section per job: a file that replaces a name after the check is never
  opened. The report goes into memory the same way.
- ``overwrite``, with files laid out (``fio_files.py``) and flushed before the first run and then reused: every measured
  write goes to existing blocks. fio by itself only *allocates* files for a write job, and the first write to an
  allocated but unwritten block costs a file system transaction. ``allow_file_create=0``: a run never creates files.
- No ``io_submit_mode=offload`` against coordinated omission: at queue depth 1, on a device throttled to a quarter of
  the rate, fio 3.33 gave the same 200 ms with and without, and the hand-over between threads adds 60 % to a latency
  of 0.18 ms. Charging a stall for every arrival during it is the canary's task.
- A cap is applied in even steps (fio's default), so that the IOPS of a capped run equal the cap unless the device can't
  sustain it. Poisson pacing gave 61 for a cap of 50 in 2 s.
- No ``max_latency``: it would turn one slow operation, visible as ``max``, into a failed run without figures.
- Percentiles of ``lat`` (what the program waited) instead of ``clat``.
- ``status-interval``, where the course of a run counts: fio appends a whole report every second. A log of rates would
  be a file beside the measured ones, left behind by a run that is killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from plumbline.config.probes.base import FioFiles
from plumbline.config.workloads import BlockWorkload, Pattern, Sync
from plumbline.probes.run.guard import FILL_BYTES_PER_SECOND

JOB = "plumbline"  # The measured job's name in fio's report
FILE = "fio"  # Data files are fio.0, fio.1, … one per job; all probes of a directory share them, and one runs at a time
# names that earlier releases used for the report and for incomplete files: only removed
REPORT, PARTIAL = "fio.json", "fio-partial"
_COURSE_WITHIN_S = 120.0  # 120 reports of up to 30 KiB: half of REPORT_MAX_BYTES
PERCENTILES = ("--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:95:99:99.9")


class LatencySearch(Struct, frozen=True):
    """fio's own search for the deepest queue that keeps a latency: it doubles the depth while a window succeeds, halves
    the rest when one fails, and reports the final depth. Only for a recording, never for automatic runs."""

    target_s: float
    percentile: float  # Percentage of a window's operations that must stay within the latency
    window_s: float

    def options(self) -> tuple[str, ...]:
        """fio's options. Times are in microseconds: it accepts no fractions."""
        return (
            f"--latency_target={max(1, round(self.target_s * 1e6))}us",
            f"--latency_window={max(1, round(self.window_s * 1e6))}us",
            f"--latency_percentile={self.percentile:g}",
        )


class RunPlan(Struct, frozen=True, kw_only=True):
    """The final parameters of one probe's run. Times in seconds."""

    probe: str
    workload: BlockWorkload
    device_class: str
    runtime_s: float
    timeout_s: float
    rate_iops: int | None = None
    """Limit on each job's operations per second, reads and writes together. Part of ``config_hash``, so that a capped
    run is never compared with the device's full performance."""
    search: LatencySearch | None = None

    @property
    def config_hash(self) -> str:
        return self.workload.config_hash(rate_iops=self.rate_iops)

    @property
    def by_second(self) -> bool:
        """Whether the rate of each second is reported: durable writes one after the other, as fast as they go. Not in a
        long run, whose reports would be too large to read."""
        workload = self.workload
        durable = workload.sync is Sync.DSYNC and workload.iodepth * workload.jobs == 1
        return durable and self.rate_iops is None and self.search is None and self.runtime_s <= _COURSE_WITHIN_S

    def options(self, report: str) -> tuple[str, ...]:
        """fio's options for every measured run, whose report goes to the file ``report``."""
        workload = self.workload
        return (
            f"--ioengine={'psync' if workload.iodepth == 1 else 'libaio'}",
            f"--rw={workload.rw}",
            f"--bs={workload.block_size}",
            f"--iodepth={workload.iodepth}",
            f"--direct={int(workload.direct)}",
            *rate_options(workload, self.rate_iops),
            "--time_based=1",
            f"--runtime={max(1, round(self.runtime_s * 1000))}ms",
            "--thread=1",
            "--group_reporting=1",
            "--exitall_on_error=1",
            "--allow_file_create=0",
            "--randrepeat=0",
            *(self.search.options() if self.search else ()),
            *PERCENTILES,
            "--output-format=json+",
            f"--output={report}",
            "--eta=never",
            *(("--status-interval=1",) if self.by_second else ()),
        )


class FioPlan(RunPlan, frozen=True, kw_only=True):
    """A run in files of a directory, one per job, of ``file_size`` bytes each."""

    directory: Path
    in_storage: bool = False  # The directory is created only if its parent still has the storage path's mark
    file_size: int

    @classmethod
    def of(
        cls, config: FioFiles, workload: BlockWorkload, *, directory: Path, device_class: str, in_storage: bool = False
    ) -> FioPlan:
        return cls(
            probe=config.name,
            workload=workload,
            directory=directory,
            in_storage=in_storage,
            device_class=device_class,
            runtime_s=float(config.runtime),
            timeout_s=float(config.timeout),
            file_size=int(config.file_size) // workload.block_size * workload.block_size,
            rate_iops=config.rate_iops,
        )

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(f"{FILE}.{number}" for number in range(self.workload.jobs))

    @property
    def total_bytes(self) -> int:
        return self.file_size * self.workload.jobs


def measure_argv(plan: FioPlan, files: Sequence[int], report: str) -> tuple[str, ...]:
    workload = plan.workload
    return (
        "fio",
        *plan.options(report),
        f"--size={plan.file_size}",
        "--refill_buffers=1",
        "--allow_mounted_write=0",
        "--unlink=0",
        *(("--sync=dsync",) if workload.sync is Sync.DSYNC else ()),
        *((f"--rwmixread={workload.rwmix_read}",) if workload.pattern is Pattern.RANDRW else ()),
        *(("--overwrite=1",) if "write" in workload.operations else ("--readonly",)),
        # options before the first name apply to all jobs
        *(word for fd in files for word in (f"--name={JOB}", f"--filename=/proc/self/fd/{fd}")),
    )


def layout_pace(plan: FioPlan) -> int:
    """Rate in bytes per second to write every file once: gentle if time allows."""
    return int(max(FILL_BYTES_PER_SECOND, 2 * plan.total_bytes / (plan.timeout_s - plan.runtime_s)))


def rate_options(workload: BlockWorkload, rate_iops: int | None) -> Iterator[str]:
    if rate_iops is None:
        return
    if workload.pattern is Pattern.RANDRW:
        # fio limits each direction separately; a share of 0 would mean "no cap"
        reads = min(max(1, round(rate_iops * workload.rwmix_read / 100)), max(1, rate_iops - 1))
        yield f"--rate_iops={reads},{max(1, rate_iops - reads)}"
    else:
        yield f"--rate_iops={rate_iops}"
