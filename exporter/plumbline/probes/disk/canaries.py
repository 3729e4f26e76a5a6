"""The canaries on disks: from the configuration to one job for a file, or one for each raw disk of this host."""

from pathlib import Path
from typing import Any

from plumbline.config.probes.disk import CanaryConfig, RawCanaryConfig
from plumbline.config.workloads import BlockWorkload, Pattern
from plumbline.probes.canary.job import CanaryJob
from plumbline.probes.canary.pool import WorkerPool
from plumbline.probes.canary.target import FileTarget, Target
from plumbline.probes.disk import raw_device
from plumbline.probes.disk.raw_disks import raw_disks
from plumbline.probes.run.model import Host, Plan

# measured with loop devices, ten reads a second each, two busy CPUs: a worker needs 5 MiB of its own with 12 disks,
# 8 MiB with 60, and an operation costs 0.13 ms of CPU however the disks are distributed. But threads of one process
# wait for each other's Python: with 60 in one the median read took 95 µs, with 12 in each 75 µs
DISKS_PER_WORKER = 16


class DeviceTarget(Target, frozen=True, kw_only=True):
    """One whole disk: single reads at random places, never a write. The worker reads the disk's size: it is unknown
    before the disk is open."""

    target: str  # The kernel's name of the disk
    dev: Path
    sys: Path

    kind = "raw-canary"
    worker = "plumbline.probes.disk.raw_canary_worker"
    reasons = raw_device.ADVICE

    def __post_init__(self) -> None:
        for workload, _ in self.workloads:
            block = workload if isinstance(workload, BlockWorkload) else None
            if block is None or block.pattern not in (Pattern.READ, Pattern.RANDREAD) or not block.direct:
                raise ValueError(f"canary {self.name}: {workload.id} is not a direct read")

    @property
    def where(self) -> str:
        return str(self.dev / self.target)

    def order(self) -> dict[str, Any]:
        return {"dev": str(self.dev), "sys": str(self.sys)}


def build(config: CanaryConfig, workloads: tuple[BlockWorkload, ...], host: Host) -> Plan:
    directory = config.directory_in(host.storage)
    below = host.disk_below(directory)
    device_class = config.device_class or (below and below.device_class) or "unknown"
    # the file must exceed a rotational disk's own cache (64 to 512 MiB), or reads would measure the cache
    default_size = 2**30 if device_class == "hdd" else 2**24
    target = FileTarget(
        name=config.name,
        workloads=tuple((workload, ()) for workload in workloads),
        device_class=device_class,
        rate=config.rate,
        stuck_after_s=float(config.stuck_after),
        directory=directory,
        in_storage=not config.directory,
        file_size_bytes=default_size if config.file_size is None else int(config.file_size),
    )
    return Plan(continuous=(CanaryJob(config, target, below.name if below else ""),))


def build_raw(config: RawCanaryConfig, workload: BlockWorkload, host: Host) -> Plan:
    jobs = []
    for index, (name, disk) in enumerate(raw_disks(config.devices, host)):
        if index % DISKS_PER_WORKER == 0:
            pool = WorkerPool()
        target = DeviceTarget(
            name=f"{config.name}/{name}",
            workloads=((workload, ()),),
            device_class=config.device_class or (disk and disk.device_class) or "unknown",
            rate=config.rate,
            stuck_after_s=float(config.stuck_after),
            target=name,
            dev=host.roots.dev,
            sys=host.roots.sys,
        )
        jobs.append(CanaryJob(config, target, name, pool))
    return Plan(continuous=tuple(jobs))
