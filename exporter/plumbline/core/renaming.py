"""renameat2(2): rename without replacing, and exchange two names; both in one step of the file system."""

from __future__ import annotations

import errno
import os

_NOREPLACE, _EXCHANGE = 1, 2
_LACKING = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""What a kernel or a file system (NFS, 9p, some FUSE) says that does not know a flag."""


def rename_new(name: str, new: str, directory: int) -> None:
    """Rename inside ``directory``, never over anything: :class:`FileExistsError`.

    Where the file system lacks the flag (NFS, some FUSE), the name is looked at first: what comes to stand there in
    between is replaced. A second name instead (link, then unlink) would stay: FUSE keeps both while the file is open.
    """
    if _renameat2(name, new, directory, _NOREPLACE):
        return
    try:
        os.stat(new, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(name, new, src_dir_fd=directory, dst_dir_fd=directory)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)


def exchange(name: str, other: str, directory: int) -> bool:
    """Exchange what two names in ``directory`` lead to. False, and nothing done, where the file system can't."""
    return _renameat2(name, other, directory, _EXCHANGE)


def _renameat2(name: str, new: str, directory: int, flag: int) -> bool:
    """Whether it was done; False where the flag is not known here. Every other failure is an :class:`OSError`."""
    import ctypes  # not light, and seldom needed  # noqa: PLC0415

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # a C library without it
        return False
    if call(directory, os.fsencode(name), directory, os.fsencode(new), ctypes.c_uint(flag)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _LACKING:
        return False
    raise OSError(number, os.strerror(number), name, None, new)
