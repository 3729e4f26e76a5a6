"""Renders a report on baselines as HTML, and as Markdown for a wiki."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plumbline.baseline.model import Source
from plumbline.pages import document as pages
from plumbline.pages.markdown import markdown
from plumbline.pages.templates import render
from plumbline.report.baseline import words
from plumbline.report.baseline.model import Cell, CellFigure, Report, Section, Subject


def render_html(report: Report) -> str:
    """The whole page."""
    return render(
        "baseline.html",
        report=report,
        words=words,
        doubts=any(not cell.judges for cell in report.cells),
        contradicts=any(cell.contradicts and cell.judges for cell in report.cells),
        measured=any(subject.shown.source is Source.MEASURED for subject in report.subjects),
    )


def render_markdown(report: Report) -> str:
    """The whole text: the header and, for every layer, the table and the data of its plots."""
    last = _subject(report.subjects[-1])
    return markdown(
        pages.Document(
            title=f"{report.title}: accepted performance",
            lead=(f"Written {report.made} by Plumbline {report.version}.",),
            sections=(
                *map(_subject, report.subjects[:-1]),
                replace(last, blocks=(*last.blocks, _how_to_read())),
                *map(_layer, report.sections),
                *(section for subject in report.subjects for section in _beyond(subject)),
            ),
        )
    )


def _how_to_read() -> pages.Paragraph:
    text = "Figures stand as they were printed, then in base units. 1 MB is 1,000,000 bytes, 1 MiB is 1,048,576."
    return pages.Paragraph(text, (f"†: {words.DOUBT}. ‡: {words.CONTRADICTS}.",))


def _subject(subject: Subject) -> pages.Section:
    shown = subject.shown
    facts = (*subject.facts, *subject.hardware)
    blocks = (pages.Table("", ("What", "Is"), facts),) if facts else ()
    return pages.Section("", f"{shown.name} ({shown.source.value})", shown.title, blocks)


def _layer(section: Section) -> pages.Section:
    rows = tuple(
        (
            row.device_class,
            row.workload + (f" ({row.config_hash})" if row.config_hash else ""),
            row.operation,
            row.what,
            *(_cell(cell) if cell else "" for cell in row.cells),
        )
        for row in section.rows
    )
    table = pages.Table("", ("Class", "Workload", "Operation", "What", *section.columns), rows)
    notes = (pages.Paragraph("Notes:"), pages.Listing(section.notes, numbered=True)) if section.notes else ()
    return pages.Section("", section.title, "", (table, *section.plots, *notes))


def _cell(cell: Cell) -> str:
    text = "; ".join(_figure(figure) for figure in cell.figures)
    tolerance = f"; tolerance ×{cell.tolerance_ratio:.2f}" if cell.tolerance_ratio is not None else ""
    mark = " †" if not cell.judges else " ‡" if cell.contradicts else ""
    notes = f" (notes {', '.join(map(str, cell.notes))})" if cell.notes else ""
    return f"{text}{tolerance}{mark}{notes}"


def _figure(figure: CellFigure) -> str:
    text = " = ".join(filter(None, (figure.printed, figure.base)))
    return text if figure.name in ("iops", "throughput") else f"{figure.name} {text}"


def _beyond(subject: Subject) -> Iterator[pages.Section]:
    for heading, lines in subject.beyond:
        yield pages.Section("", f"{subject.shown.name}: {heading}", "", (pages.Listing(lines),))
