"""Which promtool there is, and what it says of a page."""

from __future__ import annotations

import re
import subprocess
from functools import cache

import pytest

from .programs import need


@cache
def major() -> int:
    """Of the promtool in PATH; without one the test skips."""
    done = subprocess.run([need("promtool"), "--version"], capture_output=True, text=True, check=True)
    return int(re.search(r"version (\d+)\.", done.stdout + done.stderr)[1])  # type: ignore[index]


def need_prometheus_3() -> None:
    """Skip the test where promtool is older: only 3 reads native histograms of our own limits."""
    if major() < 3:
        pytest.skip("promtool is not of Prometheus 3: make test-prometheus3")


def complaints(page: bytes) -> list[str]:
    """Everything that it has to say about a page in the text format; a page it can't parse included."""
    done = subprocess.run(
        [need("promtool"), "check", "metrics"], input=page, capture_output=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).decode().splitlines()
    assert said or done.returncode == 0, done.returncode
    return said
