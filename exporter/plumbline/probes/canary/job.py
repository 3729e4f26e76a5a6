"""A canary that is planned and does not run yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from plumbline.config.probes.base import ProbeBase
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.pool import WorkerPool
from plumbline.probes.canary.target import Target
from plumbline.probes.run.model import Bounds, Identity


@dataclass(frozen=True, slots=True)
class CanaryJob:
    """A planned canary on this host, without a baseline's bounds."""

    config: ProbeBase
    unbounded: Target
    device: str  # The disk, or the one below the file; empty if unknown
    pool: WorkerPool | None = field(default=None, compare=False)  # The shared worker; None: a worker of its own
    before: Callable[[], None] | None = field(default=None, compare=False)  # Called before the canary is made

    @property
    def name(self) -> str:
        return self.unbounded.name

    def identities(self) -> tuple[Identity, ...]:
        """One per workload; none if nothing can be measured yet."""
        plan = self.unbounded
        return tuple(
            Identity.of(
                self.config,
                workload,
                probe=plan.name,
                device_class=plan.device_class,
                target=plan.target,
                device=self.device,
                cluster=plan.cluster,
            )
            for workload, _ in plan.workloads
        )

    def plan(self, bounds: Bounds) -> Target:
        return self.unbounded.with_bounds(bounds)

    def make(self, bounds: Bounds) -> Canary:
        if self.before is not None:
            self.before()
        return Canary(self.plan(bounds), pool=self.pool, device=self.device)

    @property
    def locks(self) -> bool:
        return self.unbounded.locks

    def faster(self, factor: float, *, spare: bool = False) -> CanaryJob:
        return replace(self, unbounded=self.unbounded.faster(factor, spare=spare))
