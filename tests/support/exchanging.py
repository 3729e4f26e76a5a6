"""Somebody who exchanges two names as fast as the kernel can, beside what a test does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = map(os.fsencode, sys.argv[1:])
done = 0
print("begun", flush=True)
os.set_blocking(0, False)
while True:
    for _ in range(100):
        done += libc.renameat2(-100, one, -100, other, 2) == 0
    try:
        if os.read(0, 1) == b"":
            break
    except BlockingIOError:
        pass
print(done)
"""


class Exchanges:
    """``done`` is known at the end."""

    done = 0


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[Exchanges]:
    """renameat2(RENAME_EXCHANGE) in a loop, in a process of its own."""
    made = Exchanges()
    with subprocess.Popen(
        [sys.executable, "-c", _LOOP, one, other], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "begun\n"
            yield made
        finally:
            process.stdin.close()
            made.done = int(process.stdout.read() or 0)
