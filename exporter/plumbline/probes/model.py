"""What every kind of probe is to the engine: an identity, a run that ends, a clean-up to be asked at any time.

A *periodic* probe is run by a schedule, one run after the other, and gives a :class:`.result.ProbeResult`. A
*continuous* one (the canaries) keeps a process of its own going and is only ever looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from plumbline.config.model import CephConfig
from plumbline.config.probes.base import Periodic
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.core.process import Runner
from plumbline.core.roots import Roots
from plumbline.probes.canary.reading import CanaryReading
from plumbline.probes.ceph.cluster_osds import ClusterOsds
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.net.routes import Way

Bounds = Mapping[tuple[str, str, str], tuple[float, ...]]
"""(probe, workload, operation) → the baseline's bounds in seconds, to be exact bucket edges."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which experiment a probe is. Figures of two identities are comparable when layer, device class, workload,
    operation and ``config_hash`` agree."""

    probe: str
    """The ``probe`` label: the configured name, and ``/`` and the target where there are several."""
    kind: str
    """The ``type`` in the configuration."""
    layer: str
    device_class: str
    workload: str
    operations: tuple[str, ...]
    config_hash: str
    tool: str
    """The program that measures; ``plumbline`` where it is ours."""
    target: str = ""
    """What is measured: ``osd.3``, ``sdb``, ``10.0.0.12``; empty: the node itself."""
    device: str = ""
    """The disk below, or the network port that is used, where that is known: it must not be busy."""
    rate_iops: float | None = None
    """A cap, part of ``config_hash`` already."""
    cluster: bool = False
    """It loads the Ceph cluster: the cluster's gates hold for it."""

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
        """What a run of this experiment found. ``started``: Unix seconds; ``duration``: seconds."""
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


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is, for whoever watches: ``done`` of 1, and a few live figures in words."""

    stage: str
    done: float | None = None
    figures: str = ""
    lasts_s: float | None = None
    """How long this stage takes, where that is known and nobody can say ``done``: who watches counts by the clock."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the engine gives a run. ``clock`` is Unix time in seconds."""

    runner: Runner
    """Ends what it started when the run is to stop."""
    clock: Callable[[], float]
    stopping: threading.Event
    """Set when the run must end at once: the daemon ends, or a gate closed."""
    keep_fds: tuple[int, ...] = ()
    """Descriptors of the locks: to be kept open in every command, so that a lock lasts as long as the last of them."""
    progress: Callable[[Progress], None] = field(default=lambda _progress: None)


@runtime_checkable
class PeriodicProbe(Protocol):
    """One kind's probe on this host. Equal ``config`` and ``identity``: the same probe, which goes on at a reload."""

    @property
    def identity(self) -> Identity:
        """Fixed for the probe's life."""
        ...

    @property
    def config(self) -> Periodic:
        """Schedule, timeout and limits."""
        ...

    @property
    def heavy(self) -> bool:
        """One heavy probe runs at a time in the cluster; a light one (a few hundred packets) beside others."""
        ...

    def run(self, run: Run) -> ProbeResult:
        """Prepare, measure, leave nothing but what the next run reuses.

        Raises :class:`ProbeRefused` when it must not run (nothing was touched) or was stopped (reason ``stopped``).
        What began and went wrong is a result with its outcome and message.
        """
        ...

    def clean_up(self, run: Run) -> None:
        """Remove what an earlier life left behind, if anything, and only ours; called once after a start."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What one entry of the configuration means on this host."""

    periodic: tuple[PeriodicProbe, ...] = ()
    continuous: tuple[ContinuousJob, ...] = ()

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.periodic + other.periodic, self.continuous + other.continuous)


class ContinuousJob(Protocol):
    """A canary as this host will run it, before it runs."""

    @property
    def name(self) -> str:
        """The ``probe`` label."""
        ...

    def identities(self) -> tuple[Identity, ...]:
        """One for each workload."""
        ...

    def plan(self, bounds: Bounds) -> object:
        """What the engine compares at a reload, with the baseline's bounds as exact bucket edges."""
        ...

    def make(self, bounds: Bounds) -> ContinuousProbe:
        """The canary, not started yet."""
        ...

    def hurried(self, factor: float) -> ContinuousJob:
        """The same for a person who waits for figures: so many times the pace, and in the way of no other that runs
        beside it."""
        ...


class ContinuousProbe(Protocol):
    """A canary: a process of its own that is never waited for. The engine compares ``plan`` at a reload."""

    @property
    def plan(self) -> object: ...

    @property
    def pid(self) -> int | None:
        """The worker's process id while there is one."""
        ...

    def start(self) -> None:
        """Start the first worker; waits for nothing."""
        ...

    def poll(self) -> None:
        """Once a second: notice a worker that ended, start the next."""
        ...

    def read(self) -> CanaryReading:
        """Everything known; from any thread, at once."""
        ...

    def stop(self, timeout: float = 1.0) -> bool:
        """End the worker; False when it is stuck in the kernel."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """What a kind may ask about this host while it is being planned; every answer is bounded in time."""

    storage: Path
    roots: Roots
    catalogue: WorkloadCatalogue
    ceph: CephConfig
    environment: Mapping[str, str]
    disk_below: Callable[[Path], BlockDevice | None]
    """``None`` where there is none, or it does not answer in time."""
    disks: Callable[[], tuple[BlockDevice, ...]]
    """All disks of this host as last read; may be empty."""
    osd_disks: Callable[[], Mapping[str, str]]
    """Disk → the OSD whose data it holds (``osd.3``)."""
    way_to: Callable[[str, str | None], Way | None] = lambda _host, _bind: None
    """Through which network device a host is reached from a local address (``None``: any); ``None``: not known."""
    cluster_osds: Callable[[], ClusterOsds | None] = field(default=lambda: None)
    """All OSDs of the cluster; ``None`` where it does not tell in time."""
    pool_class: Callable[[str], str | None] = lambda _pool: None
    """A Ceph pool → the class of the devices below; ``None`` where the cluster does not tell in time."""


class Lease(Protocol):
    """A lock of the cluster's that is held; asked as a gate while the run lasts."""

    def check(self) -> None:
        """Raise :class:`ProbeRefused` (``lock-lost``) as soon as it may be another's."""
        ...


class ClusterGuard(Protocol):
    """The cluster as probes see it; every call is bounded in time."""

    def check(self) -> None:
        """Raise :class:`ProbeRefused` while the cluster is unfit: ``health``, ``recovery``, ``unreachable`` …"""
        ...

    def hold(self, holder: str) -> AbstractContextManager[Lease]:
        """Hold the cluster's lock for heavy probes with a lease, or :class:`ProbeRefused` (``locked``)."""
        ...
