"""Which promtool there is, what it says of a page, and where Prometheus 3 means something else by a test file."""

from __future__ import annotations

import re
import subprocess
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from .programs import need

_SINCE = re.compile(r"(?<=at least since )1970-\d\d-\d\d \d\d:\d\d:\d\d")
_SCRAPE = timedelta(seconds=30)


@cache
def major() -> int:
    """Of the promtool in PATH; without one the test skips."""
    done = subprocess.run([need("promtool"), "--version"], capture_output=True, text=True, check=True)
    return int(re.search(r"version (\d+)\.", done.stdout + done.stderr)[1])  # type: ignore[index]


def need_prometheus_3() -> None:
    """Skip the test where promtool is older: only 3 reads native histograms of our own limits."""
    if major() < 3:
        pytest.skip("promtool is not of Prometheus 3: make test-prometheus3")


def mean_as_prometheus_3(file: Path) -> None:
    """Prometheus 3 leaves out the sample at the very beginning of a range: a window of two scrapes is one growth and
    not two. So vantage points agree a scrape earlier."""
    text = file.read_text("utf-8")
    file.write_text(_SINCE.sub(lambda found: str(datetime.fromisoformat(found[0]) - _SCRAPE), text), "utf-8")


def complaints(page: bytes) -> list[str]:
    """Everything that it has to say about a page in the text format; a page it can't parse included."""
    done = subprocess.run(
        [need("promtool"), "check", "metrics"], input=page, capture_output=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).decode().splitlines()
    assert said or done.returncode == 0, done.returncode
    return said
