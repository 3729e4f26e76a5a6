"""Guarding one collector: it yields all of its samples, checked, or none, and never raises.

The costly checks (label counts, text, duplicates) run only when the series differ from the last collection's. On a
quiet host that is one list comparison a family.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from plumbline.core.capabilities import Capability
from plumbline.core.escape import visible
from plumbline.core.histogram import HistogramValue
from plumbline.errors import PlumblineError, Unavailable
from plumbline.metrics.snapshot import CollectorHealth, Family
from plumbline.metrics.spec import Kind, MetricSpec, Samples

H = TypeVar("H")  # the source a collector reads from: the host as the daemon knows it
R = TypeVar("R")  # what a collector's ``read`` returns

SkipHook: TypeAlias = Callable[[str, str], None]  # (skipped port or disk for the log, reason as a label value)

Labels: TypeAlias = tuple[str, ...]

ITEM_REASONS = ("malformed", "unreadable", "vanished")  # why a collector may skip an item (port, disk)

_PLAIN = frozenset({int, float})
_SURROGATE = re.compile("[\ud800-\udfff]")
_LATE = "late"
_MOST_CHARACTERS = 256  # of a label value: paths of Kubernetes' volumes have 160
_MOST_SERIES = 100_000  # of a family: ten times the disks that the daemon is tested with
_MAX_REASONS = 16  # a reason is a label value: a collector that puts a device name there must not grow without limit


class Collector(Struct, Generic[H, R], frozen=True):
    """One named source of samples: ``read`` queries the host, ``samples`` maps the reading to samples of ``specs``.
    Both may raise :class:`Unavailable` (normal) or anything else (a fault); either way none of the samples is shown. A
    reading has a type that no other collector returns, and is immutable, because it is kept and judged later.
    ``skip_reasons`` start at 0: a counter that first appears at 1 shows no increase.
    ``listed=False``: the exporter's own figures, without health series."""

    name: str
    specs: tuple[MetricSpec, ...]
    read: Callable[[H, SkipHook], R]
    samples: Callable[[R], Samples]
    skip_reasons: tuple[str, ...] = ()
    listed: bool = True
    origin: str = ""  # the origin of the figures, in Markdown, for the reference
    sized_by: tuple[str, ...] = ()  # the rows of the sizing table that count its series
    capabilities: frozenset[Capability] = frozenset()  # capabilities it still needs after the start
    needs_daemon: bool = False  # whether it has no data when the host is checked without a daemon


class Collected(NamedTuple):
    """The result of one collector. After a failure, or without data, ``reading`` is ``None`` and ``families`` empty."""

    health: CollectorHealth
    families: list[Family]
    reading: object = None


class GuardedCollector:
    """A collector with its state: skip counters, last logged state, last series. For one thread at a time."""

    def __init__(
        self,
        collector: Collector[H, Any],
        host: H,
        *,
        clock: Callable[[], float],
        logger: logging.Logger,
        before: GuardedCollector | None = None,
    ) -> None:
        """``before``: the collector of the same name that this one replaces; its counters and state continue."""
        self.collector: Collector[Any, Any] = collector
        self._host, self._clock, self._log = host, clock, logger
        self._seen: dict[MetricSpec, _Series] = {}
        self._state: str = before._state if before else "works"
        self._skipped_items: set[tuple[str, str]] = before._skipped_items if before else set()
        self._skipped: dict[str, int] = before._skipped if before else {}
        for reason in collector.skip_reasons:
            self._skipped.setdefault(reason, 0)

    def run(self, taken: dict[str, set[Labels]]) -> Collected:
        """Collect once. ``taken``: for each metric that several collectors share, the series already shown."""
        began = self._clock()
        families: list[Family] = []
        reading: object = None
        success, available, reason = True, True, ""
        try:
            reading, families = self._collect()
            _claim(families, taken)
            self._log_change("works")
        except Unavailable as error:
            reading, families, available, reason = None, [], False, str(error)
            self._log_change("unavailable", error)
        except Exception as error:  # noqa: BLE001  (a broken collector must not affect the others)
            reading, families, success = None, [], False
            reason = str(error) if isinstance(error, PlumblineError) else f"{type(error).__name__}: {error}"
            self._log_change(f"failed: {type(error).__name__}", error)
        health = CollectorHealth(
            self.collector.name, success, available, self._clock() - began, reason, dict(self._skipped)
        )
        return Collected(health, families, reading)

    def late(self, for_s: float, reason: str, *, new: bool) -> CollectorHealth:
        """Replaces :meth:`run` while an earlier run has not ended, or if there was no time for one. ``new``: this page
        was the first to wait for it, so it logs that; a later page could log it after "works again", if the run has
        just ended."""
        if new:
            self._log_change(_LATE, PlumblineError(reason))
        return CollectorHealth(self.collector.name, False, True, for_s, reason, dict(self._skipped))

    def _collect(self) -> tuple[object, list[Family]]:
        columns: dict[MetricSpec, tuple[list[Labels], list[float | HistogramValue]]]
        columns = {spec: ([], []) for spec in self.collector.specs}
        skipped: set[tuple[str, str]] = set()
        try:
            reading = self.collector.read(self._host, lambda item, reason: self._skip(item, reason, skipped))
            for spec, labels, value in self.collector.samples(reading):
                column = columns.get(spec)
                if column is None:
                    raise ValueError(f"{self.collector.name} does not declare {spec.name}")
                column[0].append(labels)
                column[1].append(value)
        finally:
            self._skipped_items = skipped
        families = []
        before, self._seen = self._seen, {}
        for spec, (labels_of, values) in columns.items():
            if not labels_of:
                continue
            series = before.get(spec)
            if series is None or series.raw != labels_of:
                series = _Series(labels_of, _checked_labels(spec, labels_of))
            self._seen[spec] = series
            families.append(Family(spec, series.labels, _checked_values(spec, values)))
        return reading, families

    def _skip(self, item: str, reason: str, skipped: set[tuple[str, str]]) -> None:
        if reason not in self._skipped and len(self._skipped) >= _MAX_REASONS:
            reason = "other"
        self._skipped[reason] = self._skipped.get(reason, 0) + 1
        if (item, reason) not in self._skipped_items and (item, reason) not in skipped:
            self._log.debug("collector %s: %s left out: %s", self.collector.name, item, reason)
        skipped.add((item, reason))

    def _log_change(self, state: str, error: Exception | None = None) -> None:
        """Log each change of state once."""
        if state == self._state:
            return
        before, self._state = self._state, state
        name = self.collector.name
        if error is None:
            self._log.log(logging.DEBUG if before == "unavailable" else logging.INFO, "collector %s: works again", name)
        elif isinstance(error, Unavailable):
            self._log.debug("collector %s: not available: %s", name, error)
        elif isinstance(error, PlumblineError):
            self._log.error("collector %s: %s", name, error)
        else:
            self._log.error("collector %s: %s: %s", name, type(error).__name__, error, exc_info=error)


class _Series(Struct, frozen=True):
    raw: list[Labels]  # as the collector returned them
    labels: tuple[Labels, ...]  # checked, every text valid Unicode


def _claim(families: Iterable[Family], taken: dict[str, set[Labels]]) -> None:
    """Record the series of shared metrics; ``ValueError`` if another collector has already shown one of them."""
    claims = [(taken[family.spec.name], family) for family in families if family.spec.name in taken]
    for others, family in claims:
        twice = others.intersection(family.labels)
        if twice:
            raise ValueError(f"{family.spec.name}{min(twice)} also comes from another collector")
    for others, family in claims:
        others.update(family.labels)


def _checked_labels(spec: MetricSpec, rows: Sequence[Labels]) -> tuple[Labels, ...]:
    """The label sets as printable text; ``ValueError`` for a wrong count, a wrong type or a repeated set. Strangers
    choose names (of pools, images, mounts, firmware), so values and sets are bounded here, for every collector."""
    if len(rows) > _MOST_SERIES:
        raise PlumblineError(f"{spec.name}: {len(rows)} series, more than {_MOST_SERIES}; none is shown")
    count = len(spec.labels)
    for row in rows:
        if type(row) is not tuple or len(row) != count or not all(isinstance(value, str) for value in row):
            raise ValueError(f"{spec.name}: label values {row!r} do not fit the labels {spec.labels}")
    if len(set(rows)) != len(rows):
        twice = next(row for row in rows if rows.count(row) > 1)
        raise ValueError(f"{spec.name}: the series {twice} appears twice")
    checked = [row if all(map(_is_plain, row)) else tuple(map(_printable, row)) for row in rows]
    if len(set(checked)) != len(rows):  # a name holds what stands for a character of another
        checked = [tuple(map(_distinct, row)) for row in rows]
    return tuple(checked)


def _is_plain(value: str) -> bool:
    return len(value) <= _MOST_CHARACTERS and value.isprintable()


def _printable(value: str) -> str:
    r"""At most :data:`_MOST_CHARACTERS`, on one line, without characters that steer a terminal or reorder a text. Lone
    surrogates are escaped as bytes (byte 0xFF: ``\xff``): U+FFFD would merge names that differ only in such a byte."""
    text = visible(_SURROGATE.sub(_written_out, value))
    return text if len(text) <= _MOST_CHARACTERS else _cut(text, value)


def _distinct(value: str) -> str:
    return value if _is_plain(value) else _cut(_printable(value), value)


def _cut(text: str, value: str) -> str:
    """The beginning of ``text`` with a checksum of the whole ``value``, which keeps names apart that begin alike."""
    import hashlib  # noqa: PLC0415  (loads OpenSSL, which a daemon that is only scraped does not need)

    checksum = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[: _MOST_CHARACTERS - 14]}…~{checksum}"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    # os.fsdecode keeps an undecodable byte b as U+DC00 + b
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _checked_values(spec: MetricSpec, values: list[float | HistogramValue]) -> Sequence[float | HistogramValue]:
    """Numbers for counters and gauges (booleans become 0 and 1), histograms for histograms, else ``ValueError``."""
    kinds = set(map(type, values))
    if spec.kind is Kind.HISTOGRAM:
        for value in values:
            if not isinstance(value, HistogramValue) or len(value.cumulative) != len(value.edges):
                raise ValueError(f"{spec.name}: {value!r} is not a histogram with one count per edge")
        return values
    if kinds <= _PLAIN:
        return values
    return [_number(spec, value) for value in values]


def _number(spec: MetricSpec, value: object) -> float:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise ValueError(f"{spec.name}: {value!r} is not a number; leave out a missing value")
