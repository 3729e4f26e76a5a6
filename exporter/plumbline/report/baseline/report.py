"""A report on baselines: which figures are shown side by side, as a page and as Markdown."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from plumbline.baseline.model import Source
from plumbline.baseline.shown import Figure, Shown, ShownRow
from plumbline.config.workloads import LAYERS, load_catalogue
from plumbline.core.grouping import grouped
from plumbline.pages import document as pages
from plumbline.pages.markdown import markdown
from plumbline.pages.templates import render
from plumbline.report.baseline import words
from plumbline.report.baseline.plot import Row, plots


class Subject(Struct, frozen=True):
    """One baseline of the report, with its hardware and fingerprint."""

    shown: Shown
    hardware: tuple[tuple[str, str], ...] = ()
    fingerprint: tuple[tuple[str, str], ...] = ()

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        return *self.shown.facts.items(), *self.fingerprint

    @property
    def beyond(self) -> list[tuple[str, tuple[str, ...]]]:
        """What the document has besides its rows: headings with sentences."""
        shown = self.shown
        contradictions = (
            f"{contradiction.about}: {'; '.join(f'{place.text} ({place.where})' for place in contradiction.says)}."
            f" Used: {contradiction.used}. {contradiction.why}"
            for contradiction in shown.contradictions
        )
        left_out = (f"{row.where}: {row.says}. {row.why}" for row in shown.left_out)
        pictures = (
            f"{picture.where}: {'. '.join(filter(None, (picture.shows, picture.note)))}" for picture in shown.pictures
        )
        lists = (
            ("Contradictions within the document", tuple(contradictions)),
            ("Figures not included as rows", tuple(left_out)),
            ("Pictures without figures", tuple(pictures)),
        )
        return [(heading, lines) for heading, lines in lists if lines]


class Cell(Struct, frozen=True):
    """What one baseline has for a row; ``notes`` are numbers of the section's notes."""

    row: ShownRow
    notes: tuple[int, ...]


class TableRow(Struct, frozen=True):
    """One experiment on one device class; ``what`` describes the workload, ``cells`` has one for each of the section's
    columns. ``config_hash`` is empty if these are the workload's own parameters."""

    device_class: str
    workload: str
    operation: str
    what: str
    config_hash: str
    cells: tuple[Cell | None, ...]

    @property
    def name(self) -> str:
        """The workload, and the operation if the workload's name does not contain it."""
        return self.workload if self.operation in self.workload.split("-")[0] else f"{self.workload} {self.operation}"


class Section(Struct, frozen=True):
    """One layer of the report; ``columns`` are the baselines with figures for it."""

    layer: str
    title: str
    columns: tuple[str, ...]
    plots: tuple[pages.Plot, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]

    @property
    def by_class(self) -> dict[str, list[TableRow]]:
        return grouped(self.rows, lambda row: row.device_class)


class Report(Struct, frozen=True):
    """The whole report, bottom-up; ``made`` is the time of writing, ``version`` is Plumbline's."""

    title: str
    made: str
    version: str
    subjects: tuple[Subject, ...]
    sections: tuple[Section, ...]


def build(subjects: Sequence[Subject], *, title: str, made: str, version: str) -> Report:
    """Build the report; the columns have the order of ``subjects``."""
    rows = [
        Row(index, row, load_catalogue().by_id[row.workload])
        for index, subject in enumerate(subjects)
        for row in subject.shown.rows
    ]
    layers = grouped(rows, lambda row: row.row.layer)
    names = [subject.shown.name for subject in subjects]
    sections = tuple(_section(layer, layers[layer], names) for layer in LAYERS if layer in layers)
    return Report(f"{title}: accepted performance", made, version, tuple(subjects), sections)


def _section(layer: str, rows: Sequence[Row], names: Sequence[str]) -> Section:
    notes: dict[str, int] = {}
    columns = sorted({row.subject for row in rows})
    table = tuple(_table(rows, columns, notes))
    shown = tuple(names[index] for index in columns)
    return Section(layer, words.LAYER_TITLES[layer], shown, plots(rows, names), table, tuple(notes))


def _table(rows: Sequence[Row], columns: Sequence[int], notes: dict[str, int]) -> Iterator[TableRow]:
    for (device_class, workload, operation, config_hash), group in grouped(rows, _experiment).items():
        cells = {row.subject: _cell(row.row, notes) for row in group}
        what = words.described(group[0].workload, operation)
        own_parameters = "" if group[0].plain else config_hash
        yield TableRow(device_class, workload, operation, what, own_parameters, tuple(map(cells.get, columns)))


def _experiment(row: Row) -> tuple[str, str, str, str]:
    return row.row.device_class, row.row.workload, row.row.operation, row.row.config_hash


def _cell(row: ShownRow, notes: dict[str, int]) -> Cell:
    return Cell(row, tuple(notes.setdefault(note, len(notes) + 1) for note in (*row.breaches, *row.notes)))


def render_html(report: Report) -> str:
    rows = [cell.row for section in report.sections for row in section.rows for cell in row.cells if cell]
    return render(
        "baseline.html",
        report=report,
        words=words,
        doubts=not all(row.judges for row in rows),
        contradicts=any(row.breaches and row.judges for row in rows),
        measured=any(subject.shown.source is Source.MEASURED for subject in report.subjects),
    )


def render_markdown(report: Report) -> str:
    """The whole text: the header and, for every layer, the table and the data of its plots."""
    how_to_read = pages.Paragraph(
        "Figures are given as printed, then in base units. 1 MB is 1,000,000 bytes, 1 MiB is 1,048,576.",
        (f"†: {words.DOUBT}. ‡: {words.CONTRADICTS}.",),
    )
    sections = [_subject(subject) for subject in report.subjects]
    sections[-1].blocks.append(how_to_read)
    sections += map(_layer, report.sections)
    sections += [
        pages.Section("", f"{subject.shown.name}: {heading}", "", [pages.Listing(lines)])
        for subject in report.subjects
        for heading, lines in subject.beyond
    ]
    lead = (f"Written {report.made} by Plumbline {report.version}.",)
    return markdown(pages.Document(report.title, lead, tuple(sections)))


def _subject(subject: Subject) -> pages.Section:
    shown = subject.shown
    facts = (*subject.facts, *subject.hardware)
    blocks: list[pages.Block] = [pages.Table("", ("What", "Is"), facts)] if facts else []
    return pages.Section("", f"{shown.name} ({shown.source.value})", shown.title, blocks)


def _layer(section: Section) -> pages.Section:
    rows = tuple(
        (
            row.device_class,
            row.workload + (f" ({row.config_hash})" if row.config_hash else ""),
            row.operation,
            row.what,
            *(_cell_text(cell) if cell else "" for cell in row.cells),
        )
        for row in section.rows
    )
    heads = ("Class", "Workload", "Operation", "What", *section.columns)
    blocks: list[pages.Block] = [pages.Table("", heads, rows), *section.plots]
    if section.notes:
        blocks += [pages.Paragraph("Notes:"), pages.Listing(section.notes, numbered=True)]
    return pages.Section("", section.title, "", blocks)


def _cell_text(cell: Cell) -> str:
    row = cell.row
    text = "; ".join(map(_figure, row.figures))
    tolerance = f"; tolerance ×{row.tolerance_ratio:.2f}" if row.tolerance_ratio is not None else ""
    tolerance += f"; {row.level}" if row.level else ""
    mark = " †" if not row.judges else " ‡" if row.breaches else ""
    notes = f" (notes {', '.join(map(str, cell.notes))})" if cell.notes else ""
    return f"{text}{tolerance}{mark}{notes}"


def _figure(figure: Figure) -> str:
    text = words.figure_text(figure)
    return text if figure.figure in words.BASE_UNITS else f"{figure.figure.removeprefix('latency.')} {text}"
