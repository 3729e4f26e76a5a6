"""A Prometheus of its own whose time is ours: samples of any past go in by remote write, rules are asked by range.

Remote write, version 1: https://prometheus.io/docs/concepts/remote_write_spec/. A sample is a protobuf message of
always 18 bytes (a double, and a time in milliseconds that needs six bytes until the year 2109), so numpy writes all of
them at once; snappy is sent as one literal.
"""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.ports import free_port

STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
"""The NaN by which Prometheus marks that a series has ended (model/value/value.go)."""
START_WITHIN_S = 60.0

Labels = tuple[tuple[str, str], ...]
"""Sorted by name, the metric's name included."""


@dataclass(frozen=True, slots=True)
class Series:
    """Times in milliseconds, ascending, and a value for each."""

    labels: Labels
    times_ms: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Histograms:
    """The samples of a native histogram with limits of its own: at each time the operations in each bucket (the last
    has no limit), not cumulative, and their sum."""

    labels: Labels
    times_ms: NDArray[np.int64]
    limits: NDArray[np.float64]
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]


def labels_of(name: str, labels: Mapping[str, str]) -> Labels:
    """With the metric's name, in the order remote write wants."""
    return tuple(sorted({**labels, "__name__": name}.items()))


def write_request(series: Iterable[Series]) -> bytes:
    """The body of a remote write."""
    return _request((head(each.labels), _records(each.times_ms, each.values[None, :]).tobytes()) for each in series)


def head(labels: Labels) -> bytes:
    """What a series in a remote write begins with."""
    return b"".join(_field(1, _field(1, name.encode()) + _field(2, value.encode())) for name, value in labels)


def write_request_of(histograms: Iterable[Histograms]) -> bytes:
    """The body of a remote write: histograms of floats (prompb/types.proto, ``Histogram``), schema -53."""
    return _request((head(each.labels), b"".join(_histograms(each))) for each in histograms)


def _histograms(each: Histograms) -> Iterator[bytes]:
    fixed = b"\x20\x69" + _field(11, b"\x10" + _varint(each.counts.shape[1]))
    limits = _field(16, np.ascontiguousarray(each.limits, "<f8").tobytes())
    totals = each.counts.sum(axis=1)
    rows = np.ascontiguousarray(each.counts, "<f8")
    for at, count, total, row in zip(each.times_ms.tolist(), totals, each.sums, rows, strict=True):
        figures = struct.pack("<BdBd", 0x11, count, 0x19, total)
        yield _field(4, figures + fixed + _field(13, row.tobytes()) + b"\x78" + _varint(at) + limits)


def _request(series: Iterable[tuple[bytes, bytes]]) -> bytes:
    parts: list[bytes] = []
    for labels, samples in series:
        parts += [b"\x0a", _varint(len(labels) + len(samples)), labels, samples]
    body = b"".join(parts)
    return _varint(len(body)) + b"\xfc" + struct.pack("<I", len(body) - 1) + body


def _records(times_ms: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Series × times × 18 bytes; ``values`` has a row for each series."""
    record = np.empty((*values.shape, 18), np.uint8)
    record[..., 0:3] = (0x12, 16, 0x09)
    record[..., 3:11] = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(*values.shape, 8)
    record[..., 11] = 0x10
    for index in range(6):
        more = 0x80 if index < 5 else 0
        record[..., 12 + index] = ((times_ms >> (7 * index)) & 0x7F) | more
    return record


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def cpu_s(pid: int) -> float:
    """User and system time of a process so far, by its own clock.

    Python lacks clock_getcpuclockid(3); this is the kernel's ``MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)``
    (include/linux/posix-timers.h).
    """
    return time.clock_gettime((~pid << 3) | 2)


class Store:
    """Use as a context. Raises ``RuntimeError`` with Prometheus's own words when it refuses something."""

    def __init__(self, *, evaluation_s: int = 60, lookback_s: int = 300, native: bool = False) -> None:
        """How often rules are evaluated, how long a sample stands for what follows, and whether it takes native
        histograms (Prometheus 3.5)."""
        self._folder = Path(tempfile.mkdtemp(prefix="plumbline-history-"))
        self._port = free_port()
        config = self._config = self._folder / "prometheus.yml"
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1h", "evaluation_interval": f"{evaluation_s}s"},
                    "rule_files": [],
                }
            )
        )
        self._log = (self._folder / "log").open("w")
        self._process = subprocess.Popen(
            [
                "prometheus", f"--config.file={config}", f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}", "--web.enable-remote-write-receiver",
                "--storage.tsdb.retention.time=100y", "--query.timeout=1h", "--query.max-samples=500000000",
                f"--query.lookback-delta={lookback_s}s",
                # hidden flags: samples may come late by half of it, so a chunk of time takes fewer requests
                "--storage.tsdb.min-block-duration=1d", "--storage.tsdb.max-block-duration=1d",
                *(["--enable-feature=native-histograms"] if native else []),
            ],
            stdout=self._log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        deadline = time.monotonic() + START_WITHIN_S
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError("prometheus does not start")
            time.sleep(0.1)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process and remove what it stored."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def write(self, series: Iterable[Series]) -> None:
        """Samples of every series in the order of their times, none older than what the series has."""
        chosen = tuple(series)
        if chosen:
            self._write(write_request(chosen))

    def write_samples(self, heads: Sequence[bytes], times_ms: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """The same of series whose samples are of the same times: :func:`head` of each, and a row of values."""
        samples = _records(times_ms, values)
        self._write(_request((labels, row.tobytes()) for labels, row in zip(heads, samples, strict=True)))

    def write_histograms(self, histograms: Iterable[Histograms]) -> None:
        """The same of native histograms."""
        self._write(write_request_of(histograms))

    def _write(self, request: bytes) -> None:
        headers = {
            "Content-Encoding": "snappy",
            "Content-Type": "application/x-protobuf",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        self._ask("POST", "/api/v1/write", request, headers)

    def query_range(self, expr: str, start_s: float, end_s: float, step_s: float) -> list[tuple[dict[str, str], Any]]:
        """(labels, [[time in seconds, value as text], …]) of every series."""
        form = urllib.parse.urlencode({"query": expr, "start": start_s, "end": end_s, "step": step_s})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = json.loads(self._ask("POST", "/api/v1/query_range", form.encode(), headers))
        return [(each["metric"], each["values"]) for each in answer["data"]["result"]]

    def query(self, expr: str, at_s: float | None = None) -> list[dict[str, Any]]:
        """Every series of an instant query, at the present without a time: ``metric`` (its labels) and ``value``."""
        form = urllib.parse.urlencode({"query": expr} | ({} if at_s is None else {"time": str(at_s)}))
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        found: list[dict[str, Any]] = json.loads(self._ask("POST", "/api/v1/query", form.encode(), headers))["data"][
            "result"
        ]
        return found

    def evaluate(self, rules: Sequence[Path]) -> None:
        """From now on these files of rules and no others; what was recorded stays. Returns when that is so."""
        config = json.loads(self._config.read_text())
        self._config.write_text(json.dumps({**config, "rule_files": [str(path) for path in rules]}))
        self._process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + START_WITHIN_S
        while bool(self.groups()) != bool(rules):
            if time.monotonic() > deadline:
                raise RuntimeError("prometheus does not reload")
            time.sleep(0.2)

    def cpu_s(self) -> float:
        """User and system time of its process so far."""
        return cpu_s(self.pid)

    def evaluation_s(self, expr: str, at_s: float) -> float:
        """Seconds that evaluating it once takes, without sending the result."""
        form = urllib.parse.urlencode({"query": expr, "time": at_s, "stats": "all"})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = json.loads(self._ask("POST", "/api/v1/query", form.encode(), headers))
        return float(answer["data"]["stats"]["timings"]["evalTotalTime"])

    def groups(self) -> list[dict[str, Any]]:
        """Every rule group with its rules, their health and how long they took."""
        groups: list[dict[str, Any]] = json.loads(self._ask("GET", "/api/v1/rules", b"", {}))["data"]["groups"]
        return groups

    def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        try:
            self._connection.request(method, path, body, dict(headers))
            response = self._connection.getresponse()
        except ConnectionError:  # Prometheus closes a connection that was idle for five minutes
            self._connection.close()
            self._connection.request(method, path, body, dict(headers))
            response = self._connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise RuntimeError(f"Prometheus answers {response.status}: {content[:500]!r}")
        return content

    def _ready(self) -> bool:
        probe = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            probe.request("GET", "/-/ready")
            return probe.getresponse().status == 200
        except OSError:
            return False
        finally:
            probe.close()
