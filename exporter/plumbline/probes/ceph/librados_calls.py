"""The C prototypes behind ``librados.py``.

https://github.com/ceph/ceph/blob/main/src/include/rados/librados.h
"""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ssize_t, c_uint8, c_uint64, c_void_p
from typing import Any

from plumbline.errors import Unavailable

LIBRARY = "librados.so.2"


class Timeval(ctypes.Structure):
    """``struct timeval``."""

    _fields_ = (("tv_sec", ctypes.c_long), ("tv_usec", ctypes.c_long))


_OUT = POINTER(c_void_p)
_CALLS: dict[str, tuple[Any, ...]] = {
    "rados_create2": (c_int, _OUT, c_char_p, c_char_p, c_uint64),
    "rados_conf_read_file": (c_int, c_void_p, c_char_p),
    "rados_conf_set": (c_int, c_void_p, c_char_p, c_char_p),
    "rados_conf_get": (c_int, c_void_p, c_char_p, c_char_p, c_size_t),
    "rados_connect": (c_int, c_void_p),
    "rados_shutdown": (None, c_void_p),
    "rados_mon_command": (
        c_int, c_void_p, POINTER(c_char_p), c_size_t, c_char_p, c_size_t,
        _OUT, POINTER(c_size_t), _OUT, POINTER(c_size_t),
    ),
    "rados_buffer_free": (None, c_void_p),
    "rados_ioctx_create": (c_int, c_void_p, c_char_p, _OUT),
    "rados_ioctx_destroy": (None, c_void_p),
    "rados_ioctx_set_namespace": (None, c_void_p, c_char_p),
    "rados_set_pool_full_try": (None, c_void_p),
    "rados_write_full": (c_int, c_void_p, c_char_p, c_char_p, c_size_t),
    "rados_read": (c_int, c_void_p, c_char_p, c_char_p, c_size_t, c_uint64),
    "rados_remove": (c_int, c_void_p, c_char_p),
    "rados_nobjects_list_open": (c_int, c_void_p, _OUT),
    "rados_nobjects_list_next": (c_int, c_void_p, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_char_p)),
    "rados_nobjects_list_close": (None, c_void_p),
    "rados_aio_create_completion2": (c_int, c_void_p, c_void_p, _OUT),
    "rados_aio_remove": (c_int, c_void_p, c_char_p, c_void_p),
    "rados_aio_wait_for_complete": (c_int, c_void_p),
    "rados_aio_get_return_value": (c_int, c_void_p),
    "rados_aio_release": (None, c_void_p),
    "rados_lock_exclusive": (
        c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_char_p, POINTER(Timeval), c_uint8,
    ),
    "rados_unlock": (c_int, c_void_p, c_char_p, c_char_p, c_char_p),
    "rados_list_lockers": (
        c_ssize_t, c_void_p, c_char_p, c_char_p, POINTER(c_int), *(c_char_p, POINTER(c_size_t)) * 4,
    ),
}  # fmt: skip


def load(library: str = LIBRARY) -> ctypes.CDLL:
    """The library with typed prototypes of the calls used here. Raises :class:`Unavailable` if it is missing or old."""
    try:
        handle = ctypes.CDLL(library)
    except OSError:
        raise Unavailable(f"{library} is not installed (package librados2)") from None
    for name, (result, *arguments) in _CALLS.items():
        try:
            function = getattr(handle, name)
        except AttributeError:
            raise Unavailable(f"{library} has no {name}: Ceph 16 or newer is needed") from None
        function.restype, function.argtypes = result, arguments
    return handle


def release(library: ctypes.CDLL) -> str:
    """Ceph's release of the library: ``16.2.15``; empty if it can't be told.

    ``rados_version()`` is no help: it numbers the interface, 3.0.0 from Ceph 14 to 20.
    """
    try:
        version = library["_Z19ceph_version_to_strv"]  # C++: const char *ceph_version_to_str(), in libceph-common
    except AttributeError:
        return ""
    version.restype, version.argtypes = c_char_p, ()
    return (version() or b"").decode(errors="replace")


def check(code: int, where: str) -> int:
    """The return value of a call; raises ``OSError`` about ``where`` if it is negative."""
    if code < 0:
        raise OSError(-code, os.strerror(-code), where)
    return code
