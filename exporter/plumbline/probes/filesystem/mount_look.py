"""Whether a mounted file system answers, checked in a separate process, because a dead one may hang its caller.

``main([path])`` queries the free space (NFS, FUSE and GlusterFS ask their server, CephFS its monitors) and the
directory's attributes (CephFS asks its metadata server), and prints one JSON document: ``{"mount_id": 36}``, or
``{"errno": 107, "error": "Transport endpoint is not connected"}``. For a path that does not exist yet, the parent in
which it would be created is checked.

Light modules only: every mount is checked twice a minute.
"""

from __future__ import annotations

import errno
import os
import sys

from plumbline.core.kernel import read_kernel
from plumbline.probes.filesystem.statx import stat_synced

DEAD = frozenset(
    {
        errno.ESTALE,
        errno.ENOTCONN,
        errno.EIO,
        errno.ETIMEDOUT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.ESHUTDOWN,
        errno.ENODEV,
        errno.ENOTBLK,
    }
)
"""Errors of a mount whose server is gone. Any other error (no permission) counts as an answer."""


def main(argv: list[str]) -> int:
    """Check ``argv[0]`` and print the result; always 0."""
    try:
        say = f'{{"mount_id": {look(argv[0])}}}'
    except OSError as error:
        text = os.strerror(error.errno or 0).replace("\\", "\\\\").replace('"', '\\"')
        say = f'{{"errno": {error.errno or 0}, "error": "{text}"}}'
    sys.stdout.write(say + "\n")
    return 0


def look(path: str) -> int:
    """The id of the mount that ``path`` (or else its parent) is on, once it has answered; ``OSError``."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = os.open(os.path.dirname(path) or "/", os.O_PATH | os.O_CLOEXEC)  # noqa: PTH120  (pathlib is not light)
    here = f"/proc/self/fd/{descriptor}"
    os.statvfs(here)
    stat_synced(".", descriptor) if os.path.isdir(here) else None  # noqa: PTH112
    lines = read_kernel(f"/proc/self/fdinfo/{descriptor}").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(b"mnt_id:"))
