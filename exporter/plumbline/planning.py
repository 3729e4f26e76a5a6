"""From a configuration to the probes of this host.

A *plan* is what the configuration means here: where a probe works, which device lies below, which class that device
is. Plans are compared at a reload, so that a probe whose plan did not change goes on undisturbed, with its histogram
and its phase.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from plumbline.baseline.model import Target
from plumbline.config import Config
from plumbline.errors import PlumblineError
from plumbline.probe_config import CanaryConfig, FilesystemConfig, FioConfig
from plumbline.probes.canary_job import CanaryJob
from plumbline.probes.fio import FioProbe
from plumbline.probes.kinds import KINDS
from plumbline.probes.model import ContinuousJob, Host, Identity, PeriodicProbe, Plan
from plumbline.probes.pool_class import ask_pool_class
from plumbline.roots import Roots
from plumbline.sources.block import BlockDevice, device_below, read_block_devices
from plumbline.sources.diskusers import read_disk_users
from plumbline.workloads import WorkloadCatalogue

log = logging.getLogger(__name__)

DISKS_ANSWER_WITHIN_S = 1.5
"""What all disks below the probes get to say what they are; one that hangs must not hang a start or a reload."""

T = TypeVar("T")
_DISKS = Path("all disks")
"""What is asked when it is no directory."""


@dataclass(frozen=True, slots=True)
class ProbingPlan:
    """All probes of a configuration on this host."""

    periodic: tuple[PeriodicProbe, ...] = ()
    continuous: tuple[ContinuousJob, ...] = ()

    @property
    def canaries(self) -> tuple[CanaryJob, ...]:
        """Those that work in a file of their own."""
        return tuple(job for job in self.continuous if isinstance(job, CanaryJob))

    @property
    def fio(self) -> tuple[FioProbe, ...]:
        """Those that run fio in a directory."""
        return tuple(probe for probe in self.periodic if isinstance(probe, FioProbe))

    def targets(self) -> tuple[Target, ...]:
        """Everything that is measured here, for the choice of baselines."""
        return tuple(target for each in self.identities() for target in _targets(each))

    def identities(self) -> tuple[Identity, ...]:
        """Every experiment."""
        continuous = (each for job in self.continuous for each in job.identities())
        return (*continuous, *(probe.identity for probe in self.periodic))


def make_plan(
    config: Config,
    *,
    storage: Path,
    roots: Roots,
    catalogue: WorkloadCatalogue,
    environment: Mapping[str, str],
) -> ProbingPlan:
    """What ``config`` means on this host. Raises :class:`ConfigError` for what no host could run."""
    wanted = [probe for probe in config.probes if probe.enabled]
    directories = {
        Path(probe.directory or storage / probe.name)
        for probe in wanted
        if isinstance(probe, CanaryConfig | FioConfig | FilesystemConfig)
    }
    below = _ask_each(directories, lambda directory: device_below(directory, roots))
    host = Host(
        storage=storage,
        roots=roots,
        catalogue=catalogue,
        ceph=config.ceph,
        environment=environment,
        disk_below=below.get,
        disks=_Once[tuple[BlockDevice, ...]](
            lambda: read_block_devices(roots, on_skip=lambda _name, _reason: None), otherwise=()
        ),
        osd_disks=_Once[Mapping[str, str]](lambda: read_disk_users(roots).osds(), otherwise={}),
        pool_class=functools.cache(lambda pool: ask_pool_class(pool, config.ceph, environment)),
    )
    whole = Plan()
    for probe in wanted:
        whole += KINDS[type(probe)](probe, host)
    return ProbingPlan(whole.periodic, whole.continuous)


def _targets(identity: Identity) -> list[Target]:
    return [
        Target(
            probe=identity.probe,
            layer=identity.layer,
            device_class=identity.device_class,
            workload=identity.workload,
            operation=operation,
            config_hash=identity.config_hash,
            rate_iops=identity.rate_iops,
            device=identity.device,
        )
        for operation in identity.operations
    ]


class _Once(Generic[T]):
    """Something read when somebody wants it, and then kept; ``otherwise`` where it does not answer in time."""

    def __init__(self, read: Callable[[], T], *, otherwise: T) -> None:
        self._read, self._otherwise = read, otherwise
        self._known: T | None = None

    def __call__(self) -> T:
        if self._known is None:
            self._known = _ask_each({_DISKS}, lambda _path: self._read()).get(_DISKS, self._otherwise)
        return self._known


def _ask_each(paths: set[Path], ask: Callable[[Path], T]) -> dict[Path, T]:
    """The answer for each path, side by side; absent where there is none in time."""
    found: dict[Path, T] = {}

    def one(path: Path) -> None:
        try:
            found[path] = ask(path)
        except PlumblineError as error:
            log.debug("%s", error)

    asking = {path: threading.Thread(target=one, args=(path,), daemon=True) for path in sorted(paths)}
    for thread in asking.values():
        thread.start()
    deadline = time.monotonic() + DISKS_ANSWER_WITHIN_S
    for path, thread in asking.items():
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.warning("%s: the disk below does not answer; its class is unknown until the next reload", path)
    return dict(found)
