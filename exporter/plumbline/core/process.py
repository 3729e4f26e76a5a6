"""Child processes: :class:`Child` starts and ends one, :class:`ProcessRunner` runs a command with everything bounded.

Bounded are time, output, priority and what a command leaves behind. It gets ``LC_ALL=C``, no stdin, its own session
and process group, umask 077, low CPU and I/O priority and the kernel's promise to kill it when the daemon dies
(``launch.py``). It ends by itself, by its timeout, by too much output or by :meth:`ProcessRunner.stop`; in each case
the whole process group is gone when ``run`` returns, with one exception that no program can change: a process in
uninterruptible sleep (a hung disk) outlives SIGKILL. ``run`` then returns after a bounded wait with
``returncode=None``, and the process is reaped when the disk lets go of it.

What leaves the group by ``setsid`` is not followed; fio's job processes do that, so fio runs with threads.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from plumbline.errors import Unavailable

_POLL_S = 0.05  # how soon an exit or a stop is noticed; at 20 wake-ups a second not measurable as load
_END_POLL_S = 0.01  # the same once it is to end, which is seldom and soon over
_TERM_GRACE_S = 2.0  # between SIGTERM and SIGKILL after a timeout
_STOP_GRACE_S = 0.3  # the same when the daemon itself is to end, which has two seconds in all
_KILL_WAIT_S = 0.5  # after SIGKILL only a process in uninterruptible sleep is still there
_DRAIN_S = 0.5  # for output still in the pipes after the exit
_CHUNK = 65536
MAX_OUTPUT_BYTES = 1 << 20
"""Default cap on each of stdout and stderr."""


class Child:
    """One process: in a session and a process group of its own, umask 077, without stdin. One thread at a time ends it.

    ``tied``: through ``launch.py``, so that it dies with the *thread* that starts it. The environment is ``env``, or
    ``LC_ALL=C`` alone; ``keep_fds`` stay open in it. :class:`OSError` with a sentence when it can't be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        tied: bool,
        keep_capabilities: bool = False,
        env: Mapping[str, str] | None = None,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
        keep_fds: Sequence[int] = (),
        cwd: str | None = "/",
    ) -> None:
        self.command = tuple(command)
        try:
            self._process = subprocess.Popen(
                _launched(self.command, keep_capabilities=keep_capabilities) if tied else self.command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                bufsize=0,
                cwd=cwd,
                env={"LC_ALL": "C"} if env is None else env,
                start_new_session=True,
                pass_fds=tuple(keep_fds),
                umask=0o077,
            )
        except (OSError, ValueError) as error:
            number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or str(error)
            raise OSError(number or errno.EINVAL, f"{self.command[0]}: can't be started: {reason}") from error
        self.pid = self._process.pid
        self.stdout, self.stderr = self._process.stdout, self._process.stderr

    @property
    def ended(self) -> bool:
        """Whether it has ended. That does not reap it: its number must stay its own while the group is signalled."""
        try:
            return (
                self._process.returncode is not None
                or os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            )
        except ChildProcessError:  # another thread has reaped it just now
            return True

    def signal(self, number: signal.Signals) -> None:
        """To the whole group, until it is reaped."""
        if self._process.returncode is None:
            # PermissionError: every member that is left belongs to somebody else (a set-uid helper)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def wait(self, limit_s: float, *, pause: Callable[[float], object] = time.sleep) -> bool:
        """Whether it ends within ``limit_s``; ``pause`` passes the time."""
        deadline = time.monotonic() + limit_s
        while not self.ended:
            if time.monotonic() >= deadline:
                return False
            pause(_END_POLL_S)
        return True

    def end(
        self,
        grace_s: float = 0.0,
        *,
        killed_within_s: float = _KILL_WAIT_S,
        pause: Callable[[float], object] = time.sleep,
    ) -> bool:
        """Make the whole group end: SIGTERM and ``grace_s``, if any, then SIGKILL. False: it hangs in the kernel."""
        if grace_s and not self.ended:
            self.signal(signal.SIGTERM)
            self.wait(grace_s, pause=pause)
        # The leader is at most a zombie that still owns the group's number, so this reaches its children and
        # nobody else. Children that outlived the leader have no more business either.
        self.signal(signal.SIGKILL)
        return self.wait(killed_within_s, pause=pause) and self.reap() is not None

    def reap(self) -> int | None:
        """The exit status, minus the signal's number if one ended it; ``None`` while it is there."""
        return self._process.poll()


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended. At most one of ``timed_out``, ``cancelled`` and ``truncated`` is true."""

    argv: tuple[str, ...]
    returncode: int | None
    """Exit status, minus the signal number if a signal ended it, ``None`` if it outlived SIGKILL or never began."""
    stdout: bytes = b""
    stderr: bytes = b""
    duration_s: float = 0.0
    timed_out: bool = False
    cancelled: bool = False
    """Ended (or not begun) because of ``stop``."""
    truncated: bool = False
    """Ended because it wrote more than the cap; the output holds the first part."""


class Runner(Protocol):
    """What a probe needs to run commands."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> Completed:
        """Run ``argv`` to its end, inside ``timeout_s`` plus a few seconds for killing it.

        ``keep_fds`` stay open in the command (a lock that must outlive us as long as the command does). Raises
        :class:`Unavailable` when it can't be started.
        """
        ...


class ProcessRunner:
    """The real thing. Safe to call from several threads; each call runs its own command.

    ``env`` is the environment to take ``PATH`` and ``HOME`` from; the rest of it is withheld, and so are ambient
    capabilities unless ``keep_capabilities``.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        keep_capabilities: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_capabilities = keep_capabilities
        self._env = named_environment(env)
        self._clock = clock
        self._stops: tuple[threading.Event, ...] = (threading.Event(),)
        self._lock = threading.Lock()
        self._abandoned: list[Child] = []

    def within(self, stopping: threading.Event) -> Runner:
        """The same runner for one run of a probe: commands started through it end when ``stopping`` is set, too."""
        runner = copy(self)
        runner._stops = (*self._stops, stopping)
        return runner

    def stop(self) -> None:
        """End every command under way within a second, and begin no other. For good: the daemon is ending."""
        self._stops[0].set()

    def stuck(self) -> tuple[int, ...]:
        """Process ids of earlier commands that outlived SIGKILL and are still there."""
        return tuple(child.pid for child in self._left_behind())

    def holds(self, argv: Sequence[str]) -> bool:
        """Whether a command of exactly these words outlived SIGKILL and is still in the kernel."""
        return any(child.command == tuple(argv) for child in self._left_behind())

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> Completed:
        """See :class:`Runner`."""
        self._left_behind()
        if self._cancelled:
            return Completed(tuple(argv), None, cancelled=True)
        started = self._clock()
        try:
            child = Child(
                argv,
                tied=True,
                keep_capabilities=self._keep_capabilities,
                env=self._env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                keep_fds=keep_fds,
                cwd=None,
            )
        except OSError as error:
            raise Unavailable(error.strerror) from error
        try:
            with _Pipes(child, max_output_bytes) as pipes:
                return self._follow(child, pipes, started=started, timeout_s=timeout_s)
        except BaseException:
            # an interrupt or a mistake of ours must not leave it running
            child.signal(signal.SIGKILL)
            self._abandon(child)
            raise

    @property
    def _cancelled(self) -> bool:
        return any(event.is_set() for event in self._stops)

    def _follow(self, child: Child, pipes: _Pipes, *, started: float, timeout_s: float) -> Completed:
        timed_out = cancelled = False
        while not child.ended and not pipes.overflowed:
            cancelled = self._cancelled
            timed_out = not cancelled and self._clock() - started >= timeout_s
            if timed_out or cancelled:
                break
            pipes.read(_POLL_S)
        if child.end(_STOP_GRACE_S if cancelled else _TERM_GRACE_S, pause=pipes.read):
            deadline = self._clock() + _DRAIN_S
            while pipes.open and not pipes.overflowed and self._clock() < deadline:
                pipes.read(_POLL_S)
        else:
            self._abandon(child)
        return Completed(
            child.command,
            child.reap(),
            bytes(pipes.stdout),
            bytes(pipes.stderr),
            self._clock() - started,
            timed_out=timed_out,
            cancelled=cancelled,
            truncated=pipes.overflowed and not (timed_out or cancelled),
        )

    def _abandon(self, child: Child) -> None:
        with self._lock:
            self._abandoned.append(child)

    def _left_behind(self) -> tuple[Child, ...]:
        with self._lock:
            self._abandoned[:] = [child for child in self._abandoned if child.reap() is None]
            return tuple(self._abandoned)


class _Pipes:
    """Both outputs of a process, read without blocking and kept up to a cap; beyond it they are thrown away."""

    def __init__(self, child: Child, cap: int) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.overflowed = False
        self._cap = cap
        self._selector = selectors.DefaultSelector()
        self._files: list[IO[bytes]] = []
        for file, sink in ((child.stdout, self.stdout), (child.stderr, self.stderr)):
            assert file is not None
            os.set_blocking(file.fileno(), False)
            self._selector.register(file, selectors.EVENT_READ, sink)
            self._files.append(file)

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for file in self._files:
            file.close()

    @property
    def open(self) -> bool:
        """Whether someone may still write."""
        return bool(self._selector.get_map())

    def read(self, wait_s: float) -> None:
        """Take what is there, or wait up to ``wait_s`` for it."""
        for key, _ in self._selector.select(wait_s):
            try:
                chunk = os.read(key.fd, _CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                self._selector.unregister(key.fileobj)
                continue
            sink: bytearray = key.data
            room = self._cap - len(sink)
            sink += chunk[:room]
            self.overflowed = self.overflowed or len(chunk) > room


def named_environment(env: Mapping[str, str]) -> dict[str, str]:
    """What a tool gets of ``env``: ``PATH`` and ``HOME``; and ``LC_ALL=C``, so that it speaks English."""
    return {key: env[key] for key in ("PATH", "HOME") if key in env} | {"LC_ALL": "C"}


def _launched(command: Sequence[str], *, keep_capabilities: bool) -> tuple[str, ...]:
    """``command`` as ``launch.py`` starts it: it dies with the thread that started it, and works below everything."""
    launch = str(Path(__file__).with_name("launch.py"))
    capabilities = "keep" if keep_capabilities else "drop"
    return (sys.executable, "-I", "-S", launch, str(os.getpid()), capabilities, *command)
