"""A report on baselines as data: what stands beside what, and which rows belong to one plot. Nothing is drawn here.

Plots follow from the workloads' typed parameters. Rows that differ in nothing but the queue depth, or nothing but the
block size, are points of one curve, a line for each baseline and device class; a line needs three points to be one.
Rows that are on no curve and differ only in the operation, the device class and the baseline are bars of one plot.
What was measured with other parameters than the workload has (a capped rate) is in the tables and in no plot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from plumbline.baseline import report_words as words
from plumbline.baseline.shown import Figure, Shown, ShownRow
from plumbline.workloads import LAYERS, BlockWorkload, TcpThroughput, Workload, WorkloadCatalogue

K = TypeVar("K", bound=Hashable)

CURVE_POINTS = 3
LINES = 8
"""So many lines a reader tells apart; a curve with more is a plot for each device class."""
LOG_FACTOR = 20.0
"""Beyond this ratio of highest to lowest an axis is logarithmic."""
LARGE_BYTES = 65536
"""From this operation size on throughput is what people ask for, below it IOPS."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One baseline of the report, with what it was measured on."""

    shown: Shown
    hardware: tuple[tuple[str, str], ...] = ()
    fingerprint: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """One figure of one row of one baseline."""

    base: float
    printed: str
    doubt: bool
    """It is shown and never judges: the document contradicts itself by more than a factor of two."""


@dataclass(frozen=True, slots=True)
class Line:
    """``values`` has one for each tick of the curve; ``None``: not measured, or not legible."""

    series: int
    values: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """``group`` is the operation, ``label`` the device class and, of several, the baseline."""

    group: str
    label: str
    subject: int
    value: Value


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity of a plot: ``lines`` of a curve or ``bars``."""

    figure: str
    """``iops``, ``throughput``, ``latency.mean`` …"""
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        """All of them."""
        return (*(v for line in self.lines for v in line.values if v is not None), *(bar.value for bar in self.bars))

    @property
    def logarithmic(self) -> bool:
        """Of a curve whose values lie far apart, as IOPS of disks and SSDs do; bars begin at 0 always."""
        bases = [value.base for value in self.values]
        return bool(self.lines) and max(bases) > LOG_FACTOR * min(bases)


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure of the report: panels side by side over one axis, or groups of bars."""

    title: str
    about: str
    panels: tuple[Panel, ...]
    axis: str = ""
    """What a curve's ticks are; empty for bars."""
    ticks: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    """Names of a curve's lines, or of the baselines that bars belong to."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one baseline says of a row; ``notes`` are numbers of the section's notes."""

    figures: tuple[Figure, ...]
    tolerance_ratio: float | None
    judges: bool
    contradicts: bool
    notes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One experiment on one device class; ``cells`` has one for each of the section's columns."""

    device_class: str
    workload: str
    operation: str
    what: str
    """The workload in words."""
    config_hash: str
    """Empty where these are the workload's own parameters."""
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One layer."""

    layer: str
    title: str
    columns: tuple[str, ...]
    """The baselines that say something of this layer; a row has a cell for each."""
    plots: tuple[Plot, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All of it, bottom-up; ``made`` is the moment of writing, ``version`` Plumbline's."""

    title: str
    made: str
    version: str
    subjects: tuple[Subject, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with its workload, and whether it may be drawn with others."""

    subject: int
    row: ShownRow
    workload: Workload

    @property
    def plain(self) -> bool:
        return self.row.config_hash == self.workload.config_hash()

    def value(self, figure: str) -> Value | None:
        for one in self.row.figures:
            if one.figure == figure:
                return Value(one.base, one.printed, not self.row.judges)
        return None


def build(subjects: Sequence[Subject], catalogue: WorkloadCatalogue, *, title: str, made: str, version: str) -> Report:
    """``subjects`` in the order of their columns."""
    rows = [
        _Row(index, row, catalogue.by_id[row.workload])
        for index, subject in enumerate(subjects)
        for row in subject.shown.rows
    ]
    names = [subject.shown.name for subject in subjects]
    sections = (_section(layer, [each for each in rows if each.row.layer == layer], names) for layer in LAYERS)
    return Report(title, made, version, tuple(subjects), tuple(section for section in sections if section.rows))


def _section(layer: str, rows: Sequence[_Row], names: Sequence[str]) -> Section:
    notes: dict[str, int] = {}
    plots = tuple(_plots([row for row in rows if row.plain], names))
    columns = sorted({row.subject for row in rows})
    table = tuple(_table(rows, columns, notes))
    title = words.LAYER_TITLES[layer]
    return Section(layer, title, tuple(names[index] for index in columns), plots, table, tuple(notes))


# --- tables


def _table(rows: Sequence[_Row], columns: Sequence[int], notes: dict[str, int]) -> Iterator[TableRow]:
    found: dict[tuple[str, ...], dict[int, _Row]] = {}
    for each in rows:
        row = each.row
        found.setdefault((row.device_class, row.workload, row.operation, row.config_hash), {})[each.subject] = each
    for (device_class, workload, operation, config_hash), cells in found.items():
        any_row = next(iter(cells.values()))
        yield TableRow(
            device_class,
            workload,
            operation,
            words.described(any_row.workload, operation),
            "" if any_row.plain else config_hash,
            tuple(_cell(cells[index].row, notes) if index in cells else None for index in columns),
        )


def _cell(row: ShownRow, notes: dict[str, int]) -> Cell:
    said = (*row.breaches, *row.notes)
    numbers = tuple(notes.setdefault(note, len(notes) + 1) for note in said)
    return Cell(row.figures, row.tolerance_ratio, row.judges, bool(row.breaches), numbers)


# --- plots


def _plots(rows: Sequence[_Row], names: Sequence[str]) -> Iterator[Plot]:
    drawn: set[int] = set()
    for over_depth in (True, False):
        for family in _families(rows, over_depth):
            lines = _by(family, lambda row: (row.subject, row.row.device_class))
            if any(len(line) >= CURVE_POINTS for line in lines.values()):
                drawn |= {id(row) for row in family}
                yield from _curves(family, names, over_depth)
    rest = [row for row in rows if id(row) not in drawn]
    for family in _by(rest, _bar_family).values():
        if len(family) > 1:
            yield _bars(family, names)


def _by(rows: Iterable[_Row], key: Callable[[_Row], K]) -> dict[K, list[_Row]]:
    found: dict[K, list[_Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _families(rows: Sequence[_Row], over_depth: bool) -> Iterable[list[_Row]]:
    """Rows that differ in the queue depth alone, or in the operation's size alone."""
    varied = words.depth_of if over_depth else words.size_of
    fit = [row for row in rows if varied(row.workload) is not None]
    return _by(fit, lambda row: _parameters(row, ("depth",) if over_depth else ("size",))).values()


_NAMES = {
    "depth": {"iodepth", "concurrent", "threads"},
    "size": {"block_size", "object_size", "io_size"},
    "action": {"pattern", "mode", "operation", "random", "sync", "rwmix_read"},
}


def _parameters(row: _Row, without: Iterable[str]) -> tuple[object, ...]:
    """All parameters of a row's experiment but those of one meaning; operations of a mix stay apart."""
    left_out = {"id", "description"}.union(*(_NAMES[name] for name in without))
    facts = msgspec.to_builtins(row.workload)
    operation = "" if "action" in without else row.row.operation
    return operation, *sorted((key, value) for key, value in facts.items() if key not in left_out)


def _bar_family(row: _Row) -> tuple[object, ...]:
    return _parameters(row, ("action",))


def _curves(family: Sequence[_Row], names: Sequence[str], over_depth: bool) -> Iterator[Plot]:
    lines = _by(family, lambda row: (row.subject, row.row.device_class))
    if len(lines) > LINES:
        for group in _by(family, lambda row: row.row.device_class).values():
            yield _curve(group, names, over_depth, group[0].row.device_class)
    else:
        yield _curve(family, names, over_depth, "")


def _curve(family: Sequence[_Row], names: Sequence[str], over_depth: bool, device_class: str) -> Plot:
    varied = words.depth_of if over_depth else words.size_of
    ticks = sorted({x for row in family if (x := varied(row.workload)) is not None})
    first = family[0].workload
    lines = _by(family, lambda row: (row.subject, row.row.device_class))
    labels = tuple(_label(group[0], names) for group in lines.values())

    def panel(figure: str) -> Panel:
        found = []
        for index, group in enumerate(lines.values()):
            at = {varied(row.workload): row.value(figure) for row in group}
            if any(at.values()):
                found.append(Line(index, tuple(at.get(tick) for tick in ticks)))
        return Panel(figure, lines=tuple(found))

    about = ", ".join(
        filter(None, (words.tool(first), words.shape(first, size=over_depth, depth=not over_depth), device_class))
    )
    return Plot(
        title=f"{words.action(first, family[0].row.operation)} over {'queue depth' if over_depth else 'block size'}",
        about=about,
        panels=tuple(panel(figure) for figure in _figures(family, rates=1 if over_depth else 2)),
        axis=_axis(first, over_depth),
        ticks=tuple(str(tick) if over_depth else words.bytes_text(tick) for tick in ticks),
        series=labels,
    )


def _axis(workload: Workload, over_depth: bool) -> str:
    if not over_depth:
        return "block size" if isinstance(workload, BlockWorkload) else "size of one operation"
    jobs = workload.jobs if isinstance(workload, BlockWorkload) else 1
    return "operations in flight" + (" in each process" if jobs > 1 else "")


def _bars(family: Sequence[_Row], names: Sequence[str]) -> Plot:
    first = family[0].workload
    used = list(dict.fromkeys(row.subject for row in family))
    groups = _by(family, lambda row: words.action(row.workload, row.row.operation))

    def panel(figure: str) -> Panel:
        bars = []
        for group, rows in groups.items():
            for row in rows:
                value = row.value(figure)
                if value is not None:
                    label = _label(row, names if len(used) > 1 else ())
                    bars.append(Bar(group, label, used.index(row.subject), value))
        return Panel(figure, bars=tuple(bars))

    title = words.tool(first) or ("Reads and writes" if len(groups) > 1 else next(iter(groups)))
    return Plot(
        title=title,
        about=words.shape(first),
        panels=tuple(panel(figure) for figure in _figures(family, rates=1)),
        series=tuple(names[index] for index in used),
    )


def _label(row: _Row, names: Sequence[str]) -> str:
    return f"{row.row.device_class}, {names[row.subject]}" if len(names) > 1 else row.row.device_class


def _figures(family: Sequence[_Row], *, rates: int) -> Iterator[str]:
    """What is drawn: ``rates`` of IOPS and throughput, the one that matters first; then the mean latency, and the
    median where a row has no mean."""
    have = {figure.figure for row in family for figure in row.row.figures}
    workload = family[0].workload
    large = isinstance(workload, TcpThroughput) or (words.size_of(workload) or 0) >= LARGE_BYTES
    order = ("throughput", "iops") if large and rates == 1 else ("iops", "throughput")
    yield from [figure for figure in order if figure in have][:rates]
    if "latency.mean" in have:
        yield "latency.mean"
    if any(row.value("latency.p50") and not row.value("latency.mean") for row in family):
        yield "latency.p50"
