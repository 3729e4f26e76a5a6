"""Which promtool there is, and what it says of rules and of a page."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from .programs import need
from .rulefiles import load
from .rules import ROOT


@cache
def major() -> int:
    """Of the promtool in PATH; without one the test skips."""
    done = subprocess.run([need("promtool"), "--version"], capture_output=True, text=True, check=True)
    return int(re.search(r"version (\d+)\.", done.stdout + done.stderr)[1])  # type: ignore[index]


def need_prometheus_3() -> None:
    """Skip the test where promtool is older: only 3 reads native histograms of our own limits."""
    if major() < 3:
        pytest.skip("promtool is not of Prometheus 3: make test-prometheus3")


def run_tests(*files: str | Path) -> str:
    """What ``promtool test rules`` says of test files; empty where all that they expect holds."""
    # each has a CPU, and with Go's own setting a third of its time goes into collecting garbage
    environment = {**os.environ, "GOGC": "1600", "GOMAXPROCS": "1"}
    argv = [need("promtool"), "test", "rules", *files]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=900, check=False)
    return "" if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def failures(said: str) -> set[str]:
    """The expectations that ``promtool test rules`` found wrong: the alert's name or the expression, and the time."""
    alerts = re.findall(r"^ *alertname: (\w+), time: (\w+),", said, re.MULTILINE)
    expressions = re.findall(r"^ *expr: (\".*\"), time: (\w+),", said, re.MULTILINE)
    return {f"{name}, {time}" for name, time in [*alerts, *((json.loads(expr), time) for expr, time in expressions)]}


def known_differences() -> dict[str, set[str]]:
    """What this promtool finds otherwise than that of 2.42, for which tests are written: file → :func:`failures`."""
    known: dict[str, set[str]] = {}
    for why in load(ROOT / "tests" / "rules" / "engines" / "prometheus3.yaml") if major() >= 3 else []:
        for stem, expected in why["differs"].items():
            known.setdefault(stem, set()).update(expected)
    return known


def complaints(page: bytes) -> list[str]:
    """Everything that it has to say about a page in the text format; a page it can't parse included."""
    done = subprocess.run(
        [need("promtool"), "check", "metrics"], input=page, capture_output=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).decode().splitlines()
    assert said or done.returncode == 0, done.returncode
    return said
