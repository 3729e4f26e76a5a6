"""A report on baselines as data: which figures are shown side by side. :mod:`.plot` makes its plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plumbline.baseline.shown import Shown, ShownRow
from plumbline.config.workloads import LAYERS, WorkloadCatalogue
from plumbline.pages.document import Plot
from plumbline.report.baseline import words
from plumbline.report.baseline.plot import Row, plots


@dataclass(frozen=True, slots=True)
class Subject:
    """One baseline of the report, with its hardware and fingerprint."""

    shown: Shown
    hardware: tuple[tuple[str, str], ...] = ()
    fingerprint: tuple[tuple[str, str], ...] = ()

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Names and values."""
        return *self.shown.facts.items(), *self.fingerprint

    @property
    def beyond(self) -> list[tuple[str, tuple[str, ...]]]:
        """What the document has besides its rows: headings with sentences."""
        shown = self.shown
        found = (
            (
                "What the document says differently at several places",
                tuple(
                    f"{each.about}: {'; '.join(f'{place.text} ({place.where})' for place in each.says)}."
                    f" Used: {each.used}. {each.why}"
                    for each in shown.contradictions
                ),
            ),
            ("Figures that are no row", tuple(f"{each.where}: {each.says}. {each.why}" for each in shown.left_out)),
            (
                "Pictures without figures",
                tuple(f"{each.where}: {'. '.join(filter(None, (each.shows, each.note)))}" for each in shown.pictures),
            ),
        )
        return [(heading, lines) for heading, lines in found if lines]


@dataclass(frozen=True, slots=True)
class CellFigure:
    """``name``: ``iops``, ``throughput``, ``mean``, ``p99`` …; ``base`` is empty if it would repeat ``printed``."""

    name: str
    printed: str
    base: str


@dataclass(frozen=True, slots=True)
class Cell:
    """What one baseline has for a row; ``notes`` are numbers of the section's notes."""

    figures: tuple[CellFigure, ...]
    tolerance_ratio: float | None
    judges: bool
    contradicts: bool
    notes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One experiment on one device class; ``cells`` has one cell for each of the section's columns."""

    device_class: str
    workload: str
    operation: str
    what: str
    """The workload in words."""
    config_hash: str
    """Empty if these are the workload's own parameters."""
    cells: tuple[Cell | None, ...]

    @property
    def name(self) -> str:
        """The workload, and the operation if the workload's name does not contain it."""
        return self.workload if self.operation in self.workload.split("-")[0] else f"{self.workload} {self.operation}"


@dataclass(frozen=True, slots=True)
class Section:
    """One layer of the report."""

    layer: str
    title: str
    columns: tuple[str, ...]
    """The baselines with figures for this layer; a row has a cell for each."""
    plots: tuple[Plot, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]

    @property
    def by_class(self) -> dict[str, list[TableRow]]:
        """Rows by device class, in order of first appearance."""
        found: dict[str, list[TableRow]] = {}
        for row in self.rows:
            found.setdefault(row.device_class, []).append(row)
        return found


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report, bottom-up; ``made`` is the time of writing, ``version`` is Plumbline's."""

    title: str
    made: str
    version: str
    subjects: tuple[Subject, ...]
    sections: tuple[Section, ...]

    @property
    def cells(self) -> list[Cell]:
        """All cells of all sections."""
        return [cell for section in self.sections for row in section.rows for cell in row.cells if cell]


def build(subjects: Sequence[Subject], catalogue: WorkloadCatalogue, *, title: str, made: str, version: str) -> Report:
    """Build the report; the columns have the order of ``subjects``."""
    rows = [
        Row(index, row, catalogue.by_id[row.workload])
        for index, subject in enumerate(subjects)
        for row in subject.shown.rows
    ]
    names = [subject.shown.name for subject in subjects]
    sections = (_section(layer, [each for each in rows if each.row.layer == layer], names) for layer in LAYERS)
    return Report(title, made, version, tuple(subjects), tuple(section for section in sections if section.rows))


def _section(layer: str, rows: Sequence[Row], names: Sequence[str]) -> Section:
    notes: dict[str, int] = {}
    columns = sorted({row.subject for row in rows})
    table = tuple(_table(rows, columns, notes))
    title = words.LAYER_TITLES[layer]
    return Section(layer, title, tuple(names[index] for index in columns), plots(rows, names), table, tuple(notes))


# --- tables


def _table(rows: Sequence[Row], columns: Sequence[int], notes: dict[str, int]) -> Iterator[TableRow]:
    found: dict[tuple[str, ...], dict[int, Row]] = {}
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
    figures = tuple(
        CellFigure(each.figure.removeprefix("latency."), each.printed, words.in_base(each)) for each in row.figures
    )
    return Cell(figures, row.tolerance_ratio, row.judges, bool(row.breaches), numbers)
