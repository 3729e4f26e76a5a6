"""Runs one command with everything bounded: time, output, priority, and what it leaves behind.

A command gets ``LC_ALL=C``, no stdin, its own session and process group, umask 077, low CPU and I/O priority and
the kernel's promise to kill it when the daemon dies (``launch.py``). It ends by itself, by its timeout, by too much
output or by :meth:`ProcessRunner.stop`; in each case the whole process group is gone when ``run`` returns, with one
exception that no program can change: a process in uninterruptible sleep (a hung disk) outlives SIGKILL. ``run``
then returns after a bounded wait with ``returncode=None``, and the process is reaped when the disk lets go of it.

What leaves the group by ``setsid`` is not followed; fio's job processes do that, so fio runs with threads.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from plumbline.errors import Unavailable

_POLL_S = 0.05  # how soon an exit or a stop is noticed; at 20 wake-ups a second not measurable as load
_TERM_GRACE_S = 2.0  # between SIGTERM and SIGKILL after a timeout
_STOP_GRACE_S = 0.3  # the same when the daemon itself is to end, which has two seconds in all
_KILL_WAIT_S = 0.5  # after SIGKILL only a process in uninterruptible sleep is still there
_DRAIN_S = 0.5  # for output still in the pipes after the exit
_CHUNK = 65536
MAX_OUTPUT_BYTES = 1 << 20
"""Default cap on each of stdout and stderr."""


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
        cwd_fd: int | None = None,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> Completed:
        """Run ``argv`` to its end, inside ``timeout_s`` plus a few seconds for killing it.

        ``cwd_fd`` is a directory descriptor to run in; ``keep_fds`` stay open in the command (a lock that must
        outlive us as long as the command does). Raises :class:`Unavailable` when it can't be started.
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
        self._env = {key: env[key] for key in ("PATH", "HOME") if key in env} | {"LC_ALL": "C"}
        self._clock = clock
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._abandoned: list[subprocess.Popen[bytes]] = []

    def within(self, stopping: threading.Event) -> Runner:
        """The same runner for one run of a probe: commands started through it end when ``stopping`` is set, too."""
        return _Within(self, stopping)

    def stop(self) -> None:
        """End every command under way within a second, and begin no other. For good: the daemon is ending."""
        self._stopping.set()

    def stuck(self) -> tuple[int, ...]:
        """Process ids of earlier commands that outlived SIGKILL and are still there."""
        self._reap_abandoned()
        with self._lock:
            return tuple(process.pid for process in self._abandoned)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd_fd: int | None = None,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        stopping: threading.Event | None = None,
    ) -> Completed:
        """See :class:`Runner`; ``stopping`` ends this command alone."""
        command = tuple(argv)
        self._reap_abandoned()

        def cancelled() -> bool:
            return self._stopping.is_set() or (stopping is not None and stopping.is_set())

        if cancelled():
            return Completed(command, None, cancelled=True)
        started = self._clock()
        process = self._start(command, cwd_fd, keep_fds)
        try:
            with _Pipes(process, max_output_bytes) as pipes:
                return self._follow(
                    command, process, pipes, started=started, timeout_s=timeout_s, is_cancelled=cancelled
                )
        except BaseException:
            # an interrupt or a mistake of ours must not leave it running
            _signal_group(process, signal.SIGKILL)
            self._abandon(process)
            raise

    def holds(self, argv: Sequence[str]) -> bool:
        """Whether a command of exactly these words outlived SIGKILL and is still in the kernel."""
        self._reap_abandoned()
        words = tuple(argv)
        with self._lock:
            started = [process.args for process in self._abandoned]
        return any(isinstance(args, tuple) and args[-len(words) :] == words for args in started)

    def _follow(
        self,
        command: tuple[str, ...],
        process: subprocess.Popen[bytes],
        pipes: _Pipes,
        *,
        started: float,
        timeout_s: float,
        is_cancelled: Callable[[], bool],
    ) -> Completed:
        timed_out = cancelled = False
        while not _exited(process) and not pipes.overflowed:
            cancelled = is_cancelled()
            timed_out = not cancelled and self._clock() - started >= timeout_s
            if timed_out or cancelled:
                break
            pipes.read(_POLL_S)
        returncode = self._end(process, pipes, _STOP_GRACE_S if cancelled else _TERM_GRACE_S)
        return Completed(
            command,
            returncode,
            bytes(pipes.stdout),
            bytes(pipes.stderr),
            self._clock() - started,
            timed_out=timed_out,
            cancelled=cancelled,
            truncated=pipes.overflowed and not (timed_out or cancelled),
        )

    def _start(self, command: tuple[str, ...], cwd_fd: int | None, keep_fds: Sequence[int]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                launched(command, keep_capabilities=self._keep_capabilities),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # by descriptor: the directory that was checked, whatever its path names by now
                cwd=None if cwd_fd is None else f"/proc/self/fd/{cwd_fd}",
                env=self._env,
                start_new_session=True,
                pass_fds=tuple(keep_fds),
                umask=0o077,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Unavailable(f"{command[0]}: can't be started: {reason}") from error

    def _end(self, process: subprocess.Popen[bytes], pipes: _Pipes, grace_s: float) -> int | None:
        """Make the whole group end and collect the exit status; ``None`` if SIGKILL didn't do it in time."""
        if not _exited(process):
            _signal_group(process, signal.SIGTERM)
            self._await_exit(process, pipes, grace_s)
        # The leader is at most a zombie that still owns the group's number, so this reaches its children and
        # nobody else. Children that outlived the leader have no more business either.
        _signal_group(process, signal.SIGKILL)
        if not self._await_exit(process, pipes, _KILL_WAIT_S):
            self._abandon(process)
            return None
        deadline = self._clock() + _DRAIN_S
        while pipes.open and not pipes.overflowed and self._clock() < deadline:
            pipes.read(_POLL_S)
        return process.wait()

    def _await_exit(self, process: subprocess.Popen[bytes], pipes: _Pipes, limit_s: float) -> bool:
        deadline = self._clock() + limit_s
        while not _exited(process):
            if self._clock() >= deadline:
                return False
            pipes.read(_POLL_S)
        return True

    def _abandon(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._abandoned.append(process)

    def _reap_abandoned(self) -> None:
        with self._lock:
            self._abandoned = [process for process in self._abandoned if process.poll() is None]


@dataclass(frozen=True, slots=True)
class _Within:
    """A runner whose commands also end with one event."""

    runner: ProcessRunner
    stopping: threading.Event

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd_fd: int | None = None,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> Completed:
        return self.runner.run(
            argv,
            timeout_s=timeout_s,
            cwd_fd=cwd_fd,
            keep_fds=keep_fds,
            max_output_bytes=max_output_bytes,
            stopping=self.stopping,
        )


class _Pipes:
    """Both outputs of a process, read without blocking and kept up to a cap; beyond it they are thrown away."""

    def __init__(self, process: subprocess.Popen[bytes], cap: int) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.overflowed = False
        self._cap = cap
        self._selector = selectors.DefaultSelector()
        self._files: list[IO[bytes]] = []
        for file, sink in ((process.stdout, self.stdout), (process.stderr, self.stderr)):
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


def launched(command: Sequence[str], *, keep_capabilities: bool = False) -> tuple[str, ...]:
    """``command`` as ``launch.py`` starts it: it dies with the thread that started it, and works below everything."""
    launch = str(Path(__file__).with_name("launch.py"))
    capabilities = "keep" if keep_capabilities else "drop"
    return (sys.executable, "-I", "-S", launch, str(os.getpid()), capabilities, *command)


def _exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether the leader has ended, without reaping it: its process number must stay ours while we signal."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # PermissionError: every member that is left belongs to somebody else (a set-uid helper)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
