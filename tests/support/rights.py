"""Tests run as root, whom permissions do not stop: without two capabilities they do."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2  # include/uapi/linux/capability.h
_VERSION_3 = 0x20080522


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """The calling thread obeys the mode of files and directories meanwhile (capset(2)); its children do as well."""
    before = _capabilities()
    effective = before[0] & ~(1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH)
    _set((effective, *before[1:]))
    try:
        yield
    finally:
        _set(before)


def _capabilities() -> tuple[int, ...]:
    words = (ctypes.c_uint32 * 6)()
    _call("capget", words)
    return tuple(words)


def _set(words: tuple[int, ...]) -> None:
    _call("capset", (ctypes.c_uint32 * 6)(*words))


def _call(name: str, words: ctypes.Array[ctypes.c_uint32]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    if getattr(libc, name)(ctypes.byref(header), ctypes.byref(words)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
