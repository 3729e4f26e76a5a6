"""The interface between the engine and every kind of probe: an identity, a bounded run, and a clean-up callable at any
time.

The schedule runs a *periodic* probe, one run after the other; each run returns a :class:`.result.ProbeResult`. A
*continuous* probe (a canary) keeps its own process running, and the engine only reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from plumbline.config.model import CephConfig
from plumbline.config.probes.base import Periodic, ProbeBase
from plumbline.config.workloads import Workload, WorkloadCatalogue
from plumbline.core.process import Runner
from plumbline.core.roots import Roots
from plumbline.probes.run.reading import CanaryReading
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.sources.ceph.cluster_osds import ClusterOsds
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.net.routes import Way

Bounds = Mapping[tuple[str, str, str], tuple[float, ...]]
"""(probe, workload, operation) → the baseline's bounds in seconds; they become exact bucket edges."""


class Identity(Struct, frozen=True):
    """Which experiment a probe is. Results of two identities are comparable when layer, device class, workload,
    operation and ``config_hash`` are equal."""

    probe: str  # The probe label: the configured name, followed by / and the target if there are several
    kind: str  # The type in the configuration
    layer: str
    device_class: str
    workload: str
    operations: tuple[str, ...]
    config_hash: str
    tool: str  # The program that measures; plumbline for built-in probes
    target: str = ""  # What is measured: osd.3, sdb, 10.0.0.12; empty for the node itself
    device: str = ""  # The underlying disk or the network port in use, if known: it must not be busy
    rate_iops: float | None = None  # A rate limit; already part of config_hash
    cluster: bool = False  # Whether the probe loads the Ceph cluster, so that the cluster's gates apply

    @classmethod
    def of(
        cls,
        config: ProbeBase,
        workload: Workload,
        *,
        device_class: str,
        probe: str = "",
        tool: str = "plumbline",
        target: str = "",
        device: str = "",
        rate_iops: float | None = None,
        cluster: bool = False,
    ) -> Identity:
        """``probe`` defaults to the configured name: one target."""
        return cls(
            probe=probe or config.name,
            kind=config.kind,
            layer=workload.layer,
            device_class=device_class,
            workload=workload.id,
            operations=workload.operations,
            config_hash=workload.config_hash(rate_iops=rate_iops),
            tool=tool,
            target=target,
            device=device,
            rate_iops=rate_iops,
            cluster=cluster,
        )

    def result(
        self,
        *,
        tool_version: str,
        started: float,
        duration: float,
        outcome: Outcome,
        operations: tuple[OperationResult, ...] = (),
        message: str = "",
    ) -> ProbeResult:
        """The result of one run of this experiment. ``started``: Unix seconds; ``duration``: seconds."""
        return ProbeResult(
            probe=self.probe,
            layer=self.layer,
            device_class=self.device_class,
            workload=self.workload,
            config_hash=self.config_hash,
            tool=self.tool,
            tool_version=tool_version,
            started=started,
            duration=duration,
            outcome=outcome,
            operations=operations,
            message=message,
        )


class Progress(Struct, frozen=True):
    """Progress of a run: ``done`` as a fraction of 1, and a few live figures as text."""

    stage: str
    done: float | None = None
    figures: str = ""
    lasts_s: float | None = None
    """Duration of this stage, if known and ``done`` is not: the display then estimates progress from the clock."""


class Run(Struct, frozen=True):
    """What the engine passes to a run. ``clock`` is Unix time in seconds."""

    runner: Runner  # Ends the commands it started when the run must stop
    clock: Callable[[], float]
    stopping: threading.Event  # Set when the run must end at once: the daemon is stopping, or a gate closed
    keep_fds: tuple[int, ...] = ()
    """Lock descriptors; every command keeps them open, so that a lock lasts until its last holder exits."""
    progress: Callable[[Progress], None] = field(default=lambda _progress: None)


@runtime_checkable
class PeriodicProbe(Protocol):
    """One kind's probe on this host. A reload keeps a probe whose ``config`` and ``identity`` are unchanged."""

    @property
    def identity(self) -> Identity:
        """Constant for the probe's lifetime."""

    @property
    def config(self) -> Periodic:
        """Schedule, timeout and limits."""

    @property
    def heavy(self) -> bool:
        """Only one heavy probe runs in the cluster at a time; a light one (a few hundred packets) may run beside it."""

    def run(self, run: Run) -> ProbeResult:
        """Prepare, measure, and leave behind only what the next run reuses. Raises :class:`ProbeRefused` if the probe
        must not run (nothing was touched) or was stopped (reason ``stopped``). A run that started and failed returns a
        result with its outcome and message."""

    def clean_up(self, run: Run) -> None:
        """Remove anything of ours that an earlier process left behind; called once after a start."""


class Plan(Struct, frozen=True):
    """What one entry of the configuration means on this host."""

    periodic: tuple[PeriodicProbe, ...] = ()
    continuous: tuple[ContinuousJob, ...] = ()

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.periodic + other.periodic, self.continuous + other.continuous)


class ContinuousJob(Protocol):
    """A planned canary on this host, before it runs."""

    @property
    def name(self) -> str:
        """The ``probe`` label."""

    def identities(self) -> tuple[Identity, ...]:
        """One per workload."""

    def plan(self, bounds: Bounds) -> object:
        """What the engine compares at a reload; the baseline's bounds are exact bucket edges."""

    def make(self, bounds: Bounds) -> ContinuousProbe:
        """The canary, not yet started."""

    @property
    def locks(self) -> bool:
        """Whether its worker locks its place. If not, interactive runs exclude each other by a lock of the node's."""

    def faster(self, factor: float, *, spare: bool = False) -> ContinuousJob:
        """The same job for an interactive run: ``factor`` times the rate, without disturbing others. ``spare``: in
        another place, as the daemon's canary has locked the first one."""


class ContinuousProbe(Protocol):
    """A canary: a separate process that is never waited for. The engine compares ``plan`` at a reload."""

    @property
    def plan(self) -> object: ...

    @property
    def pid(self) -> int | None:
        """The worker's process id, or ``None`` without a worker."""

    def start(self) -> None:
        """Start the first worker; does not block."""

    def poll(self) -> None:
        """Called once a second: detect a worker that ended and start the next."""

    def read(self) -> CanaryReading:
        """All current data; callable from any thread, never blocks."""

    def stop(self, timeout: float = 1.0) -> bool:
        """End the worker; False if it is stuck in the kernel."""


class Host(Struct, frozen=True):
    """What a kind may query about this host during planning; every answer is bounded in time."""

    storage: Path
    roots: Roots
    catalogue: WorkloadCatalogue
    ceph: CephConfig
    environment: Mapping[str, str]
    disk_below: Callable[[Path], BlockDevice | None]  # None if there is no disk, or it does not answer in time
    disks: Callable[[], tuple[BlockDevice, ...]]  # All disks of this host as last read; may be empty
    osd_disks: Callable[[], Mapping[str, str]]  # Disk → the OSD that stores its data there (osd.3)
    way_to: Callable[[str, str | None], Way | None] = lambda _host, _bind: None
    """The network device that leads to a host from a local address (``None``: any); ``None`` if unknown."""
    cluster_osds: Callable[[], ClusterOsds | None] = field(default=lambda: None)
    """All OSDs of the cluster; ``None`` if it does not answer in time."""
    pool_class: Callable[[str], str | None] = lambda _pool: None
    """A Ceph pool → its device class; ``None`` if the cluster does not answer in time."""


class Lease(Protocol):
    """A held lock in the cluster; checked as a gate during the run."""

    def check(self) -> None:
        """Raise :class:`ProbeRefused` (``lock-lost``) as soon as another process may hold it."""


class ClusterGuard(Protocol):
    """The cluster as probes see it; every call is bounded in time."""

    def check(self) -> None:
        """Raise :class:`ProbeRefused` while the cluster is unfit: ``health``, ``recovery``, ``unreachable`` …"""

    def hold(self, holder: str) -> AbstractContextManager[Lease]:
        """Hold the cluster's lock for heavy probes with a lease; raises :class:`ProbeRefused` (``locked``)."""
