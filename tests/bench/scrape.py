"""What one scrape costs the exporter, beside node_exporter with the same families: CPU, wall time, samples, memory.

Scrapes alternate (A B A B …) over kept connections with the headers Prometheus sends, so that whatever else the host
does falls on both. CPU is the process' own clock (clock_getcpuclockid(3): nanoseconds, all threads, ended ones too),
read from one scrape's start to the next one's: work done after the answer counts as well.
"""

from __future__ import annotations

import gzip
import http.client
import os
import shutil
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import IO

# Prometheus 2.42, scrape/scrape.go
HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "Accept-Encoding": "gzip",
}
NODE_EXPORTER = "github.com/prometheus/node_exporter@v1.12.1"
WARM_UP = 10
START_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over all scrapes of one exporter."""

    name: str
    cpu_s: float
    wall_s: float
    samples: int
    bytes_on_wire: int
    rss_bytes: int
    pss_bytes: int

    @property
    def cpu_per_sample_s(self) -> float:
        """CPU seconds a sample."""
        return self.cpu_s / self.samples


class _NotYet(Exception):
    """There are no metrics yet."""


@dataclass(slots=True)
class Exporter:
    """A running exporter and what its scrapes cost so far. A context manager: started inside, ended after."""

    name: str
    argv: Sequence[str | Path]
    port: int
    tls: ssl.SSLContext | None = None
    more_headers: Mapping[str, str] = field(default_factory=dict)
    anew: bool = False
    """Each scrape by a connection of its own."""
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    body: bytes = b""
    _log: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    _process: subprocess.Popen[bytes] | None = None
    _connection: http.client.HTTPConnection | None = None
    _cpu_before: float | None = None

    def __enter__(self) -> Exporter:
        self._process = subprocess.Popen(self.argv, stdout=self._log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_WITHIN_S
        while True:
            try:
                self._connection = self._connect()
                self._ask()
                break
            except (ConnectionRefusedError, _NotYet):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self._process.kill()
                    self._process.wait()
                    self._log.seek(0)
                    raise SystemExit(f"{self.name} did not start:\n{self._log.read().decode()}") from None
                time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._connection is not None
        self._connection.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self.tls is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.tls)
        connection.connect()
        return connection

    def scrape(self) -> None:
        """One scrape; its cost is added when the next one starts."""
        assert self._process is not None
        assert self._connection is not None
        cpu = cpu_clock(self._process.pid)
        if self._cpu_before is not None:
            self.cpu_s.append(cpu - self._cpu_before)
        self._cpu_before = cpu
        start = time.perf_counter()
        if self.anew:
            self._connection.close()
            self._connection = self._connect()
        answer = self._ask()
        self.wall_s.append(time.perf_counter() - start)
        if answer.status != 200 or answer.headers.get("Content-Encoding") != "gzip":
            raise SystemExit(f"{self.name}: status {answer.status}, encoding {answer.headers.get('Content-Encoding')}")

    def _ask(self) -> http.client.HTTPResponse:
        """``/metrics``, its body in :attr:`body`; raises :class:`_NotYet` while the host is first read."""
        assert self._connection is not None
        self._connection.request("GET", "/metrics?profile=full", headers={**HEADERS, **self.more_headers})
        answer = self._connection.getresponse()
        self.body = answer.read()
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise _NotYet
        return answer

    def figures(self) -> Figures:
        """Medians without the warm-up, and memory as it is now."""
        assert self._process is not None
        rollup = memory(Path(f"/proc/{self._process.pid}/smaps_rollup").read_text())
        return Figures(
            name=self.name,
            cpu_s=statistics.median(self.cpu_s[WARM_UP:]),
            wall_s=statistics.median(self.wall_s[WARM_UP:]),
            samples=count_samples(gzip.decompress(self.body)),
            bytes_on_wire=len(self.body),
            rss_bytes=rollup["Rss"],
            pss_bytes=rollup["Pss"],
        )


def node_exporter(folder: Path) -> str | None:
    """The program to compare with; prints which. :data:`NODE_EXPORTER`, built into ``folder``, if Go has it or gets it,
    else Debian's. ``None``: neither."""
    if shutil.which("go") is not None:
        argv, environment = ["go", "install", NODE_EXPORTER], {**os.environ, "GOBIN": str(folder)}
        done = subprocess.run(argv, cwd=folder, env=environment, check=False, capture_output=True, text=True)
        if done.returncode == 0:
            print(f"compared with {NODE_EXPORTER}, built here by Go")
            return str(folder / "node_exporter")
        print(f"go install {NODE_EXPORTER}: {done.stderr.strip().splitlines()[-1:]}")
    found = shutil.which("prometheus-node-exporter")
    if found is None:
        print("no node_exporter to compare with: install Go, or as root: apt-get install prometheus-node-exporter")
    else:
        said = subprocess.run([found, "--version"], check=True, capture_output=True, text=True)
        print(f"compared with Debian's {(said.stdout or said.stderr).splitlines()[0].partition(' (')[0]}")
    return found


def measure(exporters: Sequence[Exporter], scrapes: int, pause_s: float) -> list[Figures]:
    """Scrape all of them in turn, ``scrapes`` times each after the warm-up."""
    with ExitStack() as stack:
        for exporter in exporters:
            stack.enter_context(exporter)
        for turn in range(WARM_UP + scrapes + 1):
            # the order turns round, so that nobody always comes after the same one
            for exporter in exporters if turn % 2 else reversed(exporters):
                exporter.scrape()
                time.sleep(pause_s)
        return [exporter.figures() for exporter in exporters]


def cpu_clock(pid: int) -> float:
    """CPU seconds of a whole process: its clock id is made of the process id (kernel/time/posix-cpu-timers.c)."""
    return time.clock_gettime(~pid << 3 | 2)


def count_samples(text: bytes) -> int:
    """Lines that are neither comment nor empty."""
    return sum(1 for line in text.splitlines() if line and not line.startswith(b"#"))


def memory(rollup: str) -> dict[str, int]:
    """``/proc/<pid>/smaps_rollup``: field → bytes."""
    fields = (line.split() for line in rollup.splitlines()[1:])
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in fields}
