"""The configuration of probes of mounted file systems."""

import re
import socket
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from plumbline.config.probes.base import FioFiles, OneWorkload, ProbeBase
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import BlockWorkload, FileOps, Metadata, Workload

_FILESYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class FilesystemConfig(FioFiles, frozen=True, kw_only=True, tag_field="type", tag="filesystem"):
    """A mounted file system (CephFS, GlusterFS, LizardFS, Lustre, ZFS, NFS …): fio, or files created and removed."""

    layer: ClassVar[str] = "filesystem"
    runs: ClassVar[tuple[type[Workload], ...]] = (BlockWorkload, Metadata)
    remote: ClassVar[bool] = True

    directory: str
    """A directory of our own on it: new, empty, or marked by an earlier run."""
    filesystem: str | None = None
    """Its type as the kernel lists it (`ceph`, `fuse.glusterfs`, `nfs4`, `lustre`, `zfs`, `xfs` …): the probe is
    refused while the directory is on any other. ``None``: any but the root file system."""
    workload: str = "fs-randwrite-4k-qd1-j1"
    """A catalogue id of a block workload in the layer `filesystem`, or of kind `metadata`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_place(self, self.directory, self.filesystem)

    def directory_in(self, storage: Path) -> Path:  # noqa: ARG002
        return Path(self.directory)


class FilesystemCanaryConfig(OneWorkload, frozen=True, kw_only=True, tag_field="type", tag="filesystem-canary"):
    """The canary on a mounted file system (CephFS, NFS …): blocks written with `fsync` and read, in a file of ours.

    It keeps a file open: before you unmount the file system, stop the daemon or switch the canary off and reload."""

    layer: ClassVar[str] = "filesystem"
    runs: ClassVar[tuple[type[Workload], ...]] = (FileOps,)
    remote: ClassVar[bool] = True

    directory: str
    """An existing directory on it that this service's user may write to. Each host works in a directory of its own
    below it, named after the host, so that all hosts may have the same configuration."""
    filesystem: str | None = None
    """Its type as the kernel lists it, as for `filesystem`. ``None``: any but the root file system."""
    workload: str = "fs-ops-4k"
    """A catalogue id of kind `file-ops`; one that ends in `-buffered` where the file system has no O_DIRECT."""
    file_size: Size = Size(16 * 2**20)
    """At least 1MiB."""
    rate: Annotated[float, Meta(gt=0, le=100)] = 1.0
    """Operations a second, writes and reads together; fewer if they would take more than 5 % of the time."""
    stuck_after: Duration = Duration(10.0)
    """An operation in flight for longer sets ``plumbline_probe_success`` to 0; at least 1s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_place(self, self.directory, self.filesystem)
        if self.file_size < 2**20:
            raise self.mistake("file_size", "at least 1MiB")

    def directory_in(self, storage: Path) -> Path:  # noqa: ARG002
        return Path(self.directory) / socket.gethostname()

    def check_workload(self, workload: FileOps) -> None:
        self.check_holds_block("file_size", workload.block_size)


def _check_place(probe: ProbeBase, directory: str, filesystem: str | None) -> None:
    if not directory.startswith("/") or ".." in directory.split("/"):
        raise probe.mistake("directory", "expected an absolute path")
    if filesystem is not None and not _FILESYSTEM.fullmatch(filesystem):
        raise probe.mistake("filesystem", "expected a type as in /proc/filesystems or mount's output")
