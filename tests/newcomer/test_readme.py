"""What the README says, on a bare Debian: run, test, and see an alert come and go. By ``make test-newcomer`` alone; one
try each, as a newcomer has."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.debian_host import BASES, SUITE
from support.newcomer import Newcomer, missing, newcomer
from support.ports import free_port
from support.scraped import Scrape

pytestmark = [pytest.mark.packages, pytest.mark.timeout(5400)]

UP_WITHIN_S = 900.0
"""Packages and Python's dependencies come first."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Newcomer]:
    if reason := missing():
        pytest.skip(reason)
    with newcomer(SUITE) as running:
        yield running


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Path:
    """What the command says, kept: ``.debian/newcomer-trixie-test.log``."""
    name = request.node.name.rpartition("_")[2]
    path = BASES / f"newcomer-{SUITE}-{name}.log"
    path.write_text("")
    print(f"\n{path}")
    return path


def test_make_run(machine: Newcomer, log: Path) -> None:
    address = f"127.0.0.1:{free_port()}"  # the network is this machine's

    with machine.started(f"exec make run ARGS='--web.listen-address {address}'", log) as process:
        scrape = _scrape(f"http://{address}/metrics", process, log)
        os.killpg(process.pid, signal.SIGINT)  # Ctrl-C
        process.wait(60)

    assert process.returncode in {0, -signal.SIGINT, 130}, _end(log)
    assert scrape.series("plumbline_disk_ios_total")
    assert {each.value for each in scrape.series("plumbline_collector_success")} == {1.0}


def test_make_test(machine: Newcomer, log: Path) -> None:
    exit_code = machine.run("exec make test", log, timeout_s=5000)

    assert exit_code == 0, _end(log)


def test_make_demo_slow(machine: Newcomer, log: Path) -> None:
    exit_code = machine.run("exec make demo-slow ARGS=--exit", log, timeout_s=1200)

    assert exit_code == 0, _end(log)
    assert "the whole cycle was seen" in log.read_text()


def _scrape(url: str, process: subprocess.Popen[bytes], log: Path) -> Scrape:
    """The first page that is complete; the test fails with what was said when the command ends or takes too long."""
    deadline = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=30) as answer:
            scrape = Scrape.of_text(answer.read().decode())
            if scrape.series("plumbline_disk_ios_total"):
                return scrape
        time.sleep(0.5)
    pytest.fail(f"no page of {url}: {_end(log)}")


def _end(log: Path) -> str:
    return f"{log}: {log.read_text(errors='replace')[-4000:]}"
