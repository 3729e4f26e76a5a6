"""The disk canary in a file: from its configuration to a plan on this host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from plumbline.config.probes.disk import CanaryConfig
from plumbline.config.workloads import BlockWorkload
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.plan import CanaryPlan, quicker
from plumbline.probes.identify import identify
from plumbline.probes.model import Bounds, Host, Identity, Plan


@dataclass(frozen=True, slots=True)
class CanaryJob:
    """A planned canary on this host."""

    config: CanaryConfig
    directory: Path
    device: str
    device_class: str
    workloads: tuple[BlockWorkload, ...]

    @property
    def name(self) -> str:
        """The ``probe`` label."""
        return self.config.name

    def identities(self) -> tuple[Identity, ...]:
        """One per workload."""
        return tuple(
            identify(self.config, workload, device_class=self.device_class, device=self.device)
            for workload in self.workloads
        )

    def plan(self, bounds: Bounds) -> CanaryPlan:
        """What the canary's engine needs to know."""
        return CanaryPlan(
            name=self.config.name,
            directory=self.directory,
            file_size_bytes=self._file_size(),
            workloads=tuple(
                (workload, bounds.get((self.config.name, workload.id, workload.operations[0]), ()))
                for workload in self.workloads
            ),
            device_class=self.device_class,
            rate=self.config.rate,
            stuck_after_s=float(self.config.stuck_after),
        )

    def make(self, bounds: Bounds) -> Canary:
        """The canary, not yet started."""
        return Canary(self.plan(bounds))

    def hurried(self, factor: float) -> CanaryJob:
        """The same job at ``factor`` times the rate. It locks its directory, so it can't disturb another canary."""
        return replace(self, config=structs.replace(self.config, rate=quicker(self.plan({}).wanted_rate, factor)))

    def _file_size(self) -> int:
        """The file must exceed a rotational disk's own cache (64 to 512 MiB), or reads would measure the cache."""
        if self.config.file_size is not None:
            return int(self.config.file_size)
        return 2**30 if self.device_class == "hdd" else 2**24


def build(config: CanaryConfig, workloads: tuple[BlockWorkload, ...], host: Host) -> Plan:
    """A canary in one directory."""
    directory = config.directory_in(host.storage)
    below = host.disk_below(directory)
    device_class = config.device_class or (below and below.device_class) or "unknown"
    return Plan(continuous=(CanaryJob(config, directory, below.name if below else "", device_class, workloads),))
