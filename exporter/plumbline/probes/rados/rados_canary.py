"""The RADOS canary: from its configuration to one canary for each OSD, all in one worker."""

import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from msgspec import structs

from plumbline.config.probes.ceph import RadosCanaryConfig
from plumbline.config.workloads import RadosOps
from plumbline.probes.canary.job import CanaryJob
from plumbline.probes.canary.pool import WorkerPool
from plumbline.probes.canary.target import INTERACTIVE, Bounds, Target
from plumbline.probes.ceph.ceph_access import NAMESPACE, CephAccess
from plumbline.probes.ceph.librados import Access
from plumbline.probes.ceph.osd_lookup import remember
from plumbline.probes.rados.osd_choice import ChosenOsd, look_up
from plumbline.probes.rados.rados_canary_worker import ADVICE, ERRORS, NOTES
from plumbline.probes.run.model import Host, Plan
from plumbline.probes.run.reading import WorkloadReading
from plumbline.sources.ceph.cluster_osds import ClusterOsds

PREFIX = "plumbline"  # Prefix of all the canaries' objects: plumbline/<host>/<probe>/osd.3/17

_NOT_SERVED = {
    "down": "the OSD is down",
    "out": "the OSD is out",
    "gone": "the cluster has no such OSD",
    "no-primary": "primary for no placement group of the pool: its CRUSH rule excludes the OSD, or pg_num is too low",
}


class OsdTarget(Target, frozen=True, kw_only=True):
    """Objects of ours whose primary is one OSD; without a ``target``, while the OSDs are unknown, the whole probe. All
    OSDs of a probe share a worker, so they start and stop together: each has the plan of all."""

    probe: str
    access: Access
    pool: str
    prefix: str
    host: str
    words: tuple[str, ...]
    object_size: int
    osds: tuple[ChosenOsd, ...]
    bounds: tuple[tuple[tuple[float, ...], ...], ...] = ()  # Of all OSDs, by operation

    kind = "rados-canary"
    worker = "plumbline.probes.rados.rados_canary_worker"
    reasons = ADVICE
    errors = ERRORS
    notes = {note: _NOT_SERVED[note] for note in NOTES[1:]}  # noqa: RUF012  (a ClassVar of its base)
    prepares = "connecting and choosing its objects"
    hangs_until = "the cluster answers"
    asked_share = 0.75  # it has objects to remove
    end_together = True
    cluster = True

    @property
    def where(self) -> str:
        return self.target or self.name

    def with_bounds(self, bounds: Bounds) -> Self:
        every = tuple(
            tuple(bounds.get((_label(self.probe, osd), workload.id, name), ()) for name in workload.operations)
            for osd in self.osds
            for workload, _ in self.workloads
        )
        return structs.replace(super().with_bounds(bounds), bounds=every)

    def interactive(self, *, spare: bool) -> Self:  # noqa: ARG002
        """On other objects: at its start a worker removes all objects below its prefix."""
        return structs.replace(self, prefix=f"{self.prefix}{INTERACTIVE}")

    def order(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in ("pool", "prefix", "host", "words", "object_size")}
        classes = [(osd.name, osd.crush_class) for osd in self.osds]
        return {**facts, "namespace": NAMESPACE, "access": asdict(self.access), "classes": dict(classes)}

    def failed(self, stream: WorkloadReading) -> str:
        kind = max(stream.errors, key=stream.errors.__getitem__)
        return f"{self.where}: the last {stream.operation} failed; the most frequent error is {kind}"


def build(config: RadosCanaryConfig, workload: RadosOps, host: Host) -> Plan:
    osds = look_up(config.osds, config.device_class, host)
    access, name = CephAccess.of(host.ceph), socket.gethostname()
    librados = access.librados()
    # long enough to see an operation hang, instead of timing out at once
    timeout_s = max(librados.operation_timeout_s, round(2 * config.stuck_after))
    whole = OsdTarget(
        name=config.name,
        workloads=(),
        device_class="",
        rate=config.rate,
        stuck_after_s=float(config.stuck_after),
        max_busy_ratio=1.0,  # a cluster serves many operations at once
        probe=config.name,
        access=replace(librados, operation_timeout_s=timeout_s),
        pool=config.pool or access.pool,
        prefix=f"{PREFIX}/{name}/{config.name}",
        host=name,
        words=config.osds,
        object_size=workload.object_size,
        osds=osds,
    )
    pool, before = WorkerPool(), _remembering(host.storage, host.cluster_osds())
    if not osds:
        return Plan(continuous=(CanaryJob(config, whole, "", pool, before),))
    jobs: list[CanaryJob] = []
    for osd in osds:
        target = structs.replace(
            whole,
            name=_label(config.name, osd),
            target=osd.name,
            device_class=osd.device_class,
            workloads=((workload, ()),),
        )
        jobs.append(CanaryJob(config, target, osd.device, pool, None if jobs else before))
    return Plan(continuous=tuple(jobs))


def _remembering(storage: Path, cluster: ClusterOsds | None) -> Callable[[], None] | None:
    return None if cluster is None else lambda: remember(storage, cluster)


def _label(probe: str, osd: ChosenOsd) -> str:
    return f"{probe}/{osd.name}"
