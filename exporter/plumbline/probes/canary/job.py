"""From a canary's plan to its job, and from the configuration of those on disks to one job for a file, or one for each
raw disk of this host."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msgspec import structs

from plumbline.config.probes.base import ProbeBase
from plumbline.config.probes.disk import CanaryConfig, RawCanaryConfig
from plumbline.config.workloads import BlockWorkload
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.crew import Crew
from plumbline.probes.canary.plan import CanaryPlan, DevicePlan, WorkerPlan, quicker
from plumbline.probes.disk.raw_disks import raw_disks
from plumbline.probes.model import Bounds, Host, Identity, Plan

# measured with loop devices, ten reads a second each, two busy CPUs: a worker needs 5 MiB of its own with 12 disks,
# 8 MiB with 60, and an operation costs 0.13 ms of CPU however the disks are distributed. But threads of one process
# wait for each other's Python: with 60 in one the median read took 95 µs, with 12 in each 75 µs
DISKS_PER_WORKER = 16


@dataclass(frozen=True, slots=True)
class CanaryJob:
    """A planned canary on this host, without a baseline's bounds."""

    config: ProbeBase
    unbounded: WorkerPlan
    device: str  # The disk, or the one below the file; empty if unknown
    crew: Crew | None = field(default=None, compare=False)  # Those that share a worker; None: a worker of its own

    @property
    def name(self) -> str:
        return self.unbounded.name

    def identities(self) -> tuple[Identity, ...]:
        plan = self.unbounded
        return tuple(
            Identity.of(
                self.config,
                workload,
                probe=plan.name,
                device_class=plan.device_class,
                target=plan.target,
                device=self.device,
            )
            for workload, _ in plan.workloads
        )

    def plan(self, bounds: Bounds) -> WorkerPlan:
        return self.unbounded.with_bounds(bounds)

    def make(self, bounds: Bounds) -> Canary:
        return Canary(self.plan(bounds), crew=self.crew, device=self.device)

    def hurried(self, factor: float) -> CanaryJob:
        """The same job at ``factor`` times the rate. It can't disturb another canary: it locks its directory, only
        reads its disk, or has a name of its own (:meth:`.WorkerPlan.beside`)."""
        rate = quicker(self.unbounded.wanted_rate, factor)
        return replace(self, unbounded=structs.replace(self.unbounded.beside(), rate=rate))


def build(config: CanaryConfig, workloads: tuple[BlockWorkload, ...], host: Host) -> Plan:
    directory = config.directory_in(host.storage)
    below = host.disk_below(directory)
    device_class = config.device_class or (below and below.device_class) or "unknown"
    # the file must exceed a rotational disk's own cache (64 to 512 MiB), or reads would measure the cache
    default_size = 2**30 if device_class == "hdd" else 2**24
    plan = CanaryPlan(
        name=config.name,
        workloads=tuple((workload, ()) for workload in workloads),
        device_class=device_class,
        rate=config.rate,
        stuck_after_s=float(config.stuck_after),
        directory=directory,
        file_size_bytes=default_size if config.file_size is None else int(config.file_size),
    )
    return Plan(continuous=(CanaryJob(config, plan, below.name if below else ""),))


def build_raw(config: RawCanaryConfig, workload: BlockWorkload, host: Host) -> Plan:
    jobs = []
    for index, (name, disk) in enumerate(raw_disks(config.devices, host)):
        if index % DISKS_PER_WORKER == 0:
            crew = Crew()
        plan = DevicePlan(
            name=f"{config.name}/{name}",
            workloads=((workload, ()),),
            device_class=config.device_class or (disk and disk.device_class) or "unknown",
            rate=config.rate,
            stuck_after_s=float(config.stuck_after),
            target=name,
            dev=host.roots.dev,
            sys=host.roots.sys,
        )
        jobs.append(CanaryJob(config, plan, name, crew))
    return Plan(continuous=tuple(jobs))
