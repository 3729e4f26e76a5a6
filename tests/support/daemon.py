"""The installed ``plumbline serve`` as a process, for end-to-end tests."""

from __future__ import annotations

import contextlib
import gzip
import html
import http.client
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .scraped import Scrape

COMMAND: tuple[str, ...] = (sys.executable, "-m", "plumbline")
"""Plumbline as this interpreter has it installed."""

WITHIN_S = float(os.environ.get("PLUMBLINE_TESTS_WAIT_S", "30"))
"""For everything that must happen soon, on a busy machine too; on one that twenty others use, say more."""

FIRST_PAGE = "the first page of metrics is available"
"""What the log says then."""

STOP_WITHIN_S = 2.0
"""What the daemon promises."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response; a gzipped body is unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


@dataclass(slots=True)
class Daemon:
    """A started daemon; ``url`` without a trailing slash, ``storage`` its state directory."""

    process: subprocess.Popen[bytes]
    url: str
    first_line: str
    log: Path
    storage: Path

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def get(self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET") -> Answer:
        """One request over a connection of its own; statuses that are errors are answers, too."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=15)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        if found.get("content-encoding") == "gzip" and body:
            body = gzip.decompress(body)
        return Answer(response.status, found, body)

    def metrics(self, query: str = "?profile=full") -> Scrape:
        """The text exposition, which must be one."""
        answer = self.get(f"/metrics{query}")
        assert answer.status == 200, answer.body
        return Scrape.of_text(answer.text)

    def page(self) -> str:
        """The status page without its mark-up, every run of white space one blank."""
        answer = self.get("/")
        assert answer.status == 200, answer.body
        text = re.sub(r"(?s)<(style|script)\b.*?</\1>|<[^>]*>", " ", answer.text)
        return " ".join(html.unescape(text).split())

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the daemon alone."""
        os.kill(self.pid, number)

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def reload(self, config: object) -> str:
        """Replace the configuration file and send SIGHUP; what the log says to that."""
        before = len(_reloads(self.said()))
        write_config(self.storage.parent, config)
        self.send(signal.SIGHUP)
        eventually(lambda: len(_reloads(self.said())) > before)
        return _reloads(self.said())[-1]

    def children(self) -> list[int]:
        """Process ids of its children and theirs."""
        return _children(self.pid)

    def worker(self) -> int:
        """The process id of its one canary worker."""
        (pid,) = [child for child in self.children() if "canary_worker" in command_line(child)]
        return pid

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Exit code and seconds it took to end."""
        asked = time.monotonic()
        self.send(number)
        code = self.process.wait(WITHIN_S)
        return code, time.monotonic() - asked


@contextlib.contextmanager
def running(
    folder: Path,
    *flags: str | Path,
    config: object = None,
    prefix: Sequence[str] = (),
    command: Sequence[str] = COMMAND,
    environment: Mapping[str, str] | None = None,
    whole: bool = True,
) -> Iterator[Daemon]:
    """Start with its state in ``folder/state`` on a free port, and wait until it says where; ended afterwards.

    ``whole``: wait until there are metrics, too: until then ``/metrics`` and ``/-/ready`` answer 503.
    ``config`` is written to ``folder/plumbline.yaml`` first, unless it is ``None``. ``prefix`` is a command that
    runs another one (``ip netns exec …``, ``setpriv …``) in its own process.
    """
    flags = (*flags, "--config.file", write_config(folder, config)) if config is not None else flags
    log, storage = folder / "log", folder / "state"
    argv = [
        *prefix, *command, "serve", "--web.listen-address", "127.0.0.1:0", "--storage.path", storage, *flags
    ]  # fmt: skip
    with (
        log.open("wb") as errors,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, env=environment) as process,
    ):
        try:
            line = _first_line(process)
            found = re.search(r"status page (https?://\S+)/ ", line)
            assert found, f"no address in {line!r}; log:\n{log.read_text(errors='replace')}"
            daemon = Daemon(process, found[1], line, log, storage)
            if whole:  # by its log, which has no door
                eventually(lambda: FIRST_PAGE in daemon.said() or process.poll() is not None)
            yield daemon
        finally:
            _end(process)


def write_config(folder: Path, config: object) -> Path:
    """``folder/plumbline.yaml``, replaced as an editor does (a new file renamed over the old one).

    Text is written as it is, anything else as JSON, which is YAML.
    """
    file = folder / "plumbline.yaml"
    new = file.with_suffix(".new")
    new.write_text(config if isinstance(config, str) else json.dumps(config))
    new.replace(file)
    return file


def run(
    *arguments: str | Path, prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One command of plumbline that is expected to end by itself."""
    return subprocess.run(
        [*prefix, *COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment
    )


def eventually(
    look: Callable[[], Any], *, until: Callable[[Any], Any] = bool, within_s: float = WITHIN_S, every_s: float = 0.05
) -> Any:
    """The first value of ``look()`` that ``until`` accepts; fails with the last one when none was there in time."""
    deadline = time.monotonic() + within_s
    while not until(found := look()):
        assert time.monotonic() < deadline, f"not within {within_s:g} s; the last look gave {found!r}"
        time.sleep(every_s)
    return found


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    return _state(Path(f"/proc/{pid}/stat")) not in ("Z", "X")


def freeze(pid: int) -> None:
    """SIGSTOP, until every thread stands: the signal takes effect when the kernel next runs one of them."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: {_state(stat) for stat in Path(f"/proc/{pid}/task").glob("*/stat")} == {"T"}, every_s=0.001)


def command_line(pid: int) -> str:
    """Its argument vector; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _state(stat: Path) -> str:
    """As in ``ps``; ``X`` when it is gone."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _reloads(said: str) -> list[str]:
    """The whole lines of a log that tell how a reload went."""
    return [line for line in said.splitlines(keepends=True) if re.search(r" reload(ed| refused.*)\n", line)]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += map(int, file.read_text().split())
    return found + [grandchild for child in found for grandchild in _children(child)]


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """Bounded: a daemon that neither speaks nor ends must not hang the tests."""
    assert process.stdout is not None
    said = b""
    deadline = time.monotonic() + WITHIN_S
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while b"\n" not in said and ready.select(max(0.0, deadline - time.monotonic())):
            part = os.read(process.stdout.fileno(), 4096)
            if not part:
                break
            said += part
    return said.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
