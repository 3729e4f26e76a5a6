"""renameat2(2): rename without replacing, and exchange two names, each atomically."""

import errno
import os

_NOREPLACE, _EXCHANGE = 1, 2
# Errors from a kernel or file system (NFS, 9p, some FUSE) that does not support a flag.
_LACKING = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def rename_new(name: str, new: str, directory: int) -> None:
    """Rename inside ``directory``; :class:`FileExistsError` if ``new`` exists. On a file system without the flag the
    name is checked first, so a file this user creates in between is replaced. (Hard links would close that gap but open
    another: FUSE goes on reporting two names for a while.)"""
    if _renameat2(name, new, directory, _NOREPLACE):
        return
    try:
        os.stat(new, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(name, new, src_dir_fd=directory, dst_dir_fd=directory)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)


def exchange(name: str, other: str, directory: int) -> bool:
    """Exchange two names in ``directory``. False, with nothing changed, if the file system can't."""
    return _renameat2(name, other, directory, _EXCHANGE)


def _renameat2(name: str, new: str, directory: int, flag: int) -> bool:
    """Whether it was done; False if the flag is not supported. Raises :class:`OSError` for any other failure."""
    import ctypes  # not light, and seldom needed  # noqa: PLC0415

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # a C library without renameat2
        return False
    if call(directory, os.fsencode(name), directory, os.fsencode(new), ctypes.c_uint(flag)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _LACKING:
        return False
    raise OSError(number, os.strerror(number), name, None, new)
