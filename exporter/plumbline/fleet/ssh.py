"""Runs Plumbline on a node by the system's ssh: no password is ever asked for, and nothing waits for ever.

The remote side is a shell, so every word of ours is quoted for it. ssh itself gets the host behind ``--``.
"""

import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from msgspec import Struct, field

from plumbline.core import threads
from plumbline.errors import ConfigError, Unavailable
from plumbline.fleet.answers import short
from plumbline.fleet.inventory import Host

UNREACHABLE = 255  # ssh's own exit code for its own errors
_MAX_OUTPUT = 8 << 20
_MOST_LINES = 10_000  # passed on; a recording prints some hundred
_POLL_S = 0.2


class Answer(Struct, frozen=True):
    """``returncode`` is the remote program's; negative: ssh was ended by this signal."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def reason(self) -> str:
        """The last line that says why it failed."""
        lines = [line for line in (self.stderr or self.stdout).strip().splitlines() if line.strip()]
        return short(lines[-1].removeprefix("plumbline: ")) if lines else f"exit code {self.returncode}"


class Ssh(Struct, frozen=True):
    """How every node is reached. ``command``: what runs Plumbline there, as words; ``flags``: its configuration and
    storage path; ``config``: a file for ``ssh -F``."""

    command: tuple[str, ...] = ("plumbline",)
    flags: tuple[str, ...] = ()
    config: Path | None = None
    connect_s: int = 10
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def argv(self, host: Host, words: Sequence[str]) -> list[str]:
        """``words``: of one command of Plumbline, such as ``baseline state``."""
        options = [
            "-T",
            *("-a", "-x"),  # a node must not use the agent that signs acceptances
            *("-o", "BatchMode=yes"),
            *("-o", f"ConnectTimeout={self.connect_s}"),
            *("-o", "ServerAliveInterval=15"),
            *("-o", "ServerAliveCountMax=4"),
        ]
        options += ["-F", str(self.config)] if self.config else []
        options += ["-p", str(host.port)] if host.port else []
        options += ["-l", host.user] if host.user else []
        remote = " ".join(shlex.quote(word) for word in (*self.command, *words, *self.flags))
        return ["ssh", *options, "--", host.address or host.name, remote]

    def run(
        self,
        host: Host,
        words: Sequence[str],
        *,
        timeout_s: float,
        stopping: threading.Event,
        sent: str = "",
        on_line: Callable[[str], object] = lambda _line: None,
    ) -> Answer:
        """Run one command to its end. ``sent`` is its standard input; ``on_line`` gets each line of its output as it
        comes. Raises :class:`Unavailable` for a node that can't be reached or does not end in time, and when
        ``stopping`` is set."""
        try:
            process = subprocess.Popen(
                self.argv(host, words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise Unavailable("ssh is missing; install Debian's openssh-client") from None
        except (OSError, ValueError) as error:  # too long a command line, a NUL in it, no more processes
            raise Unavailable(f"ssh was not started: {error}") from None
        reading = _Reading(process, sent, on_line)
        try:
            return reading.follow(time.monotonic() + timeout_s, stopping)
        finally:
            reading.end()


class _Reading:
    """Both outputs of a process, each by a thread; lines of the first are passed on by the caller's thread."""

    def __init__(self, process: "subprocess.Popen[bytes]", sent: str, on_line: Callable[[str], object]) -> None:
        self._process, self._on_line = process, on_line
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._said: dict[str, list[bytes]] = {"out": [], "err": []}
        self._too_much = False
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        threads.start("fleet", lambda: _send(process.stdin, sent), of="stdin")
        self._readers = [
            threads.start("fleet", lambda: self._read(process.stdout, "out"), of="stdout"),
            threads.start("fleet", lambda: self._read(process.stderr, "err"), of="stderr"),
        ]

    def follow(self, deadline_s: float, stopping: threading.Event) -> Answer:
        while any(reader.is_alive() for reader in self._readers) or self._process.poll() is None:
            if stopping.is_set():
                raise Unavailable("stopped")
            if time.monotonic() >= deadline_s:
                raise Unavailable("did not end in time; see whether it still runs there")
            if self._too_much:
                break
            self._pass_on()
        if self._too_much:
            raise Unavailable(
                f"printed more than {_MAX_OUTPUT >> 20} MiB; see --node-command and the shell's start files"
            )
        self._pass_on(wait=False)
        out, err = (b"".join(self._said[which]).decode("utf-8", "replace") for which in ("out", "err"))
        answer = Answer(self._process.wait(), out, err)
        if answer.returncode == UNREACHABLE:
            raise Unavailable(f"not reached by ssh: {answer.reason}")
        return answer

    def end(self) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _pass_on(self, *, wait: bool = True) -> None:
        with suppress(queue.Empty):
            line = self._lines.get(timeout=_POLL_S if wait else 0.001)
            while True:
                self._on_line(line.rstrip("\n"))
                line = self._lines.get_nowait()

    def _read(self, pipe: IO[bytes] | None, which: str) -> None:
        assert pipe is not None
        left = _MAX_OUTPUT
        with pipe:
            while raw := pipe.readline(left + 1):  # a line may never end
                left -= len(raw)
                if left < 0:
                    self._too_much = True
                    return
                self._said[which].append(raw)
                if which == "out" and len(self._said[which]) <= _MOST_LINES:
                    self._lines.put(raw.decode("utf-8", "replace"))


def _send(pipe: IO[bytes] | None, text: str) -> None:
    assert pipe is not None
    with suppress(BrokenPipeError), pipe:
        pipe.write(text.encode())


def words_of(text: str) -> tuple[str, ...]:
    """``--node-command`` as words. Raises :class:`ConfigError`."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError("--node-command", str(error), value=text) from None
    if not words:
        raise ConfigError("--node-command", "is empty; name the program, such as plumbline")
    return words
