"""Creates, examines and removes files, in a separate process that may hang with its file system.

``main([directory, files, file_size, timeout_s])`` does it in a fresh subdirectory of the guarded directory; with 0
files it only removes what an earlier run left behind. It prints one JSON document: a list of nanoseconds for each
operation, or why there is none (:mod:`~plumbline.probes.run.child_task`).

"Examines" queries the server (:func:`.mount_look.stat_synced`): a client that has just created a file has its
attributes cached.

Light modules only.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time

from plumbline.core.files import OwnDirectory, check_directory, is_temporary
from plumbline.errors import FileRefused, ProbeRefused
from plumbline.probes.filesystem.mount_look import stat_synced
from plumbline.probes.run import guard
from plumbline.sources.kernel.filesystem_type import mount_of

FOLDER = "metadata"
SWEEP_MAX = 200_000  # Leftovers removed in one go; no workload creates more
OURS = re.compile(r"plumbline-[0-9]{6}")
# share of the time for measuring; the rest is for removing the files
_MEASURE_SHARE = 0.8


class OutOfTime(Exception):
    """The file system is too slow for this many files."""


def main(argv: list[str]) -> int:
    directory, files, file_size, timeout_s = argv[0], int(argv[1]), int(argv[2]), float(argv[3])
    try:
        answer: dict[str, object] = run(directory, files, file_size, timeout_s)
    except ProbeRefused as refusal:
        answer = {"kind": "refused", "reason": refusal.reason, "message": str(refusal)}
    except OutOfTime as late:
        answer = {"kind": "failed", "message": str(late), "timeout": True}
    except OSError as error:
        answer = {"kind": "failed", "message": f"{directory}/{FOLDER}: {error.strerror}"}
    json.dump(answer, sys.stdout)
    return 0


def run(directory: str, files: int, file_size: int, timeout_s: float) -> dict[str, object]:
    """The answer of a successful run; raises :class:`ProbeRefused`, :class:`OutOfTime`, ``OSError``."""
    began = time.monotonic()
    if not files and not guard.is_marked(directory):
        return {"kind": "done"}
    needed = files * max(file_size, 4096)
    with guard.prepare_directory(directory, size_bytes=needed, direct=False) as place:
        sweep(place.fd, directory, began + timeout_s)
        if not files:
            return {"kind": "done"}
        os.mkdir(FOLDER, 0o700, dir_fd=place.fd)
        try:
            with _open_folder(place.fd, directory) as folder:
                spent = measure(folder.fd, files, file_size, began + _MEASURE_SHARE * timeout_s)
        finally:
            sweep(place.fd, directory, began + timeout_s)
    return {"kind": "done", "spent": spent}


def measure(folder: int, files: int, file_size: int, deadline: float) -> dict[str, list[int]]:
    """Nanoseconds of each create, stat, unlink. Raises :class:`OutOfTime`."""
    clock = time.perf_counter_ns
    content = os.urandom(file_size)
    names = [f"plumbline-{number:06d}" for number in range(files)]

    def create(name: str) -> None:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            if content and os.write(descriptor, content) != file_size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        finally:
            os.close(descriptor)

    operations: dict[str, Act] = {
        "create": create,
        "stat": lambda name: stat_synced(name, folder),
        "unlink": lambda name: os.unlink(name, dir_fd=folder),
    }
    times: dict[str, list[int]] = {}
    for operation, act in operations.items():
        spent = times[operation] = []
        for name in names:
            if time.monotonic() > deadline:
                raise OutOfTime(f"{operation}: only {len(spent)} of {files} files within the timeout; raise it")
            started = clock()
            act(name)
            spent.append(clock() - started)
    return times


def sweep(place: int, directory: str, deadline: float) -> None:
    """Remove our subdirectory with an earlier run's files. Foreign files are kept, and refused."""
    try:
        folder = _open_folder(place, directory)
    except FileNotFoundError:
        return
    except FileRefused as error:
        raise guard.refused_by(error, directory) from error
    except OSError as error:
        raise guard.refused("not-ours", f"{directory}/{FOLDER}", error.strerror or "not ours") from error
    with folder:
        names = folder.names()
        for name in names[:SWEEP_MAX]:
            if not OURS.fullmatch(name) and not is_temporary(name):
                raise guard.refused("not-ours", f"{directory}/{FOLDER}/{name}"[:300], "not one of the probe's files")
            if time.monotonic() > deadline:
                raise OutOfTime(f"{len(names)} files of an earlier run remain; the next run continues to remove them")
            try:
                folder.remove(name, guard.MARK_ABOVE)
            except FileRefused as error:
                raise guard.refused_by(error, directory) from error
        same = os.stat(FOLDER, dir_fd=place, follow_symlinks=False)
        if os.path.samestat(same, os.fstat(folder.fd)):
            os.rmdir(FOLDER, dir_fd=place)


def _open_folder(place: int, directory: str) -> OwnDirectory:
    fd = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        check_directory(os.fstat(fd), f"{directory}/{FOLDER}", os.geteuid())
        if mount_of(fd) != mount_of(place):
            raise guard.refused("not-ours", f"{directory}/{FOLDER}", "is a mount point")
    except BaseException:
        os.close(fd)
        raise
    return OwnDirectory(fd, f"{directory}/{FOLDER}", os.geteuid())


TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable

    Act = Callable[[str], None]
