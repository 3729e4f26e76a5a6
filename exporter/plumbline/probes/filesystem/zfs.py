"""ZFS and O_DIRECT: older releases of OpenZFS accept the flag but use their cache anyway."""

import os
import re

from plumbline.core.kernel import read_kernel

_DIRECT_SINCE = (2, 3)


def zfs_release(version: str) -> tuple[int, int] | None:
    """Major and minor release of ``2.1.11-1`` (``/sys/module/zfs/version``)."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", version, re.ASCII)
    return (int(match[1]), int(match[2])) if match else None


def ignores_direct(sysfs: str | os.PathLike[str]) -> str:
    """The name of this host's ZFS if it ignores O_DIRECT; empty if it honours it."""
    try:
        path = f"{os.fspath(sysfs)}/module/zfs/version"
        version = read_kernel(path).decode("ascii", "replace").strip()[:40]
    except OSError:
        version = ""
    release = zfs_release(version)
    if release is not None and release >= _DIRECT_SINCE:
        return ""
    return f"OpenZFS {version}" if version else "this release of ZFS"
