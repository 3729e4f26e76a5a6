"""The canary on a mounted file system: from its configuration to one job. Its worker alone touches the file system."""

from pathlib import Path
from typing import Any

from plumbline.config.probes.filesystem import FilesystemCanaryConfig
from plumbline.config.workloads import FileOps
from plumbline.probes.canary.job import CanaryJob
from plumbline.probes.canary.target import FileTarget
from plumbline.probes.filesystem import mount_place
from plumbline.probes.filesystem.filesystem_canary_worker import ERRORS
from plumbline.probes.filesystem.place import place_of
from plumbline.probes.run import guard
from plumbline.probes.run.model import Host, Plan

MAX_BUSY_RATIO = 0.05  # of one operation at a time: a file system serves many, mostly from many disks


class MountTarget(FileTarget, frozen=True, kw_only=True):
    """A file of ours on a mount. ``filesystem``: the type that it must have; ``sys``: to ask for ZFS."""

    filesystem: str
    direct: bool
    sys: Path

    kind = "filesystem-canary"
    worker = "plumbline.probes.filesystem.filesystem_canary_worker"
    reasons = guard.ADVICE | mount_place.ADVICE
    errors = ERRORS

    def order(self) -> dict[str, Any]:
        return {
            "directory": str(self.directory),
            "filesystem": self.filesystem,
            "direct": self.direct,
            "sys": str(self.sys),
        }


def build(config: FilesystemCanaryConfig, workload: FileOps, host: Host) -> Plan:
    directory = config.directory_in(host.storage)
    filesystem, device, mounted = place_of(directory, config.filesystem, host)
    target = MountTarget(
        name=config.name,
        workloads=((workload, ()),),
        device_class=config.device_class or filesystem or "unknown",
        rate=config.rate,
        stuck_after_s=float(config.stuck_after),
        max_busy_ratio=MAX_BUSY_RATIO,
        directory=directory,
        file_size_bytes=int(config.file_size),
        filesystem=config.filesystem or "",
        direct=workload.direct,
        sys=host.roots.sys,
        provisional=not mounted,
    )
    return Plan(continuous=(CanaryJob(config, target, device),))
