"""Servers that answer without end: the worker that asks stays small and says so."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import psutil
import pytest

import plumbline
from plumbline.config.probes.object import S3Config
from plumbline.config.types import Duration
from plumbline.config.workloads import load_catalogue
from plumbline.core.memory import limit_memory
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.object.s3 import S3Probe
from plumbline.probes.run.guard import MARKER, MARKER_TEXT
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, ProbeResult

MIB = 1 << 20
MOST_RESIDENT = 200 * MIB
SENT_AT_MOST = 1500 * MIB
"""Where the server itself gives up: a worker without a bound has read all of it."""
CATALOGUE = load_catalogue()

needs_botocore = pytest.mark.skipif(importlib.util.find_spec("botocore") is None, reason="botocore is not installed")


class Hostile(BaseHTTPRequestHandler):
    """A bucket with our marker, whose ``endless`` answer never ends."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        endless = cast("Server", self.server).endless
        if self.path.endswith(MARKER):
            self.flood(b"x" * MIB) if endless == "object" else self.answer(200, MARKER_TEXT)
        elif "versioning" in self.path:
            self.answer(200, b"<VersioningConfiguration/>")
        elif endless.startswith("drip"):
            self.drip(head=endless == "dripping head")
        elif endless == "error":
            self.flood(b"<Error><Code>x</Code>" + b"<a/>" * MIB, status=500)
        elif endless == "chunked":
            self.flood(b"<ListBucketResult>" + b"<Contents><Key>k</Key></Contents>" * 32768, chunked=True)
        elif endless == "chunk's length":
            self.flood(b"0" * MIB, chunked=True, framed=False)
        else:
            self.flood(b"<ListBucketResult>" + b"<Contents><Key>k</Key></Contents>" * 32768)

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self, *, head: bool) -> None:
        """An answer with a byte in each second, as long as anybody listens."""
        self.close_connection = True
        server = cast("Server", self.server)
        if head:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(MIB))
            self.end_headers()
        with contextlib.suppress(OSError):
            while not server.ended:
                self.wfile.write(b"x")
                server.sent += 1
                time.sleep(0.2)

    def flood(self, part: bytes, *, status: int = 200, chunked: bool = False, framed: bool = True) -> None:
        self.close_connection = True
        server = cast("Server", self.server)
        self.send_response(status)
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close")))
        self.end_headers()
        if chunked and framed:
            part = b"%x\r\n%s\r\n" % (len(part), part)
        try:
            while server.sent < SENT_AT_MOST and not server.ended:
                self.wfile.write(part)
                server.sent += len(part)
        except OSError:
            pass  # the worker had enough


class Server(ThreadingHTTPServer):
    daemon_threads = True
    ended = False
    sent = 0

    def __init__(self, endless: str) -> None:
        super().__init__(("127.0.0.1", 0), Hostile)
        self.endless = endless


@contextmanager
def serving(endless: str) -> Iterator[Server]:
    server = Server(endless)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.ended = True
    server.shutdown()
    server.server_close()
    thread.join(30)


def ask(
    folder: Path,
    server: Server,
    *,
    most_resident: int = MOST_RESIDENT,
    request_timeout: Duration = Duration(10),  # noqa: B008
) -> tuple[ProbeResult, int]:
    """The probe's result, and the most bytes that its worker had resident."""
    keys = folder / "keys"
    keys.write_text("access_key = AKIAPLUMBLINE\nsecret_key = wJalrXUtnFEMIK7MDENGbPxRfiCY\n")
    keys.chmod(0o600)
    config = S3Config(
        name="s3", endpoint=f"http://127.0.0.1:{server.server_address[1]}", bucket="plumbline-test", operations=1,
        credentials_file=str(keys), timeout=Duration(60), request_timeout=request_timeout,
    )  # fmt: skip
    probe = S3Probe(config, CATALOGUE.by_id["s3-ops-4k"], "stor01")
    ended, most = threading.Event(), [0]

    def watch() -> None:
        while not ended.wait(0.005):
            for each in psutil.Process().children(recursive=True):
                try:
                    memory = each.memory_info().rss if "s3_worker" in " ".join(each.cmdline()) else 0
                except psutil.Error:
                    continue
                most[0] = max(most[0], memory)
                if memory > most_resident:
                    each.kill()  # no host shall die of a test

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        result = probe.run(Run(runner=ProcessRunner(os.environ), clock=time.time, stopping=threading.Event()))
    finally:
        ended.set()
        watcher.join(30)
    return result, most[0]


@needs_botocore
@pytest.mark.parametrize("endless", ["listing", "chunked", "error"])
def test_an_answer_without_end_is_cut_at_a_few_megabytes(tmp_path: Path, endless: str) -> None:
    with serving(endless) as server:
        result, most = ask(tmp_path, server)
    assert result.outcome is Outcome.FAILURE
    assert "is longer than 4 MiB; is this an S3 server?" in result.message
    assert most < MOST_RESIDENT
    assert server.sent < SENT_AT_MOST


@needs_botocore
@pytest.mark.parametrize("endless", ["dripping head", "dripping listing"])
def test_an_answer_that_drips_ends_with_its_timeout(tmp_path: Path, endless: str) -> None:
    """Each byte comes in time, the answer never."""
    with serving(endless) as server:
        began = time.monotonic()
        result, _ = ask(tmp_path, server, request_timeout=Duration(2))
        took = time.monotonic() - began
    assert result.outcome is Outcome.TIMEOUT
    assert "list objects v2: no answer, or not all of it, within 2 s" in result.message
    assert took < 40  # the probe's own timeout is 60 s
    assert server.sent > 2


@needs_botocore
def test_an_object_without_end_is_read_to_what_it_should_be(tmp_path: Path) -> None:
    with serving("object") as server, pytest.raises(ProbeRefused, match="is not ours"):
        ask(tmp_path, server)
    assert server.sent < SENT_AT_MOST


@needs_botocore
def test_a_line_without_end_below_the_library_takes_no_more_than_there_is_for_it(tmp_path: Path) -> None:
    """The length of a chunk: old versions of the library read it to the line's end. That is bounded by memory alone."""
    with serving("chunk's length") as server:
        result, most = ask(tmp_path, server, most_resident=900 * MIB)
    assert result.outcome is Outcome.FAILURE
    assert most < 700 * MIB


def test_a_limit_of_memory_holds_whatever_allocates() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from plumbline.core.memory import limit_memory\n"
        "limit_memory(200 << 20); x = bytearray(20 << 20); print('fits', flush=True)\n"
        "try: bytearray(300 << 20)\n"
        "except MemoryError: print('ends')\n"
    )
    where = str(Path(plumbline.__file__).parents[1])
    said = subprocess.run(
        [sys.executable, "-I", "-c", code, where], capture_output=True, text=True, timeout=60, check=False
    )
    assert said.stdout.split() == ["fits", "ends"], said.stderr


def test_a_lower_limit_is_left() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    if before[1] != resource.RLIM_INFINITY:
        limit_memory(before[1] + 1)
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
        return
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1])\n"
        "from plumbline.core.memory import limit_memory\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)); limit_memory(2 << 30)\n"
        "assert resource.getrlimit(resource.RLIMIT_DATA) == (1 << 30, 1 << 30)\n"
    )
    subprocess.run([sys.executable, "-I", "-c", code, str(Path(plumbline.__file__).parents[1])], timeout=60, check=True)


@pytest.mark.parametrize("worker", ["s3_worker", "ceph_worker", "ceph_task", "rados_canary_worker"])
def test_every_worker_that_talks_to_a_network_is_limited(worker: str) -> None:
    """It says so before it asks anything."""
    (source,) = (Path(__file__).parents[4] / "exporter/plumbline/probes").rglob(f"{worker}.py")
    text = source.read_text()
    main = text.partition("\ndef main(")[2].partition("\ndef ")[0]
    assert "limit_memory(" in main
