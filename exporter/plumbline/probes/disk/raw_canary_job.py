"""The canary over raw disks: from its configuration to one job per disk of this host.

The number of disks per worker was measured (loop devices, ten reads a second each, two busy CPUs): a worker needs 5 MiB
of its own with 12 disks, 8 MiB with 60, and an operation costs 0.13 ms of CPU however the disks are distributed. But
threads of one process wait for each other's Python: with 60 in one the median read took 95 µs, with 12 in each 75 µs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from plumbline.config.probes.disk import RawCanaryConfig
from plumbline.config.workloads import BlockWorkload
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.crew import Crew
from plumbline.probes.canary.plan import DevicePlan, quicker
from plumbline.probes.disk.raw_disks import raw_disks
from plumbline.probes.identify import identify
from plumbline.probes.model import Bounds, Host, Identity, Plan

DISKS_PER_WORKER = 16


@dataclass(frozen=True, slots=True)
class RawCanaryJob:
    """The planned canary of one disk on this host."""

    config: RawCanaryConfig
    device: str
    device_class: str
    workload: BlockWorkload
    dev: Path
    sys: Path
    crew: Crew = field(compare=False)

    @property
    def name(self) -> str:
        """The ``probe`` label."""
        return f"{self.config.name}/{self.device}"

    def identities(self) -> tuple[Identity, ...]:
        """The identity of its one workload."""
        return (
            identify(
                self.config,
                self.workload,
                probe=self.name,
                device_class=self.device_class,
                target=self.device,
                device=self.device,
            ),
        )

    def plan(self, bounds: Bounds) -> DevicePlan:
        """What the canary's engine needs to know."""
        return DevicePlan(
            name=self.name,
            device=self.device,
            workload=self.workload,
            bounds=tuple(bounds.get((self.name, self.workload.id, self.workload.operations[0]), ())),
            device_class=self.device_class,
            dev=self.dev,
            sys=self.sys,
            rate=self.config.rate,
            stuck_after_s=float(self.config.stuck_after),
        )

    def make(self, bounds: Bounds) -> Canary:
        """The canary, not yet started; it shares a worker with the other canaries of its crew."""
        return Canary(self.plan(bounds), crew=self.crew)

    def hurried(self, factor: float) -> RawCanaryJob:
        """The same job at ``factor`` times the rate. Its reads do not disturb others."""
        return replace(self, config=structs.replace(self.config, rate=quicker(self.plan({}).wanted_rate, factor)))


def build(config: RawCanaryConfig, workload: BlockWorkload, host: Host) -> Plan:
    """A canary per disk."""
    jobs = []
    for index, (name, disk) in enumerate(raw_disks(config.devices, host)):
        if index % DISKS_PER_WORKER == 0:
            crew = Crew()
        device_class = config.device_class or (disk and disk.device_class) or "unknown"
        jobs.append(RawCanaryJob(config, name, device_class, workload, host.roots.dev, host.roots.sys, crew))
    return Plan(continuous=tuple(jobs))
