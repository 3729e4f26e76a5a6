"""The only reader of /proc, /sys and the like, with a limit on size. Light: workers import it.

There is no limit on time: a hung disk blocks whoever reads its serial number, so ask such questions in another thread.
It does not use pathlib's buffers, so it is also faster: open, read until nothing more comes, close.
"""

import errno
import os

ATTRIBUTE = 1 << 16
"""Bytes, for one value a file: sysfs returns at most a page; the longest are udev's entries and PCI's vital product
data."""
TABLE = 64 << 20  # Bytes, for one line a device, CPU or mount: 200,000 lines of diskstats are 20 MiB
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
_FIRST = 1 << 14


def read_kernel(path: "str | os.PathLike[str]", limit: int = ATTRIBUTE) -> bytes:
    """The whole file; :class:`OSError` (EFBIG if it is longer than ``limit`` bytes)."""
    fd = os.open(path, _FLAGS)
    try:
        data = os.read(fd, min(limit, _FIRST) + 1)
        if not data:
            return data
        more = os.read(fd, _FIRST)  # a short read is not the end: seq_file stops at whole lines
        if not more:
            return data if len(data) <= limit else _too_long(path, limit)
        parts, length = [data, more], len(data) + len(more)
        while more and length <= limit:
            more = os.read(fd, min(limit + 1 - length, 1 << 16))
            parts.append(more)
            length += len(more)
        return b"".join(parts) if length <= limit else _too_long(path, limit)
    finally:
        os.close(fd)


def _too_long(path: "str | os.PathLike[str]", limit: int) -> bytes:
    raise OSError(errno.EFBIG, f"longer than {limit} bytes", os.fspath(path))
