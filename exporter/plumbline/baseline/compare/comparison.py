"""Comparison of two baselines, or of a baseline with current measurements, with a verdict.

Two entries are compared if layer, device class, workload, operation *and* ``config_hash`` agree. The first side is what
was accepted; the ratio is the degradation ratio of the second: 1 is as accepted, 2 is twice as bad, for rates and
latencies alike.

The same figures are judged as in the alerts: mean and median latency, IOPS and throughput against the tolerance, and
the 99th percentile against the tail's bound (:func:`~plumbline.baseline.selection.bound`), because the tolerance is the
spread of medians and tails vary more. The other percentiles are shown but not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from plumbline.baseline.compare.beside import beside
from plumbline.baseline.fingerprint import Change, Fingerprint, Part, changes, compared
from plumbline.baseline.model import BaselineEntry
from plumbline.baseline.selection import DEFAULT_TOLERANCE, bound
from plumbline.config.workloads import LAYERS

TAIL = "latency.p99"
JUDGED = ("latency.mean", "latency.p50", TAIL, "iops", "throughput")

WITHIN, WORSE, NOT_COMPARED = 0, 1, 3
"""Exit codes."""


class Word(StrEnum):
    """The verdict on one figure."""

    AS_ACCEPTED = "as accepted"
    BETTER = "better"
    WORSE = "worse"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Item:
    """Figures of one operation of one workload on one side."""

    entry: BaselineEntry
    what: str = ""
    """Which one of several: the probe, ``fio-raw/sdb``; empty where a side has each experiment once."""
    age_s: float | None = None
    """For current figures: seconds since the run ended."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides of a comparison."""

    name: str
    source: str
    """``measured``, ``site``, ``documented``, or ``now``."""
    title: str
    items: tuple[Item, ...]
    when: str = ""
    fingerprint: Fingerprint | None = None
    missing: tuple[str, ...] = ()
    """For current figures: what is not known and how to get it, one line each."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of both sides in base units; ``name`` is ``latency.p50``, ``iops`` or ``throughput``."""

    name: str
    a: float
    b: float
    ratio: float
    allowed: float | None
    """The highest ratio that counts as accepted; ``None``: the figure is not judged."""
    word: Word


@dataclass(frozen=True, slots=True)
class Compared:
    """One experiment that both sides have."""

    layer: str
    device_class: str
    """The first side's."""
    device_class_b: str
    """The second side's; with ``--as`` it differs from the first."""
    workload: str
    operation: str
    what: str
    age_s: float | None
    tolerance_ratio: float
    own_tolerance: bool
    """False: the first side states no tolerance, so the default applies."""
    figures: tuple[Figure, ...]
    doubt: str = ""
    """Why nothing is judged: the document of one side contradicts itself."""

    @property
    def word(self) -> Word:
        """The worst verdict among the judged figures."""
        words = {figure.word for figure in self.figures}
        for word in (Word.WORSE, Word.BETTER, Word.AS_ACCEPTED):
            if word in words:
                return word
        return Word.NOT_JUDGED


@dataclass(frozen=True, slots=True)
class Other:
    """The same workload on both sides, but with different parameters; never compared."""

    layer: str
    device_class: str
    workload: str
    operation: str
    a: tuple[str, ...]
    """The first side's ``config_hash`` values."""
    b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Only:
    """An experiment that only one side has."""

    layer: str
    device_class: str
    workload: str
    operation: str


@dataclass(frozen=True, slots=True)
class Environment:
    """What the fingerprints show: possible causes of the differences."""

    changes: tuple[Change, ...]
    compared: tuple[Part, ...]
    """The parts that are known on both sides."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole comparison; rows bottom-up, network first."""

    a: Side
    b: Side
    rows: tuple[Compared, ...]
    others: tuple[Other, ...]
    only_a: tuple[Only, ...]
    only_b: tuple[Only, ...]
    environment: Environment | None
    """``None``: one side has no fingerprint."""

    def count(self, word: Word) -> int:
        """The number of experiments with this verdict."""
        return sum(row.word is word for row in self.rows)

    @property
    def exit_code(self) -> int:
        """0: nothing is worse; 1: something is worse; 3: there was nothing to judge."""
        if self.count(Word.WORSE):
            return WORSE
        return WITHIN if any(row.word is not Word.NOT_JUDGED for row in self.rows) else NOT_COMPARED


def compare(a: Side, b: Side, *, renamed: Mapping[str, str] | None = None) -> Comparison:
    """Compare two sides; ``renamed``: device class of the first side → the second side's class to compare it with."""
    renamed = renamed or {}
    there: dict[_Experiment, list[Item]] = {}
    for item in b.items:
        there.setdefault(_experiment(item.entry), []).append(item)
    rows, alone = [], []
    for item in a.items:
        meant = _as(item.entry, renamed)
        found = there.get(_experiment(meant), [])
        rows += [row for other in found if (row := _row(item.entry, other)).figures]
        if not found:
            alone.append(meant)
    both = {_experiment(_as(item.entry, renamed)) for item in a.items}
    alone_b = [item.entry for item in b.items if _experiment(item.entry) not in both]
    others = tuple(_others(alone, alone_b))
    keys = {(each.layer, each.device_class, each.workload, each.operation) for each in others}
    return Comparison(
        a=a,
        b=b,
        rows=tuple(sorted(rows, key=lambda row: (LAYERS.index(row.layer), row.device_class))),
        others=others,
        only_a=_only(alone, keys),
        only_b=_only(alone_b, keys),
        environment=_environment(a.fingerprint, b.fingerprint),
    )


_Experiment = tuple[tuple[str, str, str, str], str]


def _experiment(entry: BaselineEntry) -> _Experiment:
    return entry.key, entry.config_hash


def _as(entry: BaselineEntry, renamed: Mapping[str, str]) -> BaselineEntry:
    if entry.device_class not in renamed:
        return entry
    return msgspec.structs.replace(entry, device_class=renamed[entry.device_class])


def _row(a: BaselineEntry, other: Item) -> Compared:
    b = other.entry
    tolerance = DEFAULT_TOLERANCE if a.tolerance_ratio is None else a.tolerance_ratio
    doubt = a.doubt or b.doubt
    figures = []
    for one in beside(a, judges=True, latency=b.latency, iops=b.iops, throughput=b.throughput):
        if one.baseline is not None and one.ratio is not None:
            allowed = None if doubt or one.name not in JUDGED else _allowed(one.name, a, tolerance)
            figures.append(
                Figure(one.name, one.baseline, one.measured, one.ratio, allowed, _word(one.ratio, allowed, tolerance))
            )
    return Compared(
        layer=a.layer,
        device_class=a.device_class,
        device_class_b=b.device_class,
        workload=a.workload,
        operation=a.operation,
        what=other.what,
        age_s=other.age_s,
        tolerance_ratio=tolerance,
        own_tolerance=a.tolerance_ratio is not None,
        figures=tuple(figures),
        doubt=doubt,
    )


def _allowed(name: str, entry: BaselineEntry, tolerance: float) -> float:
    tail = bound(entry) if name == TAIL else None
    return tolerance if tail is None else max(tolerance, tail / entry.latency["p99"])


def _word(ratio: float, allowed: float | None, tolerance: float) -> Word:
    if allowed is None:
        return Word.NOT_JUDGED
    if ratio > allowed:
        return Word.WORSE
    return Word.BETTER if ratio * tolerance < 1 else Word.AS_ACCEPTED


def _others(a: Sequence[BaselineEntry], b: Sequence[BaselineEntry]) -> Iterator[Other]:
    for key in dict.fromkeys(entry.key for entry in a):
        ours, theirs = (tuple(entry.config_hash for entry in side if entry.key == key) for side in (a, b))
        if theirs:
            yield Other(*key, a=ours, b=theirs)


def _only(entries: Iterable[BaselineEntry], without: set[tuple[str, str, str, str]]) -> tuple[Only, ...]:
    return tuple(Only(*key) for key in dict.fromkeys(entry.key for entry in entries) if key not in without)


def _environment(a: Fingerprint | None, b: Fingerprint | None) -> Environment | None:
    return None if a is None or b is None else Environment(changes(a, b), compared(a, b))
