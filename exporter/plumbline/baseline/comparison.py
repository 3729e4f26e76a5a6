"""Comparison of two baselines, or of a baseline with current measurements, with a verdict.

Two entries are compared if layer, device class, workload, operation *and* ``config_hash`` agree. The first side is what
was accepted; the degradation ratio of the second is 1 as accepted and 2 twice as bad, for rates and latencies alike.

The same figures are judged as in the alerts: mean and median latency, IOPS and throughput against the tolerance, and
the 99th percentile against the bound of the tail, because the tolerance is the spread of medians and tails vary more.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from plumbline.baseline.fingerprint import Change, Fingerprint, Part, changes, compared
from plumbline.baseline.model import BaselineEntry, experiment, figures
from plumbline.baseline.selection import DEFAULT_TOLERANCE, bound
from plumbline.config.workloads import LAYERS
from plumbline.core.grouping import grouped

# figures where more is better; for latencies less is better
DIRECT = ("iops", "throughput")
TAIL = "latency.p99"
JUDGED = ("latency.mean", "latency.p50", TAIL, "iops", "throughput")

# exit codes
WITHIN, WORSE, NOT_COMPARED = 0, 1, 3


class ReferenceFigure(msgspec.Struct, frozen=True):
    """One figure in base units, with its degradation ratio; ``name`` is ``latency.p50``, ``iops`` or ``throughput``.
    ``within``: whether it is inside the tolerance; ``None``: the baseline does not judge or has no tolerance."""

    name: str
    measured: float
    baseline: float | None = None
    ratio: float | None = None
    within: bool | None = None


def reference_figures(
    entry: BaselineEntry | None,
    *,
    judges: bool,
    latency: Mapping[str, float],
    iops: float | None = None,
    throughput: float | None = None,
) -> tuple[ReferenceFigure, ...]:
    """Every measured figure: latencies from mean to max, then the rates."""
    known = dict(figures(entry.latency, entry.iops, entry.throughput)) if entry else {}
    tolerance = entry.tolerance_ratio if entry and judges else None
    rows = []
    for name, measured in figures(latency, iops, throughput):
        baseline = known.get(name)
        ratio = _degradation(name, measured, baseline)
        within = None if ratio is None or tolerance is None else ratio <= tolerance
        rows.append(ReferenceFigure(name, measured, baseline, ratio, within))
    return tuple(rows)


def _degradation(name: str, measured: float, baseline: float | None) -> float | None:
    if not baseline or not measured:
        return None
    return baseline / measured if name in DIRECT else measured / baseline


class Word(StrEnum):
    AS_ACCEPTED = "as accepted"
    BETTER = "better"
    WORSE = "worse"
    NOT_JUDGED = "not judged"


class Item(msgspec.Struct, frozen=True):
    """Figures of one operation of one workload on one side. ``what``: which of several, such as the probe
    ``fio-raw/sdb``. ``age_s``: for current figures, seconds since the run ended."""

    entry: BaselineEntry
    what: str = ""
    age_s: float | None = None


class Side(msgspec.Struct, frozen=True):
    """One of the two sides of a comparison. ``source``: ``measured``, ``site``, ``documented``, or ``now``.
    ``missing``: for current figures, what is not known and how to get it, one line each."""

    name: str
    source: str
    title: str
    items: tuple[Item, ...]
    when: str = ""
    fingerprint: Fingerprint | None = None
    missing: tuple[str, ...] = ()


class Figure(msgspec.Struct, frozen=True):
    """One figure of both sides in base units. ``allowed`` is the highest ratio that counts as accepted; ``None``: the
    figure is not judged."""

    name: str
    a: float
    b: float
    ratio: float
    allowed: float | None
    word: Word


class Compared(msgspec.Struct, frozen=True):
    """One experiment that both sides have. ``device_class_b`` is the second side's, which differs with ``--as``.
    ``own_tolerance`` false: the first side states no tolerance, so the default applies. ``doubt``: why nothing is
    judged: the document of one side contradicts itself."""

    layer: str
    device_class: str
    device_class_b: str
    workload: str
    operation: str
    what: str
    age_s: float | None
    tolerance_ratio: float
    own_tolerance: bool
    figures: tuple[Figure, ...]
    doubt: str = ""

    @property
    def word(self) -> Word:
        """The worst verdict among the judged figures."""
        words = {figure.word for figure in self.figures}
        return next((word for word in (Word.WORSE, Word.BETTER, Word.AS_ACCEPTED) if word in words), Word.NOT_JUDGED)


class Only(msgspec.Struct, frozen=True):
    layer: str
    device_class: str
    workload: str
    operation: str


class Other(Only, frozen=True):
    """The same workload on both sides, but with different parameters: each side's ``config_hash`` values."""

    a: tuple[str, ...]
    b: tuple[str, ...]


class Environment(msgspec.Struct, frozen=True):
    """Possible causes of the differences, and the parts of the fingerprints that are known on both sides."""

    changes: tuple[Change, ...]
    compared: tuple[Part, ...]


class Comparison(msgspec.Struct, frozen=True):
    """The whole comparison; rows bottom-up, network first. Without ``environment`` one side has no fingerprint."""

    a: Side
    b: Side
    rows: tuple[Compared, ...]
    others: tuple[Other, ...]
    only_a: tuple[Only, ...]
    only_b: tuple[Only, ...]
    environment: Environment | None

    def count(self, word: Word) -> int:
        return sum(row.word is word for row in self.rows)

    @property
    def exit_code(self) -> int:
        """0: nothing is worse; 1: something is worse; 3: there was nothing to judge."""
        if self.count(Word.WORSE):
            return WORSE
        return WITHIN if any(row.word is not Word.NOT_JUDGED for row in self.rows) else NOT_COMPARED


def compare(a: Side, b: Side, *, renamed: Mapping[str, str] | None = None) -> Comparison:
    """Compare two sides; ``renamed``: device class of the first side → the second side's class to compare it with."""
    there = grouped(b.items, lambda item: experiment(item.entry))
    here = [(_as(item.entry, renamed or {}), item.entry) for item in a.items]
    part = (_row(entry, other) for meant, entry in here for other in there.get(experiment(meant), []))
    rows = sorted((row for row in part if row.figures), key=lambda row: (LAYERS.index(row.layer), row.device_class))
    both = {experiment(meant) for meant, _ in here}
    alone = [meant for meant, _ in here if experiment(meant) not in there]
    alone_b = [item.entry for item in b.items if experiment(item.entry) not in both]
    others = tuple(_others(alone, alone_b))
    keys = {(other.layer, other.device_class, other.workload, other.operation) for other in others}
    environment = None
    if a.fingerprint is not None and b.fingerprint is not None:
        environment = Environment(changes(a.fingerprint, b.fingerprint), compared(a.fingerprint, b.fingerprint))
    return Comparison(a, b, tuple(rows), others, _only(alone, keys), _only(alone_b, keys), environment)


def _as(entry: BaselineEntry, renamed: Mapping[str, str]) -> BaselineEntry:
    if entry.device_class not in renamed:
        return entry
    return msgspec.structs.replace(entry, device_class=renamed[entry.device_class])


def _row(a: BaselineEntry, other: Item) -> Compared:
    b = other.entry
    tolerance = DEFAULT_TOLERANCE if a.tolerance_ratio is None else a.tolerance_ratio
    doubt = a.doubt or b.doubt
    pairs = []
    for row in reference_figures(a, judges=True, latency=b.latency, iops=b.iops, throughput=b.throughput):
        if row.baseline is not None and row.ratio is not None:
            allowed = None if doubt or row.name not in JUDGED else _allowed(row.name, a, tolerance)
            pairs.append(
                Figure(row.name, row.baseline, row.measured, row.ratio, allowed, _word(row.ratio, allowed, tolerance))
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
        figures=tuple(pairs),
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
