"""Writes fio's data files full, in a process of its own that may hang with its file system.

``main([where, size, bytes per second, descriptor, …])`` gets the files open and knows none of their names: nothing
that is put in their place is ever written to. It prints one JSON document: that it is done, or why not
(:mod:`~plumbline.probes.apart`).

Light modules only.
"""

from __future__ import annotations

import json
import os
import sys
import time

from plumbline.errors import ProbeRefused
from plumbline.probes import guard


def main(argv: list[str]) -> int:
    """See the module; always 0."""
    where, size_bytes, pace, fds = argv[0], int(argv[1]), int(argv[2]), [int(fd) for fd in argv[3:]]
    answer: dict[str, object] = {"kind": "done"}
    try:
        lay_out(fds, size_bytes, pace, where)
    except ProbeRefused as refusal:
        answer = {"kind": "refused", "reason": refusal.reason, "message": str(refusal)}
    except OSError as error:
        answer = {"kind": "failed", "message": f"{where}: {error.strerror}"}
    json.dump(answer, sys.stdout)
    return 0


def lay_out(fds: list[int], size_bytes: int, bytes_per_second: int, where: str) -> None:
    """Fill them one after the other; what is full already is left as it is."""
    due = time.monotonic()

    def pause(seconds: float) -> None:
        nonlocal due
        due += seconds * guard.FILL_BYTES_PER_SECOND / bytes_per_second
        time.sleep(max(0.0, due - time.monotonic()))

    for fd in fds:
        if not is_full(fd, size_bytes):
            guard.fill(fd, size_bytes, where, pause)


def is_full(fd: int, size_bytes: int) -> bool:
    """Whether the file is long enough and has no holes. A longer one is used in part: no need to write it anew."""
    found = os.fstat(fd)
    return found.st_size >= size_bytes and found.st_blocks * 512 >= size_bytes
