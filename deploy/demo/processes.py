"""Processes that never outlive the demo: each in its own process group, ended by id, dead with the demo itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

STOP_GRACE_S = 10.0


class DemoError(Exception):
    """The demo can't go on; ``str()`` is one line that says why and what to do."""


@dataclass(slots=True)
class Process:
    """A started program and where its output goes."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path | None

    def last_words(self, lines: int = 8) -> str:
        """The end of its output; empty where that went to the terminal."""
        if self.log is None:
            return ""
        return "\n".join(f"    {line}" for line in self.log.read_text(errors="replace").splitlines()[-lines:])


@dataclass(slots=True)
class Processes:
    """What the demo has started; ``stop`` ends the newest first."""

    folder: Path
    running: list[Process] = field(default_factory=list)

    def start(self, name: str, argv: Sequence[str | Path], *, show: bool = False) -> Process:
        """Start ``argv``; its output goes to a log in ``folder``, or to the terminal with ``show``.

        An own process group keeps a Ctrl-C for the demo, which then stops things in order; the parent-death signal
        (util-linux's setpriv) ends the program even where the demo is killed outright.
        """
        log = None if show else self.folder / f"{name}.log"
        output: IO[bytes] | None = None if log is None else log.open("wb")
        try:
            popen = subprocess.Popen(
                [program("setpriv", "util-linux"), "--pdeathsig", "TERM", "--", *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                process_group=0,
            )
        finally:
            if output is not None:
                output.close()
        process = Process(name, popen, log)
        self.running.append(process)
        return process

    def check(self) -> None:
        """Raise :class:`DemoError` when one of them has ended by itself."""
        for process in self.running:
            code = process.popen.poll()
            if code is not None:
                how = f"exit code {code}" if code >= 0 else signal.strsignal(-code)
                raise DemoError(f"{process.name} ended by itself ({how})\n{process.last_words()}".rstrip())

    def run(self, name: str, argv: Sequence[str | Path]) -> int:
        """Run ``argv`` to its end with its output on the terminal; the exit code."""
        process = self.start(name, argv, show=True)
        try:
            return process.popen.wait()
        finally:
            self.stop_one(process)

    def stop(self) -> None:
        """End everything; whoever does not within its time is killed with its whole group."""
        while self.running:
            self.stop_one(self.running[-1])

    def stop_one(self, process: Process) -> None:
        """End one and wait for it; gone from ``running`` afterwards."""
        if process.popen.poll() is None:
            process.popen.terminate()
            try:
                process.popen.wait(STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                print(f"{process.name} did not stop within {STOP_GRACE_S:g} s and is killed")
                process.popen.kill()
                process.popen.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.popen.pid, signal.SIGKILL)  # its own children, should any be left
        self.running.remove(process)


def program(name: str, package: str, *other_names: str) -> str:
    """The path of a program, or :class:`DemoError` naming the Debian package that brings it."""
    for candidate in (name, *other_names):
        found = shutil.which(candidate)
        if found:
            return found
    raise DemoError(f"{name} is not installed; as root: apt-get install --no-install-recommends {package}")


def free_port() -> int:
    """A TCP port on loopback that nobody listens on at the moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
