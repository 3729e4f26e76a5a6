"""A recorded page as a scrape target, whose counters go on: each line with what it grows by, faults among them.

What a page says depends on the time alone, so that two servers that scrape it at different moments see the same host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .hosts import NOW

GROWTH_PER_S = 1 / 300
"""Of a counter's or histogram's recorded value, so that shares and percentiles stay as recorded."""
OF_YEARS_PER_S = 1e-7
"""Of what a port counted since it was installed."""
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)")
_SUFFIX = re.compile(r"_(?:bucket|count|sum)$")


@dataclass(frozen=True, slots=True)
class Line:
    """One sample: the series as text, its first value, and what is added each second."""

    series: str
    value: float
    per_s: float


Change = Callable[[Line], Line | None]
"""A fault: the line as it is then, ``None`` where it is gone."""


@dataclass(frozen=True, slots=True)
class MovingPage:
    """``stamps``: the lines among ``lines`` whose value is a moment, by index; ``whole``: those that count whole
    operations, in buckets; ``types``: what stands before a line."""

    lines: tuple[Line, ...]
    stamps: frozenset[int]
    whole: frozenset[int]
    types: Mapping[int, str]

    def text(self, elapsed_s: float, now_s: float) -> str:
        """The page so long after its beginning, at this wall clock."""
        shift = now_s - NOW
        text = []
        for index, line in enumerate(self.lines):
            value = line.value + (shift if index in self.stamps else line.per_s * elapsed_s)
            shown = int(value) if index in self.whole else value
            text.append(f"{self.types.get(index, '')}{line.series} {shown!r}\n")
        return "".join(text)


def of_exposition(page: str, changes: Iterable[Change] = ()) -> MovingPage:
    """A page with its ``# TYPE`` lines, as our daemon and Ceph's manager write it."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))

    def read(line: str) -> Line:
        found = _SAMPLE.fullmatch(line)
        assert found, line
        name, value = found[1].partition("{")[0], float(found[2])
        kind = kinds.get(name) or kinds.get(_SUFFIX.sub("", name), "")
        growth = OF_YEARS_PER_S if name.startswith("plumbline_nic_") else GROWTH_PER_S
        return Line(found[1], value, value * growth if kind in {"counter", "histogram"} else 0.0)

    lines = (read(line) for line in page.splitlines() if line and not line.startswith("#"))
    return _changed(lines, changes, kinds)


def fault(pattern: str, *, value: float | None = None, per_s: float | None = None, grows: float = 1.0) -> Change:
    """Series that match are otherwise: another first value, another growth a second, or so many times the growth."""
    wanted = re.compile(pattern)

    def change(line: Line) -> Line:
        if not wanted.match(line.series):
            return line
        slope = line.per_s * grows if per_s is None else per_s
        return Line(line.series, line.value if value is None else value, slope)

    return change


def slower(series: str, *, least_s: float, share: float = 1.0) -> Change:
    """Of the histogram's new operations ``share`` take at least ``least_s``; ``series`` is a pattern up to ``le``."""
    bucket = re.compile(series + r'.*\ble="([^"]+)"')

    def change(line: Line) -> Line:
        found = bucket.match(line.series)
        if not found or float(found[1]) >= least_s:
            return line
        return Line(line.series, line.value, line.per_s * (1 - share))

    return change


def renamed(pattern: str, replacement: str) -> Change:
    """Series by another name: ``re.sub`` on each."""
    wanted = re.compile(pattern)
    return lambda line: Line(wanted.sub(replacement, line.series), line.value, line.per_s)


def _changed(lines: Iterable[Line], changes: Iterable[Change], kinds: Mapping[str, str]) -> MovingPage:
    kept: list[Line] = []
    for line in lines:
        now: Line | None = line
        for change in changes:
            now = change(now) if now is not None else None
        if now is not None:
            kept.append(now)
    names = [line.series.partition("{")[0] for line in kept]
    stamps = frozenset(index for index, name in enumerate(names) if name.endswith("_timestamp_seconds"))
    whole, types, last = set[int](), dict[int, str](), ""
    for index, name in enumerate(names):
        stem = _SUFFIX.sub("", name)
        family = stem if kinds.get(stem) == "histogram" else name
        if family == stem and name.endswith(("_bucket", "_count")):
            whole.add(index)
        if family != last and family in kinds:
            types[index] = f"# TYPE {family} {kinds[family]}\n"
        last = family
    return MovingPage(tuple(kept), stamps, frozenset(whole), types)
