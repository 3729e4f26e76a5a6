"""Fills fio's data files, in a separate process that may hang with its file system.

``main([where, size, bytes per second, descriptor, …])`` gets open files and does not know their names: a file that
replaces one of them is never written to. It prints one JSON document: that it is done, or why not
(:mod:`~plumbline.probes.run.child_task`).

Light modules only.
"""

import json
import os
import sys
import time

from plumbline.errors import ProbeRefused
from plumbline.probes.run import guard


def main(argv: list[str]) -> int:
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
    """Fill the files one after the other; complete ones are not touched."""
    due = time.monotonic()

    def pause(seconds: float) -> None:
        nonlocal due
        due += seconds * guard.FILL_BYTES_PER_SECOND / bytes_per_second
        time.sleep(max(0.0, due - time.monotonic()))

    for fd in fds:
        if not is_full(fd, size_bytes):
            guard.fill(fd, size_bytes, where, pause)


def is_full(fd: int, size_bytes: int) -> bool:
    """Whether the file is long enough and has no holes. A longer one is used in part, so it need not be rewritten."""
    status = os.fstat(fd)
    return status.st_size >= size_bytes and status.st_blocks * 512 >= size_bytes
