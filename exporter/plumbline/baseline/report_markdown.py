"""A report as Markdown for a wiki: the header, the tables of every layer and the data behind the plots."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.baseline.report_html import CONTRADICTS, DOUBT, figure_text, plot_table, said
from plumbline.baseline.report_model import Cell, Report, Section, Subject
from plumbline.baseline.shown import Figure
from plumbline.pages.markdown import escaped, table


def render_markdown(report: Report) -> str:
    """The whole text, in the tables of GitHub's Markdown, which most wikis read."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escaped(report.title)}: accepted performance"
    yield ""
    yield f"Written {report.made} by Plumbline {escaped(report.version)}."
    yield ""
    for subject in report.subjects:
        yield from _subject(subject)
    yield "Figures stand as they were printed, then in base units. 1 MB is 1,000,000 bytes, 1 MiB is 1,048,576."
    yield f"†: {DOUBT}. ‡: {CONTRADICTS}."
    yield ""
    for section in report.sections:
        yield from _section(section)
    for subject in report.subjects:
        yield from _rest(subject)


def _subject(subject: Subject) -> Iterator[str]:
    shown = subject.shown
    yield f"## {escaped(shown.name)} ({shown.source.value})"
    yield ""
    yield escaped(shown.title)
    yield ""
    facts = [*shown.facts.items(), *subject.fingerprint, *subject.hardware]
    if facts:
        yield from table(["What", "Is"], [[name, value] for name, value in facts])


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield ""
    rows = []
    for row in section.rows:
        workload = row.workload + (f" ({row.config_hash})" if row.config_hash else "")
        cells = (_cell(cell) if cell else "" for cell in row.cells)
        rows.append([row.device_class, workload, row.operation, row.what, *cells])
    yield from table(["Class", "Workload", "Operation", "What", *section.columns], rows)
    for plot in section.plots:
        yield f"### {escaped(plot.title)}"
        yield ""
        if plot.about:
            yield escaped(plot.about)
            yield ""
        heads, lines = plot_table(plot)
        yield from table(heads, lines)
    if section.notes:
        yield "Notes:"
        yield ""
        yield from (f"{number}. {escaped(note)}" for number, note in enumerate(section.notes, start=1))
        yield ""


def _cell(cell: Cell) -> str:
    text = "; ".join(_figure(figure) for figure in cell.figures)
    tolerance = f"; tolerance ×{cell.tolerance_ratio:.2f}" if cell.tolerance_ratio is not None else ""
    mark = " †" if not cell.judges else " ‡" if cell.contradicts else ""
    notes = f" (notes {', '.join(map(str, cell.notes))})" if cell.notes else ""
    return f"{text}{tolerance}{mark}{notes}"


def _figure(figure: Figure) -> str:
    name = figure.figure.removeprefix("latency.")
    text = figure_text(figure.printed, figure.base, figure.figure)
    return text if name in ("iops", "throughput") else f"{name} {text}"


def _rest(subject: Subject) -> Iterator[str]:
    shown = subject.shown
    lists = {
        "says differently at several places": [
            f"{each.about}: {said(each.says)}. Used: {each.used}. {each.why}" for each in shown.contradictions
        ],
        "prints figures that are no row": [f"{each.where}: {each.says}. {each.why}" for each in shown.left_out],
        "shows without printing figures": [
            f"{each.where}: {each.shows}{f'. {each.note}' if each.note else ''}" for each in shown.pictures
        ],
    }
    for heading, lines in lists.items():
        if lines:
            yield f"## What {escaped(shown.name)} {heading}"
            yield ""
            yield from (f"- {escaped(text)}" for text in lines)
            yield ""
