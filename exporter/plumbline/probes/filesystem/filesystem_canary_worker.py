"""The worker of a canary on a mount: like that of a disk (:mod:`~plumbline.probes.canary.canary_worker`), but the mount
is checked first, a write ends with its ``fsync``, and whatever touches the mount counts as in flight.

The write goes through the page cache, as most applications' do. Its ``fsync`` waits for the journal or the server, and
so for what others have written there: that is what this canary is for.

Light modules only.
"""

from __future__ import annotations

import errno
import os
import time
from random import Random

from plumbline.errors import ProbeRefused
from plumbline.probes.canary.canary_worker import (
    FILE_NAME,
    Operator,
    Reader,
    Writer,
    check_still_ours,
    operate,
    read_order,
    settle,
    until_refused,
)
from plumbline.probes.canary.memory import PREPARING, RUNNING, WorkerMemory
from plumbline.probes.filesystem import mount_place
from plumbline.probes.filesystem.mount_look import DEAD, look
from plumbline.probes.run import guard
from plumbline.sources.kernel.filesystem_type import mount_of

ERRORS = ("EIO", "ENOSPC", "EDQUOT", "ETIMEDOUT", "short", "other")
"""Kinds of failed operations."""
CHECK_EVERY = 100  # Operations: the check asks the server, and arrivals while it hangs are charged to no operation


def main(argv: list[str]) -> int:
    """Work until ended."""
    pause, order = settle(argv[0]), read_order(argv[1])
    ((memory_fd, _),) = order.pop("targets")
    memory = WorkerMemory(memory_fd)
    return until_refused(memory, lambda: work(memory, **order, pause=pause))


def work(memory: WorkerMemory, directory: str, filesystem: str, sys: str, *, direct: bool, pause: Pause) -> None:
    """Check the mount, prepare, and operate for ever. Raises :class:`ProbeRefused` if it can't go on here."""

    def pause_preparing(seconds: float) -> None:
        memory.preparing(0)
        pause(seconds)
        memory.preparing(time.monotonic_ns())

    memory.say(PREPARING)
    memory.preparing(time.monotonic_ns())
    mount_id = check_mount(directory, filesystem, sys, direct=direct)
    where = f"{directory}/{FILE_NAME}"
    try:
        with guard.prepare_directory(
            directory, size_bytes=memory.file_bytes, files=(FILE_NAME,), direct=direct
        ) as place:
            if mount_of(place.fd) != mount_id:
                raise refused("not-mounted", directory, "was mounted or unmounted just now")
            size = memory.file_bytes
            fd = place.open_file(FILE_NAME, size, direct=False, dsync=False, pause=pause_preparing)
            read_fd = place.open_file(FILE_NAME, size, direct=True, dsync=False) if direct else fd
            random = Random()  # noqa: S311
            read = Reader if direct else CacheFreeReader
            operators = [
                SyncedWriter(stream, fd, size, random) if stream.write else read(stream, read_fd, size, random)
                for stream in memory.streams
            ]
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
            memory.preparing(0)
            memory.say(RUNNING)

            done = 0

            def check(operator: Operator) -> None:
                nonlocal done
                done += 1
                if not mount_place.is_mounted(mount_id):
                    raise refused("not-mounted", directory, "its file system was unmounted")
                if operator.failures or done % CHECK_EVERY == 0:
                    memory.preparing(time.monotonic_ns())
                    check_still_ours(fd, size, where)
                    memory.preparing(0)

            operate(memory, operators, random, look=check, pause=pause, errors=ERRORS)
    except OSError as error:
        if error.errno == errno.EINVAL and direct:
            raise ProbeRefused("no-direct-io", f"{where}: O_DIRECT is refused; {mount_place.BUFFERED}") from error
        raise guard.refused_by(error, where) from error
    except ProbeRefused as refusal:
        if refusal.reason == "no-direct-io":
            raise ProbeRefused(refusal.reason, f"{str(refusal).partition(';')[0]}; {mount_place.BUFFERED}") from refusal
        raise


def check_mount(directory: str, expected: str, sysfs: str, *, direct: bool) -> int:
    """The id of the mount that the directory is or will be on, once it has answered. Raises :class:`ProbeRefused`."""
    try:
        mount_id = look(directory)
    except OSError as error:
        if error.errno in DEAD:
            raise refused("mount-dead", directory, error.strerror or "its server is gone") from error
        raise guard.refused_by(error, os.path.dirname(directory)) from error  # noqa: PTH120  (pathlib is not light)
    actual = mount_place.mounted_as(mount_id)
    if actual is None:
        raise refused("not-mounted", directory, "its mount is not visible to Plumbline")
    filesystem, mount_point, root = actual
    if wrong := mount_place.wrong_place(filesystem, mount_point, expected, root=root):
        raise ProbeRefused("not-mounted", f"{directory}: {wrong}")
    if filesystem == "zfs" and direct:
        from plumbline.probes.filesystem.zfs import ignores_direct  # not light  # noqa: PLC0415

        if zfs := ignores_direct(sysfs):
            raise ProbeRefused("no-direct-io", f"{directory}: {zfs} ignores O_DIRECT; {mount_place.BUFFERED}")
    return mount_id


def refused(reason: str, where: str, what: str) -> ProbeRefused:
    return ProbeRefused(reason, f"{where}: {what}; {mount_place.ADVICE[reason]}")


class SyncedWriter(Writer):
    def run(self) -> int:
        written = super().run()
        os.fsync(self.fd)
        return written


class CacheFreeReader(Reader):
    """Reads through the page cache, from which its page was removed before."""

    def get_ready(self) -> None:
        super().get_ready()
        os.posix_fadvise(self.fd, self.offset, len(self.buffer), os.POSIX_FADV_DONTNEED)


TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable

    Pause = Callable[[float], None]
