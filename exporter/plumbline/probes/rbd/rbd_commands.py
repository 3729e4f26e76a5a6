"""Runs one run's commands against the cluster, all within the run's time, and interprets their failures.

``rbd`` returns the errno of a failure as its exit status (``src/tools/rbd``), but whether the pool or the image is
missing appears only in its message.
"""

import errno
import re
import time
from collections.abc import Callable, Sequence

from plumbline.core.process import Completed
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.ceph_access import SETUP, CephAccess
from plumbline.probes.run.model import Run
from plumbline.probes.run.tool import refuse_if_stopped

UNREACHABLE, NO_POOL, PERMISSION, FULL, FAILED = "unreachable", "no-pool", "permission", "full", "rbd-failed"

_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
# time beyond a command's own limits: to start, on a busy machine
_MARGIN_S = 5.0


class Commands:
    """Runs ``rbd`` and ``fio``; raises :class:`ProbeRefused` (``stopped``) if the run must end."""

    def __init__(
        self, access: CephAccess, run: Run, *, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.access = access
        self._run, self._clock = run, clock
        self._until = clock() + timeout_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._until - self._clock())

    def rbd(self, *arguments: str) -> Completed:
        """A short query or change; every failure except "no such image" raises :class:`ProbeRefused`."""
        done = self.run(self.access.rbd(*arguments), limit_s=3 * self.access.timeout_s + _MARGIN_S)
        if done.returncode == 0 or is_missing_image(done):
            return done
        raise refusal(done, f"rbd {arguments[0]}", self.access)

    def run(self, argv: Sequence[str], *, limit_s: float | None = None, max_output_bytes: int = 1 << 20) -> Completed:
        """Run ``argv`` within the time left and at most ``limit_s`` seconds."""
        left = self.left_s if limit_s is None else min(limit_s, self.left_s)
        done = self._run.runner.run(
            argv, timeout_s=left, keep_fds=self._run.keep_fds, max_output_bytes=max_output_bytes
        )
        refuse_if_stopped(done.cancelled)
        return done

    def wait(self, seconds: float) -> None:
        """Wait, unless the run must end."""
        refuse_if_stopped(self._run.stopping.wait(min(seconds, self.left_s)))


def is_missing_image(done: Completed) -> bool:
    return done.returncode == errno.ENOENT and b"error opening image" in done.stderr


def refusal(done: Completed, what: str, access: CephAccess) -> ProbeRefused:
    words, code = first_words(done), done.returncode
    if done.timed_out or code in (errno.ETIMEDOUT, None):
        detail = f" ({words})" if words else ""
        advice = "are a monitor and the pool's OSDs up? See ceph health detail"
        return ProbeRefused(UNREACHABLE, f"{what}: no answer in time{detail}; {advice}")
    if "couldn't connect to the cluster" in words:
        return ProbeRefused(PERMISSION, f"{what}: {words} Its monitors refuse the key of {access.user}; {SETUP}")
    if code == errno.ENOENT:
        return ProbeRefused(NO_POOL, f"{what}: {words}; {SETUP}")
    if code in (errno.EPERM, errno.EACCES):
        return ProbeRefused(PERMISSION, f"{what}: {words}; {access.user} lacks the capability: {SETUP}")
    if code in (errno.ENOSPC, errno.EDQUOT):
        return ProbeRefused(FULL, f"{what}: {words}; free space in the pool, or raise its quota")
    return ProbeRefused(FAILED, f"{what}: {words or 'no message'} (exit status {code})")


def first_words(done: Completed) -> str:
    """The first meaningful line for a person; librados' own log lines only if there is no other."""
    outputs = (output.decode("utf-8", "replace").splitlines() for output in (done.stderr, done.stdout))
    lines = [text for output in outputs for line in output if (text := line.strip())]
    plain = [line for line in lines if not _LOG_LINE.match(line)]
    return next(iter(plain or lines), "")[:300]
