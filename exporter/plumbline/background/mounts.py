"""Whether mounts that depend on a server respond: checked in the background, by one child process for each mount.

A mount whose server is gone may block a caller in the kernel for ever, so the daemon itself never accesses it. It
starts :mod:`~plumbline.probes.filesystem.mount_look` and polls whether that has ended. A process that hangs is
killed, and if even that does not end it, no second one is started for the same mount.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

from plumbline.core.isolated import argv_of
from plumbline.core.process import Child
from plumbline.core.roots import Roots
from plumbline.core.slot import Slot
from plumbline.probes.filesystem.mount_look import DEAD
from plumbline.sources.kernel.mounts import Mount, MountState, is_remote, own_mounts

MOUNTS, MOUNTS_EVERY_S = "mounts", 30.0
"""Each check is two small processes and a query to a server; an alert needs two checks."""
ANSWER_WITHIN_S = 5.0
"""A healthy mount answers within milliseconds, over the worst network within a second."""
MOUNTS_MAX = 64
"""Further mounts are not checked: a container host may have hundreds from the same servers."""
_POLL_S = 0.02
_ANSWER_MAX_BYTES = 4096


class _Question:
    """The state of one mount, and the process that checks it, if one runs."""

    def __init__(self, mount: Mount) -> None:
        self.mount = mount
        self.up: bool | None = None
        self.began_s = 0.0
        self.process: Child | None = None
        self.killed = False

    def ask(self, now_s: float) -> None:
        """Start the process."""
        self.killed, self.began_s = False, now_s
        self.process = Child(
            argv_of("plumbline.probes.filesystem.mount_look", self.mount.mount_point), tied=True, stdout=subprocess.PIPE
        )

    def take_answer(self) -> None:
        """If the process has ended, take its answer."""
        process = self.process
        if process is None or not process.ended:
            return
        process.reap()
        assert process.stdout is not None
        with process.stdout as pipe:
            said = os.read(pipe.fileno(), _ANSWER_MAX_BYTES)
        self.up = False if self.killed else verdict(said)
        self.process = None

    def kill(self) -> None:
        """Kill the process: a killable wait in the kernel ends then."""
        if self.process is not None and not self.killed:
            self.killed = True
            self.process.signal(signal.SIGKILL)


class MountWatch:
    """The state of every mount from a server. A job calls :meth:`refresh`; any thread may read ``states``."""

    def __init__(self, roots: Roots, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._roots, self._clock = roots, clock
        self._questions = Slot[dict[str, _Question]](self._look, what="mounts")
        self._leaving: list[_Question] = []

    def refresh(self, cancel: threading.Event) -> None:
        """Check every mount and wait a few seconds for the answers; a check that hangs is polled again next time."""
        self._questions.refresh()
        questions = self._questions.last or {}
        for each in (*self._leaving, *questions.values()):
            each.take_answer()
        self._leaving = [each for each in self._leaving if each.process is not None]
        for each in questions.values():
            if each.process is None:
                each.ask(self._clock())
        self._await(questions, cancel)

    def _look(self) -> dict[str, _Question]:
        """Checks by mount point; a mount that stayed keeps its previous one."""
        known, now = self._questions.last or {}, dict[str, _Question]()
        for mount in own_mounts(self._roots):
            if not is_remote(mount.filesystem):
                now.pop(mount.mount_point, None)  # mounted over
            elif mount.mount_point in now or len(now) < MOUNTS_MAX:
                before = known.get(mount.mount_point)
                same = before is not None and before.mount.mount_id == mount.mount_id
                now[mount.mount_point] = before if before is not None and same else _Question(mount)
        self._leaving += [each for each in known.values() if each not in now.values()]
        return now

    @property
    def states(self) -> tuple[MountState, ...]:
        """Every mount now; :class:`Unavailable` before the first check or if the kernel does not list mounts."""
        return tuple(self._state(each) for each in self._questions.value.values())

    def _state(self, question: _Question) -> MountState:
        in_flight_s = max(0.0, self._clock() - question.began_s) if question.process is not None else 0.0
        return MountState(
            question.mount.mount_point,
            question.mount.filesystem,
            False if in_flight_s > ANSWER_WITHIN_S else question.up,
            in_flight_s,
        )

    def _await(self, questions: dict[str, _Question], cancel: threading.Event) -> None:
        deadline = self._clock() + ANSWER_WITHIN_S
        while any(each.process for each in questions.values()):
            late = self._clock() >= deadline
            for each in questions.values():
                each.take_answer()
                if late or cancel.is_set():
                    each.kill()
            if late or cancel.wait(_POLL_S):
                return


def verdict(said: bytes) -> bool | None:
    """Whether the mount is up, from the output of :mod:`~plumbline.probes.filesystem.mount_look`; ``None`` if it could
    not be checked."""
    try:
        answer = json.loads(said)
        number = answer.get("errno", 0)
        mount_id = answer.get("mount_id")
    except (ValueError, AttributeError, RecursionError):
        return None
    if number in DEAD:
        return False
    return True if mount_id is not None else None
