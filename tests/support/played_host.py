"""Recorded hosts as scrape targets: their golden pages, with the clock and the counters going on.

For panels about hardware that a test machine hasn't: pages as the daemon exports them for recorded trees and kernel
replies (``tests/golden/hosts``). Counters and histograms grow by their own three-hundredth each second (those of
ports, which have years behind them, by less), so that shares and percentiles stay as recorded; moments are as far back
as they were at the recording.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from .hosts import NOW
from .page_server import Page, serving

PAGES = Path(__file__).parents[1] / "golden" / "hosts"
GROWTH_PER_S = 1 / 300
OF_YEARS_PER_S = 1e-7
"""Of what a port counted since it was installed."""
_SAMPLE = re.compile(r"([a-z_]+)(\{.*\})? (\S+)")
_BUILD = 'plumbline_build_info{version="recorded"} 1'  # the golden pages leave the version out
_SUFFIX = re.compile(r"_(?:bucket|count|sum)$")


def played(page: str, elapsed_s: float, now: float) -> str:
    """The page after so many seconds."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    lines = [line if line.startswith("#") else _played(line, kinds, elapsed_s, now) for line in page.splitlines()]
    return "\n".join([*lines, _BUILD]) + "\n"


@contextlib.contextmanager
def played_hosts(hosts: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """``hosts``: name → golden page. Gives name → address to scrape, for as long as the block lasts."""
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(serving(_from_now_on((PAGES / f"{page}.prom").read_text("utf-8"))))
            for name, page in hosts.items()
        }


def _from_now_on(page: str) -> Page:
    started = time.monotonic()
    return lambda _path: played(page, time.monotonic() - started, time.time()).encode()


def _played(line: str, kinds: Mapping[str, str], elapsed_s: float, now: float) -> str:
    found = _SAMPLE.fullmatch(line)
    assert found, line
    name, value = found[1], float(found[3])
    kind = kinds.get(name) or kinds.get(_SUFFIX.sub("", name), "")
    if kind in {"counter", "histogram"}:
        value *= 1 + elapsed_s * (OF_YEARS_PER_S if name.startswith("plumbline_nic_") else GROWTH_PER_S)
    elif name.endswith("_timestamp_seconds"):
        value += now - NOW
    return f"{name}{found[2] or ''} {value!r}"
