"""``statx(2)`` that queries the server: a network file system's cached attributes may be old, and prove nothing.

AT_STATX_FORCE_SYNC "forces the attributes to be synchronized with the server" (statx(2)); NFS, CephFS and FUSE honour
it, for a local file system it is ``stat``. Python has no statx before 3.15, the C library has it since glibc 2.28.

Light modules only, for workers.
"""

from __future__ import annotations

import ctypes
import os

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_STATX_FORCE_SYNC = 0x2000
_STATX_BASIC_STATS = 0x7FF
_STRUCT_BYTES = 256

_libc = ctypes.CDLL(None, use_errno=True)
_buffer = ctypes.create_string_buffer(_STRUCT_BYTES)


def stat_synced(name: str | bytes, dir_fd: int = _AT_FDCWD) -> None:
    """Query the attributes of ``name`` from the server itself; raises ``OSError``."""
    flags = _AT_SYMLINK_NOFOLLOW | _AT_STATX_FORCE_SYNC
    if _libc.statx(dir_fd, os.fsencode(name), flags, _STATX_BASIC_STATS, _buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
