"""The RADOS canary: from its configuration to one canary per OSD, all in one worker."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from plumbline.config.probes.ceph import RadosCanaryConfig
from plumbline.config.workloads import RadosOps
from plumbline.probes.canary.plan import faster_rate
from plumbline.probes.ceph.ceph_access import NAMESPACE, CephAccess
from plumbline.probes.ceph.osd_lookup import remember
from plumbline.probes.rados.osd_choice import ChosenOsd, look_up
from plumbline.probes.rados.rados_canary import OsdCanary, OsdPlan, RadosCanaries, RadosCanaryPlan
from plumbline.probes.run.model import Bounds, Host, Identity, Plan
from plumbline.sources.ceph.cluster_osds import ClusterOsds

PREFIX = "plumbline"  # Prefix of all the canaries' objects: plumbline/<host>/<probe>/osd.3/17
APART = "@now"  # Appended to the probe's name in an interactive run beside the daemon; no name contains @


@dataclass(slots=True)
class _Shared:
    storage: Path
    cluster: ClusterOsds | None  # The cluster's answer when this was planned
    canaries: RadosCanaries | None = None

    def make(self, plan: RadosCanaryPlan) -> RadosCanaries:
        """The worker for this plan; a new one if the last was stopped, or the plan differs."""
        if self.canaries is None or self.canaries.stopped or self.canaries.plan != plan:
            self.canaries = RadosCanaries(plan)
            if self.cluster is not None:
                remember(self.storage, self.cluster)
        return self.canaries


@dataclass(frozen=True, slots=True)
class RadosCanaryJob:
    """One OSD's canary; with ``osd`` ``None``, the whole probe's, while its OSDs are unknown."""

    config: RadosCanaryConfig
    access: CephAccess
    workload: RadosOps
    osds: tuple[ChosenOsd, ...]
    osd: ChosenOsd | None
    shared: _Shared = field(compare=False)
    locks = False
    apart: bool = False
    """Whether it uses a prefix of its own: at its start a worker removes all objects under its prefix."""

    @property
    def name(self) -> str:
        return self._label(self.osd) if self.osd else self.config.name

    def identities(self) -> tuple[Identity, ...]:
        """One; none if nothing can be measured yet."""
        if self.osd is None:
            return ()
        identity = Identity.of(
            self.config,
            self.workload,
            probe=self.name,
            device_class=self.osd.device_class,
            target=f"osd.{self.osd.number}",
            device=self.osd.device,
            cluster=True,
        )
        return (identity,)

    def plan(self, bounds: Bounds) -> RadosCanaryPlan:
        """The same for all OSDs of the probe: they start and stop together."""
        access, config = self.access.librados(), self.config
        host = socket.gethostname()
        return RadosCanaryPlan(
            name=config.name,
            # long enough to see an operation hang, instead of timing out at once
            access=replace(access, operation_timeout_s=max(access.operation_timeout_s, round(2 * config.stuck_after))),
            pool=config.pool or self.access.pool,
            namespace=NAMESPACE,
            prefix=f"{PREFIX}/{host}/{config.name}{APART if self.apart else ''}",
            host=host,
            words=config.osds,
            workload=self.workload,
            rate=config.rate,
            stuck_after_s=float(config.stuck_after),
            osds=tuple(OsdPlan(**structs.asdict(osd), bounds=self._bounds_of(osd, bounds)) for osd in self.osds),
        )

    def make(self, bounds: Bounds) -> OsdCanary:
        group = self.shared.make(self.plan(bounds))
        return OsdCanary(group, group.plan.osds[self.osds.index(self.osd)] if self.osd else None)

    def faster(self, factor: float, *, spare: bool = False) -> RadosCanaryJob:  # noqa: ARG002
        """On other objects than the daemon's."""
        return replace(
            self, config=structs.replace(self.config, rate=faster_rate(self.config.rate, factor)), apart=True
        )

    def _bounds_of(self, osd: ChosenOsd, bounds: Bounds) -> tuple[tuple[float, ...], ...]:
        workload = self.workload
        return tuple(bounds.get((self._label(osd), workload.id, operation), ()) for operation in workload.operations)

    def _label(self, osd: ChosenOsd) -> str:
        return f"{self.config.name}/osd.{osd.number}"


def build(config: RadosCanaryConfig, workload: RadosOps, host: Host) -> Plan:
    osds = look_up(config.osds, config.device_class, host)
    shared, access = _Shared(host.storage, host.cluster_osds()), CephAccess.of(host.ceph)
    jobs = [RadosCanaryJob(config, access, workload, osds, osd, shared) for osd in osds or (None,)]
    return Plan(continuous=tuple(jobs))
