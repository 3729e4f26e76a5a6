"""Whether mounts that depend on a server respond: checked in the background, by one child process for each mount.

A mount whose server is gone may block a caller in the kernel for ever, so the daemon itself never accesses it. It
starts :mod:`~plumbline.probes.filesystem.mount_look` and polls whether that has ended. A process that hangs is
killed, and if even that does not end it, no second one is started for the same mount. One that got no CPU says
nothing about its mount.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from plumbline.core.foreign import decode_json
from plumbline.core.isolated import argv_of
from plumbline.core.process import Child
from plumbline.core.roots import Roots
from plumbline.core.slot import Slot
from plumbline.core.stall import read_stall
from plumbline.errors import ParseError
from plumbline.probes.filesystem.mount_look import DEAD
from plumbline.sources.kernel.mounts import Mount, MountsReading, MountState, is_remote, own_mounts

MOUNTS, MOUNTS_EVERY_S = "mounts", 30.0  # each check is two processes and a query to a server; an alert needs two
ANSWER_WITHIN_S = 5.0  # a healthy mount answers within milliseconds, over the worst network within a second
MOUNTS_MAX = 64  # further mounts are not checked: a container host may have hundreds from the same servers
_POLL_S = 0.02
_ANSWER_MAX_BYTES = 4096


class _Check:
    def __init__(self, mount: Mount) -> None:
        self.mount = mount
        self.up: bool | None = None
        self.began_s = 0.0
        self.process: Child | None = None
        self.killed = self.starved = False

    def start(self, now_s: float) -> None:
        self.killed, self.starved, self.began_s = False, False, now_s
        self.process = Child(
            argv_of("plumbline.probes.filesystem.mount_look", self.mount.mount_point), tied=True, stdout=subprocess.PIPE
        )

    def apply_answer(self) -> None:
        process = self.process
        if process is None or not process.ended:
            return
        process.reap()
        assert process.stdout is not None
        with process.stdout as pipe:
            output = os.read(pipe.fileno(), _ANSWER_MAX_BYTES)
        self.up = self.late() if self.killed else verdict(output)
        self.process = None

    def late(self) -> bool | None:
        """What it means that the process did not end in time."""
        return None if self.starved else False

    def kill(self, now_s: float) -> None:
        """Kill the process: a killable wait in the kernel ends then."""
        if self.process is not None and not self.killed:
            self.killed = True
            self.starved = read_stall(self.process.pid, Path("/proc")).starved(now_s - self.began_s)
            self.process.signal(signal.SIGKILL)


class MountWatch:
    """The state of every mount from a server. A job calls :meth:`refresh`; any thread may read ``states``."""

    def __init__(self, roots: Roots, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._roots, self._clock = roots, clock
        self._checks = Slot[dict[str, _Check]](self._look, what="mounts")
        self._leaving: list[_Check] = []

    def refresh(self, cancel: threading.Event) -> None:
        """Check every mount and wait a few seconds for the answers; a check that hangs is polled again next time."""
        self._checks.refresh()
        checks = self._checks.last or {}
        for check in (*self._leaving, *checks.values()):
            check.apply_answer()
        self._leaving = [check for check in self._leaving if check.process is not None]
        for check in checks.values():
            if check.process is None:
                check.start(self._clock())
        self._await(checks, cancel)

    def _look(self) -> dict[str, _Check]:
        """Checks by mount point; a mount that stayed keeps its previous one."""
        before, now = self._checks.last or {}, dict[str, _Check]()
        for mount in own_mounts(self._roots):
            if not is_remote(mount.filesystem):
                now.pop(mount.mount_point, None)  # mounted over
            elif mount.mount_point in now or len(now) < MOUNTS_MAX:
                check = before.get(mount.mount_point)
                if check is None or check.mount.mount_id != mount.mount_id:
                    check = _Check(mount)
                now[mount.mount_point] = check
        self._leaving += [check for check in before.values() if check not in now.values()]
        return now

    @property
    def states(self) -> MountsReading:
        """Every mount now; :class:`Unavailable` before the first check or if the kernel does not list mounts."""
        return MountsReading(self._state(check) for check in self._checks.value.values())

    def _state(self, check: _Check) -> MountState:
        in_flight_s = max(0.0, self._clock() - check.began_s) if check.process is not None else 0.0
        return MountState(
            check.mount.mount_point,
            check.mount.filesystem,
            check.late() if in_flight_s > ANSWER_WITHIN_S else check.up,
            in_flight_s,
        )

    def _await(self, checks: dict[str, _Check], cancel: threading.Event) -> None:
        deadline = self._clock() + ANSWER_WITHIN_S
        while any(check.process for check in checks.values()):
            late = self._clock() >= deadline
            for check in checks.values():
                check.apply_answer()
                if late or cancel.is_set():
                    check.kill(self._clock())
            if late or cancel.wait(_POLL_S):
                return


class _Answer(Struct, frozen=True):
    errno: int = 0
    mount_id: int | None = None


def verdict(output: bytes) -> bool | None:
    """Whether the mount is up, from what the process printed; ``None`` if it could not be checked."""
    try:
        answer = decode_json(output, _Answer, source="the look at a mount")
    except ParseError:
        return None
    if answer.errno in DEAD:
        return False
    return True if answer.mount_id is not None else None
