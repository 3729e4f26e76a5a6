"""A canary that is planned and does not run yet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msgspec import structs

from plumbline.config.probes.base import ProbeBase
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.crew import Crew
from plumbline.probes.canary.plan import WorkerPlan, faster_rate
from plumbline.probes.run.model import Bounds, Identity


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

    @property
    def locks(self) -> bool:
        return self.unbounded.locks

    def faster(self, factor: float, *, spare: bool = False) -> CanaryJob:
        rate = faster_rate(self.unbounded.wanted_rate, factor)
        return replace(self, unbounded=structs.replace(self.unbounded.beside(spare=spare), rate=rate))
