"""The first write on a new volume, in the pod that claimed it: ``main([directory])``.

It prints how long 4 KiB took until they were on the volume, as ``{"write_ns": 1234567}``, or ``{"error": "…"}``, into
the file that Kubernetes shows as the container's last message. Exit status 1 after an error. Light modules only: the
start of this process is part of what is measured.
"""

from __future__ import annotations

import os
import sys
import time

SAY_IN = "/dev/termination-log"
BLOCK = 4096


def main(argv: list[str], say_in: str = SAY_IN) -> int:
    try:
        report, failed = f'{{"write_ns": {write(argv[0])}}}', 0
    except OSError as error:
        text = (f"{error.filename or argv[0]}: {error.strerror or 'failed'}").replace("\\", "\\\\").replace('"', '\\"')
        report, failed = f'{{"error": "{text}"}}', 1
    with open(say_in, "w", encoding="utf-8") as file:  # pathlib is not light  # noqa: PTH123
        file.write(report)
    return failed


def write(directory: str) -> int:
    """Nanoseconds from the creation of a file until it, its block and its name are on the volume. The name is new, and
    the file is removed: some classes hand out a volume again with what an earlier claim left on it."""
    content, name = os.urandom(BLOCK), f"{directory}/plumbline-first-write-{os.urandom(8).hex()}"
    began = time.perf_counter_ns()
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        if os.write(fd, content) != BLOCK:
            raise OSError(0, "written in part only")
        os.fsync(fd)
    finally:
        os.close(fd)
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    lasted = time.perf_counter_ns() - began
    os.unlink(name)  # pathlib is not light  # noqa: PTH108
    return lasted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
