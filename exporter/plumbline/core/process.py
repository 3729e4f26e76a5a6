"""Child processes: :class:`Child` starts and ends one, :class:`ProcessRunner` runs a command within fixed limits.

Limited are time, output, priority and what a command leaves behind. It gets ``LC_ALL=C``, no stdin, its own session and
process group, umask 077, low CPU and I/O priority, and dies with the daemon (``launch.py``). The whole group is gone
when ``run`` returns, with one exception that no program can avoid: a process in uninterruptible sleep (a hung disk)
outlives SIGKILL. ``run`` then returns after a bounded wait with ``returncode=None``, and it is reaped when the disk
answers.

At the end of this process the groups that still run are killed: a thread may still wait for one, and the signal that
ties a command to its thread reaches the leader only.

A process that leaves the group by ``setsid`` is not followed; fio's job processes do that, so fio runs with threads.
"""

from __future__ import annotations

import atexit
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
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

from plumbline.errors import Unavailable

_POLL_S = 0.05  # how soon an exit or a stop is noticed; 20 wake-ups a second cause no measurable load
_END_POLL_S = 0.01  # the same while it is being ended, which is rare and short
_TERM_GRACE_S = 2.0  # between SIGTERM and SIGKILL after a timeout
_STOP_GRACE_S = 0.3  # the same when the daemon itself stops, which may take two seconds in all
_KILL_WAIT_S = 0.5  # after SIGKILL only a process in uninterruptible sleep is still there
_DRAIN_S = 0.5  # for output still in the pipes after the exit
_CHUNK = 65536
MAX_OUTPUT_BYTES = 1 << 20  # Default cap on each of stdout and stderr
_not_reaped: set[Child] = set()  # of this process; a stuck one stays in it


@atexit.register
def _kill_groups() -> None:
    for child in tuple(_not_reaped):
        child.signal(signal.SIGKILL)


class Child:
    """One process in its own session and process group, umask 077, without stdin; :class:`OSError` with a message if it
    can't be started. Only one thread at a time may end it. ``tied`` starts it through ``launch.py``: it dies with the
    *thread* that started it. The environment is ``env``, by default only ``LC_ALL=C``; ``keep_fds`` stay open in it."""

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
        _not_reaped.add(self)
        self.stdout, self.stderr = self._process.stdout, self._process.stderr

    @property
    def ended(self) -> bool:
        """Whether it has ended. Does not reap it: the pid must stay reserved while the group is signalled."""
        try:
            return (
                self._process.returncode is not None
                or os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            )
        except ChildProcessError:  # another thread has just reaped it
            return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; no effect once the child is reaped."""
        if self._process.returncode is None:
            # PermissionError: every member left belongs to another user (a set-uid helper)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def wait(self, limit_s: float, *, pause: Callable[[float], object] = time.sleep) -> bool:
        """Whether it ends within ``limit_s``; ``pause`` waits between polls."""
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
        """End the whole group: SIGTERM and ``grace_s`` if not 0, then SIGKILL. False if it hangs in the kernel."""
        if grace_s and not self.ended:
            self.signal(signal.SIGTERM)
            self.wait(grace_s, pause=pause)
        # The leader is at most a zombie that still owns the group's number, so this reaches only its group. Children
        # that outlive the leader are killed too.
        self.signal(signal.SIGKILL)
        return self.wait(killed_within_s, pause=pause) and self.reap() is not None

    def reap(self) -> int | None:
        """The exit status, negative for a signal's number; ``None`` while it runs."""
        returncode = self._process.poll()
        if returncode is not None:
            _not_reaped.discard(self)
        return returncode


class Completed(Struct, frozen=True):
    """How a command ended. At most one of ``timed_out``, ``cancelled`` and ``truncated`` is true."""

    argv: tuple[str, ...]
    returncode: int | None  # Negative for a signal's number, ``None`` if it outlived SIGKILL or never started
    stdout: bytes = b""
    stderr: bytes = b""
    duration_s: float = 0.0
    timed_out: bool = False
    cancelled: bool = False  # Ended (or not started) because of ``stop``
    truncated: bool = False  # Ended because it wrote more than the limit; the output holds the first part


class Runner(Protocol):
    """The interface that probes use to run commands."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> Completed:
        """Run ``argv`` to its end, within ``timeout_s`` plus a few seconds for killing it; :class:`Unavailable` if it
        can't be started. ``keep_fds`` stay open in it (a lock that must outlive us as long as the command runs)."""
        ...


class ProcessRunner:
    """Runs real processes; several threads may call it. Commands get only ``PATH`` and ``HOME`` from ``env``, and
    ambient capabilities only with ``keep_capabilities``."""

    def __init__(
        self, env: Mapping[str, str], *, keep_capabilities: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._keep_capabilities = keep_capabilities
        self._env = named_environment(env)
        self._clock = clock
        self._stops: tuple[threading.Event, ...] = (threading.Event(),)
        self._lock = threading.Lock()
        self._abandoned: list[Child] = []

    def within(self, stopping: threading.Event) -> Runner:
        """The same runner for one run of a probe: its commands also end when ``stopping`` is set."""
        runner = copy(self)
        runner._stops = (*self._stops, stopping)
        return runner

    def stop(self) -> None:
        """End every running command within a second and start no more. Final: the daemon is stopping."""
        self._stops[0].set()

    def stuck(self) -> tuple[int, ...]:
        """Process ids of earlier commands that outlived SIGKILL and are still there."""
        return tuple(child.pid for child in self._left_behind())

    def holds(self, argv: Sequence[str]) -> bool:
        """Whether a command with exactly this argv outlived SIGKILL and still hangs in the kernel."""
        return any(child.command == tuple(argv) for child in self._left_behind())

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> Completed:
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
            # an interrupt or a bug of ours must not leave the process running
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
    """Both outputs of a process, read without blocking and kept up to a limit; the rest is discarded."""

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
        """Whether a process may still write."""
        return bool(self._selector.get_map())

    def read(self, wait_s: float) -> None:
        """Read available output, or wait up to ``wait_s`` for it."""
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
    """The environment for a tool: ``PATH`` and ``HOME`` from ``env``, and ``LC_ALL=C`` for English messages."""
    return {key: env[key] for key in ("PATH", "HOME") if key in env} | {"LC_ALL": "C"}


def _launched(command: Sequence[str], *, keep_capabilities: bool) -> tuple[str, ...]:
    """``command`` started by ``launch.py``: it dies with the starting thread, and runs at the lowest priority."""
    launch = str(Path(__file__).with_name("launch.py"))
    capabilities = "keep" if keep_capabilities else "drop"
    return (sys.executable, "-I", "-S", launch, str(os.getpid()), capabilities, *command)
