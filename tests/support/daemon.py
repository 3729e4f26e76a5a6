"""The installed ``plumbline serve`` as a process, for end-to-end tests."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PLUMBLINE = Path(sys.prefix) / "bin" / "plumbline"
"""The console script the wheel installed beside this interpreter."""

WITHIN_S = 30.0


@dataclass(slots=True)
class Daemon:
    """A started daemon; ``url`` without a trailing slash."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of one request, errors included."""
        request = urllib.request.Request(self.url + path, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def metrics(self) -> dict[str, float]:
        """The text exposition: series as written → value."""
        status, body = self.get("/metrics")
        assert status == 200, body
        lines = (line for line in body.decode().splitlines() if line and not line.startswith("#"))
        return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the daemon alone."""
        os.kill(self.process.pid, number)

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text()


@contextlib.contextmanager
def running(folder: Path, *flags: str | Path) -> Iterator[Daemon]:
    """Start with the state in ``folder/state`` on a free port; ended afterwards if it still runs."""
    log = folder / "log"
    argv: Sequence[str | Path] = [
        PLUMBLINE, "serve", "--storage.path", folder / "state", "--web.listen-address", "127.0.0.1:0", *flags
    ]  # fmt: skip
    with (
        log.open("wb") as errors,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"status page (http://\S+)/ ", first)
            assert found, f"no address in {first!r}; log:\n{log.read_text()}"
            yield Daemon(process, found[1], log)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


def eventually(true: Callable[[], bool], *, within_s: float = WITHIN_S) -> None:
    """Wait until ``true()``; fails when it has not become so in time."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, f"not within {within_s:g} s"
        time.sleep(0.1)
