"""Whether a mounted file system answers, checked in a separate process, because a dead one may hang its caller.

``main([path])`` queries the free space (NFS, FUSE and GlusterFS ask their server, CephFS its monitors) and the
directory's attributes (CephFS asks its metadata server), and prints one JSON document: ``{"mount_id": 36}``, or
``{"errno": 107, "error": "Transport endpoint is not connected"}``. For a path that does not exist yet, the parent in
which it would be created is checked.

Light modules only: every mount is checked twice a minute.
"""

import ctypes
import errno
import os
import sys

from plumbline.core.kernel import read_kernel

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_STATX_FORCE_SYNC = 0x2000
_STATX_BASIC_STATS = 0x7FF
_STRUCT_BYTES = 256

_libc = ctypes.CDLL(None, use_errno=True)
_buffer = ctypes.create_string_buffer(_STRUCT_BYTES)

DEAD = frozenset({
    errno.ESTALE, errno.EIO, errno.ENODEV, errno.ENOTBLK, errno.ESHUTDOWN, errno.ENOTCONN, errno.ETIMEDOUT,
    errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED,
})  # fmt: skip
"""Errors of a mount whose server is gone. Any other error (no permission) counts as an answer."""


def main(argv: list[str]) -> int:
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


def stat_synced(name: str | bytes, dir_fd: int = _AT_FDCWD) -> None:
    """Query the attributes of ``name`` from the server itself by ``statx(2)``; raises ``OSError``. A network file
    system's cached attributes may be old, and prove nothing. AT_STATX_FORCE_SYNC "forces the attributes to be
    synchronized with the server"; NFS, CephFS and FUSE honour it, for a local file system it is ``stat``. Python has no
    statx before 3.15, the C library has it since glibc 2.28."""
    flags = _AT_SYMLINK_NOFOLLOW | _AT_STATX_FORCE_SYNC
    if _libc.statx(dir_fd, os.fsencode(name), flags, _STATX_BASIC_STATS, _buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
