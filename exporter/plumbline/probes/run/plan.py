"""From a configuration to the probes of this host.

A *plan* is what the configuration means here: where a probe works, which device lies below, and that device's class.
Plans are compared at a reload, so that a probe whose plan did not change goes on undisturbed, with its histogram and
its phase.
"""

import functools
import ipaddress
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from plumbline.baseline.model import Target
from plumbline.config.model import DOCUMENTED_CLASSES, DOCUMENTED_PROBE, Config
from plumbline.config.workloads import load_catalogue
from plumbline.core.answers import ask_side_by_side
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.probes.ceph.osd_lookup import ask_cluster, ask_pool_class
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import Host, Identity, PeriodicProbe, Plan
from plumbline.sources.disk.block import BlockDevice, device_below, read_block_devices
from plumbline.sources.disk.diskusers import read_disk_users
from plumbline.sources.kernel.mounts import is_remote, mount_named, own_mounts
from plumbline.sources.net.routes import Way, read_way, resolve

log = logging.getLogger(__name__)

# time limit for all disks below the probes, then for all peers' names: one that hangs must not block a start or reload
ANSWER_WITHIN_S = 1.5

T = TypeVar("T")
# the key for a question that is not about one directory
_DISKS = Path("all disks")
K = TypeVar("K", bound=Hashable)


class ProbingPlan(Plan, frozen=True):
    reported: tuple[Identity, ...] = ()  # Run by other processes, which leave their results in the storage path

    def targets(self) -> tuple[Target, ...]:
        return tuple(target for identity in self.identities() for target in targets_of(identity))

    def identities(self) -> tuple[Identity, ...]:
        continuous = (identity for job in self.continuous for identity in job.identities())
        return (*continuous, *(probe.identity for probe in self.periodic), *self.reported)


def make_plan(
    config: Config,
    *,
    storage: Path,
    roots: Roots,
    environment: Mapping[str, str],
    disks_before: tuple[BlockDevice, ...] = (),
) -> ProbingPlan:
    """What ``config`` means on this host. Raises :class:`ConfigError` for what no host could run. ``disks_before``: the
    disks as last read, used if one of them hangs now: its probes must continue unchanged."""
    enabled = [probe for probe in config.probes if probe.enabled]
    directories = {
        directory
        for probe in enabled
        if (directory := probe.directory_in(storage)) is not None
        and not (probe.remote and not _on_this_host(str(directory), roots))
    }
    ways: dict[tuple[str, str | None], Way] = _ask_each(
        {peer for probe in enabled for peer in probe.peers()}, lambda peer: _way(*peer, roots), what="the way there"
    )
    below = _ask_each(directories, lambda directory: device_below(directory, roots))
    host = Host(
        storage=storage,
        roots=roots,
        catalogue=load_catalogue(),
        ceph=config.ceph,
        environment=environment,
        disk_below=below.get,
        disks=functools.cache(
            lambda: _in_time(partial(read_block_devices, roots, on_skip=lambda *_: None), otherwise=disks_before)
        ),
        osd_disks=functools.cache(lambda: _in_time(lambda: read_disk_users(roots).osds(), otherwise=dict[str, str]())),
        way_to=lambda name, bind: ways.get((name, bind)),
        cluster_osds=functools.cache(lambda: ask_cluster(config.ceph, environment)),
        pool_class=functools.cache(lambda pool: ask_pool_class(pool, config.ceph, environment)),
    )
    whole = sum((plan_probe(probe, host) for probe in enabled), Plan())
    return ProbingPlan(tuple(filter(_wanted, whole.periodic)), whole.continuous)


def _wanted(probe: PeriodicProbe) -> bool:
    """The default probe that a document is compared with runs only where a document has something to compare."""
    return probe.config != DOCUMENTED_PROBE or probe.identity.device_class in DOCUMENTED_CLASSES


def _on_this_host(directory: str, roots: Roots) -> bool:
    """Whether the directory is on a local disk: a remote file system is not queried, its server may be dead."""
    try:
        mount = mount_named(directory, own_mounts(roots))
    except PlumblineError:
        return False
    return mount is not None and not is_remote(mount.filesystem)


def targets_of(identity: Identity) -> list[Target]:
    """What a probe measures, one target for each operation."""
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


def recordable(plan: ProbingPlan) -> frozenset[str]:
    """Names of the probes for which ``plumbline baseline record`` makes a baseline."""
    periodic = (probe.identity.probe for probe in plan.periodic if not not_recordable((probe.identity,)))
    return frozenset((*periodic, *(job.name for job in plan.continuous if not not_recordable(job.identities()))))


def not_recordable(identities: Sequence[Identity]) -> str:
    """Why a probe can have no baseline; empty if it can."""
    if not identities:
        return "its targets are unknown: this host has none of the OSDs it names, or the cluster does not answer"
    if identities[0].kind == "path-mtu":
        return "a path MTU needs no baseline: it is either right or wrong"
    return ""


def _in_time(ask: Callable[[], T], *, otherwise: T) -> T:
    """The answer, or ``otherwise`` if there is none in time."""
    return _ask_each({_DISKS}, lambda _path: ask()).get(_DISKS, otherwise)


def _way(host: str, bind: str | None, roots: Roots) -> Way:
    local = None if bind is None else ipaddress.ip_address(bind)
    version = None if local is None else local.version
    return read_way(resolve(host, version=version, within_s=ANSWER_WITHIN_S), local, roots)


def _ask_each(subjects: Iterable[K], ask: Callable[[K], T], *, what: str = "the disk below") -> dict[K, T]:
    """The answers by subject, asked in parallel; absent if there is none in time."""

    def ask_or_skip(subject: K) -> list[T]:
        try:
            return [ask(subject)]
        except PlumblineError as error:
            log.debug("%s", error)
            return []

    asks = {subject: partial(ask_or_skip, subject) for subject in sorted(subjects, key=str)}
    answered, silent = ask_side_by_side(asks, ANSWER_WITHIN_S)
    for subject in sorted(silent, key=str):
        log.warning("%s: %s does not answer; its class is unknown until the next reload", subject, what)
    return {subject: answer for subject, answers in answered.items() for answer in answers}
