"""The configuration of probes of mounted file systems."""

import re
from pathlib import Path
from typing import ClassVar

from plumbline.config.probes.base import FioFiles
from plumbline.config.workloads import BlockWorkload, Metadata, Workload

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
        if not self.directory.startswith("/") or ".." in self.directory.split("/"):
            raise self.mistake("directory", "expected an absolute path")
        if self.filesystem is not None and not _FILESYSTEM.fullmatch(self.filesystem):
            raise self.mistake("filesystem", "expected a type as in /proc/filesystems or mount's output")

    def directory_in(self, storage: Path) -> Path:  # noqa: ARG002
        return Path(self.directory)
