"""Commands of one run against the cluster, all inside the run's time, and what their failures mean.

``rbd`` ends with the errno of what went wrong as its exit status (``src/tools/rbd``), but says which of pool and image
is missing only in words.
"""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable, Sequence

from plumbline.core.process import Completed
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.ceph_access import SETUP, CephAccess
from plumbline.probes.model import Run
from plumbline.probes.tool import refuse_if_stopped

UNREACHABLE, NO_POOL, PERMISSION, FULL, FAILED = "unreachable", "no-pool", "permission", "full", "rbd-failed"

_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_MARGIN_S = 5.0
"""What a command gets beyond its own limits of time: to start, on a busy machine."""


class Commands:
    """Runs ``rbd`` and ``fio``; :class:`ProbeRefused` (``stopped``) when the run is to end."""

    def __init__(
        self,
        access: CephAccess,
        run: Run,
        *,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.access = access
        self._run, self._clock = run, clock
        self._until = clock() + timeout_s

    @property
    def left_s(self) -> float:
        """What is left of the run's time."""
        return max(0.0, self._until - self._clock())

    def rbd(self, *arguments: str) -> Completed:
        """A short question or change; every failure but "no such image" is :class:`ProbeRefused`."""
        done = self.run(self.access.rbd(*arguments), limit_s=3 * self.access.timeout_s + _MARGIN_S)
        if done.returncode == 0 or is_missing_image(done):
            return done
        raise refusal(done, f"rbd {arguments[0]}", self.access)

    def run(self, argv: Sequence[str], *, limit_s: float | None = None, max_output_bytes: int = 1 << 20) -> Completed:
        """``argv``, in what is left of the time and at most ``limit_s``."""
        left = self.left_s if limit_s is None else min(limit_s, self.left_s)
        done = self._run.runner.run(
            argv, timeout_s=left, keep_fds=self._run.keep_fds, max_output_bytes=max_output_bytes
        )
        refuse_if_stopped(done.cancelled)
        return done

    def wait(self, seconds: float) -> None:
        """Wait, but not when the run is to end."""
        refuse_if_stopped(self._run.stopping.wait(min(seconds, self.left_s)))


def is_missing_image(done: Completed) -> bool:
    """Whether it failed because there is no image of that name, in a pool that there is."""
    return done.returncode == errno.ENOENT and b"error opening image" in done.stderr


def refusal(done: Completed, what: str, access: CephAccess) -> ProbeRefused:
    """What the failure of an ``rbd`` command amounts to."""
    said = words(done)
    code = done.returncode
    if done.timed_out or code in (errno.ETIMEDOUT, None):
        waited = f"{what}: no answer in time{f' ({said})' if said else ''}"
        return ProbeRefused(UNREACHABLE, f"{waited}; are a monitor and the pool's OSDs up? See ceph health detail")
    if "couldn't connect to the cluster" in said:
        return ProbeRefused(PERMISSION, f"{what}: {said} Its monitors refuse the key of {access.user}; {SETUP}")
    if code == errno.ENOENT:
        return ProbeRefused(NO_POOL, f"{what}: {said}; {SETUP}")
    if code in (errno.EPERM, errno.EACCES):
        return ProbeRefused(PERMISSION, f"{what}: {said}; {access.user} may not do that, {SETUP}")
    if code in (errno.ENOSPC, errno.EDQUOT):
        return ProbeRefused(FULL, f"{what}: {said}; make room in the pool or raise its quota")
    return ProbeRefused(FAILED, f"{what}: {said or 'no message'} (exit status {code})")


def words(done: Completed) -> str:
    """The first line a person can use; librados' own log lines only where there is no other."""
    lines = [
        text
        for output in (done.stderr, done.stdout)
        for line in output.decode("utf-8", "replace").splitlines()
        if (text := line.strip())
    ]
    plain = [line for line in lines if not _LOG_LINE.match(line)]
    return next(iter(plain or lines), "")[:300]
