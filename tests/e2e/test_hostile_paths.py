"""What strangers request does not fill the log, and does not hide what really fails."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import plumbline
from support.daemon import Daemon, running

SHAPES = (
    "/runbooks/Plumbline{}" + "a" * 250,
    "/runbooks/Plumbline{}" + "a" * 5000,
    "/runbooks/Plumbline%00{}",
    "/runbooks/..%2f..%2f{}",
    "/runbooks/../../{}/etc/passwd",
    "/runbooks/PlumblineDown%0a{}",
    "/metrics?profile={}",
    "/metrics{}",
    "/-/{}%2f..",
    "/%c3%28{}",
    "http://host{}/runbooks/Plumbline" + "b" * 300,
    "/" + quote("\u202e\u00fc\n") + "{}",
)
WHOLE_PAGES = (
    "/runbooks/PlumblineDown?device={}&" + "x=1&" * 500,
    "/runbooks/PlumblineDown?layer=../../{}&instance=%ff%fe",
    "/metrics?name[]={}&" + "name[]=%00&" * 500,
    "/?{}=" + "%" * 3000,
)
MALFORMED = (b"/ a{}", b"/\xff{}", b"/\n{}", b"/\x00{}", b"/\r{}", b"/#{}", b"/" + b"a" * 20_000 + b"{}")


@pytest.fixture
def apart(folder: Path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon of a copy of the package."""
    package = folder / "lib" / "plumbline"
    shutil.copytree(Path(plumbline.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    with running(folder, config={"probes": []}, environment=environment) as daemon:
        yield daemon, package


@pytest.mark.parametrize("different", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_hostile_paths_leave_the_log_to_what_really_fails(apart: tuple[Daemon, Path], different: int) -> None:
    daemon, package = apart
    address = daemon.url.removeprefix("http://")
    before = daemon.log.stat().st_size
    statuses: dict[int, int] = {}
    client = http.client.HTTPConnection(address, timeout=30)
    targets = [SHAPES[number % len(SHAPES)].format(number) for number in range(different)]
    targets += [WHOLE_PAGES[number % len(WHOLE_PAGES)].format(number) for number in range(100)]
    for target in targets:
        client.request("HEAD", target)
        response = client.getresponse()
        response.read()
        statuses[response.status] = statuses.get(response.status, 0) + 1
    client.close()
    host, port = address.split(":")
    for number in range(140):
        odd = MALFORMED[number % len(MALFORMED)].replace(b"{}", b"%d" % number)
        with socket.create_connection((host, int(port)), timeout=30) as sock:
            sock.sendall(b"GET " + odd + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            assert sock.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert set(statuses) <= {200, 400, 404}, statuses
    assert daemon.log.stat().st_size == before

    (package / "metrics" / "default_page.txt").unlink()
    (package / "pages" / "runbooks" / "PlumblineDown.md").unlink()
    (package / "pages" / "runbooks" / "PlumblineDown.md").mkdir()
    for _ in range(5):
        assert daemon.get("/runbooks/PlumblineDown").status == 500
    assert daemon.get("/metrics").status == 200
    said = daemon.said()
    assert said.count("answering /runbooks/: IsADirectoryError") == 1
