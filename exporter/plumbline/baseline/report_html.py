"""A report as one HTML page: no script, nothing from outside, readable on a phone, on paper and by a screen reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plumbline.baseline import report_words as words
from plumbline.baseline.documented import Statement
from plumbline.baseline.report_model import Cell, Panel, Plot, Report, Section, Subject, TableRow, Value
from plumbline.baseline.report_plot import panel_svg
from plumbline.baseline.shown import Figure
from plumbline.htmltext import Html, joined, tag
from plumbline.pages.charts import bar_swatch, hollow_swatch, swatch
from plumbline.pages.figures import base_text
from plumbline.pages.shell import folded_table, page
from plumbline.pages.style import style

OPEN_ROWS = 24
"""A longer table is folded: who reads the plots first would scroll past a hundred rows. Paper shows it always."""
DOUBT = "in doubt: the document contradicts itself by more than a factor of two; shown, never judges"
CONTRADICTS = "the document contradicts itself here; the note says how"


def render_html(report: Report) -> str:
    """The whole page."""
    name = f"{report.title}: accepted performance"
    return page(name, style("report"), _header(report), tag("main", *_main(report)))


def _header(report: Report) -> Html:
    links = [tag("li", tag("a", section.title, href=f"#{section.layer}")) for section in report.sections]
    return tag(
        "header",
        tag("h1", f"{report.title}: accepted performance"),
        tag("p", f"Written {report.made} by Plumbline {report.version}", class_="lead"),
        tag("nav", tag("ul", *links), aria_label="Layers"),
    )


def _main(report: Report) -> Iterator[Html]:
    yield tag("div", *(_subject(subject) for subject in report.subjects), class_="subjects")
    yield _how_to_read(report)
    for section in report.sections:
        yield tag("section", *_section(section), aria_labelledby=section.layer)
    yield from _rest(report.subjects)
    if any(subject.shown.source == "measured" for subject in report.subjects):
        yield tag("p", "Accepted by: ______________________________   Date: ______________", class_="signed")


def _subject(subject: Subject) -> Html:
    shown = subject.shown
    heading = tag("h3", f"{shown.name} ", tag("span", shown.source, class_="chip"))
    more = Html()
    if subject.hardware:
        more = tag("details", tag("summary", f"Hardware ({len(subject.hardware)})"), _pairs(subject.hardware))
    facts = _pairs([*shown.facts.items(), *subject.fingerprint])
    return tag("article", heading, tag("div", shown.title), facts, more, class_="subject")


def _pairs(facts: Iterable[tuple[str, str]]) -> Html:
    return tag("dl", *(joined(tag("dt", name), tag("dd", value)) for name, value in facts))


def _how_to_read(report: Report) -> Html:
    cells = [cell for section in report.sections for row in section.rows for cell in row.cells if cell]
    parts = [
        "Figures stand as they were printed, and beside them in base units: seconds, operations and bytes per second. "
        "1 MB is 1,000,000 bytes, 1 MiB is 1,048,576."
    ]
    if any(not cell.judges for cell in cells):
        parts.append(f"† and hollow marks: {DOUBT}.")
    if any(cell.contradicts and cell.judges for cell in cells):
        parts.append(f"‡: {CONTRADICTS}.")
    return tag("p", " ".join(parts), class_="dim")


def _section(section: Section) -> Iterator[Html]:
    yield tag("h2", section.title, id=section.layer)
    plots = (_plot(plot, f"{section.layer}-{index}") for index, plot in enumerate(section.plots))
    yield tag("div", *plots, class_="plots")
    parts = [_table(section)]
    if section.notes:
        items = (
            tag("li", note, id=f"{section.layer}-note-{number}") for number, note in enumerate(section.notes, start=1)
        )
        parts.append(tag("div", tag("h3", "Notes"), tag("ol", *items), class_="notes"))
    title = f"{section.title}: all figures ({len(section.rows)} rows)"
    folded = tag("details", tag("summary", title), *parts, class_="all")
    yield folded if len(section.rows) > OPEN_ROWS else Html(folded.replace("<details", "<details open", 1))


# --- plots


def _plot(plot: Plot, ident: str) -> Html:
    panels = (
        tag("div", tag("h4", words.FIGURE_TITLES[panel.figure]), panel_svg(plot, panel, f"{ident}-{n}"), class_="panel")
        for n, panel in enumerate(plot.panels)
    )
    about = tag("p", plot.about) if plot.about else Html()
    caption = tag("figcaption", tag("h3", plot.title), about, _legend(plot))
    return tag("figure", caption, tag("div", *panels, class_="panels"), _data(plot), class_=f"of{len(plot.panels)}")


def _legend(plot: Plot) -> Html:
    mark = swatch if plot.ticks else bar_swatch
    items = [tag("li", mark(n), name) for n, name in enumerate(plot.series)] if len(plot.series) > 1 else []
    if any(value.doubt for panel in plot.panels for value in panel.values):
        items.append(tag("li", hollow_swatch(), "hollow: in doubt"))
    return tag("ul", *items, class_="legend") if items else Html()


def _data(plot: Plot) -> Html:
    heads, rows = plot_table(plot)
    return folded_table(f"Data of {plot.title}", f"Data of “{plot.title}”", heads, rows)


def plot_table(plot: Plot) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a plot's data, as printed and with base units; † marks what is in doubt."""
    if plot.ticks:
        heads = [plot.axis.capitalize()]
        columns = []
        for panel in plot.panels:
            for line in panel.lines:
                heads.append(f"{plot.series[line.series]}: {words.FIGURE_TITLES[panel.figure].lower()}")
                columns.append([_value_text(value, panel) for value in line.values])
        return heads, [[tick, *(column[n] for column in columns)] for n, tick in enumerate(plot.ticks)]
    found: dict[tuple[str, str], dict[str, str]] = {}
    for panel in plot.panels:
        for bar in panel.bars:
            found.setdefault((bar.group, bar.label), {})[panel.figure] = _value_text(bar.value, panel)
    heads = ["Operation", "Of", *(words.FIGURE_TITLES[panel.figure] for panel in plot.panels)]
    return heads, [[*key, *(cells.get(panel.figure, "") for panel in plot.panels)] for key, cells in found.items()]


def _value_text(value: Value | None, panel: Panel) -> str:
    if value is None:
        return ""
    return f"{figure_text(value.printed, value.base, panel.figure)}{' †' if value.doubt else ''}"


def figure_text(printed: str, base: float, figure: str) -> str:
    """``28.20 MiB/s = 29,569,843 B/s``; once where it is printed in the base unit, and short enough to be read."""
    unit = words.base_unit(figure)
    if printed.endswith(f" {unit}") and len(printed) <= words.READABLE:
        return printed
    if figure == "iops" and printed.replace(",", "").split()[0] == f"{base:.0f}":
        return printed
    return f"{printed} = {base_text(base, unit)}"


# --- tables


def _table(section: Section) -> Html:
    heads = ["Workload", *section.columns]
    head = tag("thead", tag("tr", *(tag("th", name, scope="col", role="columnheader") for name in heads), role="row"))
    lines, device_class = [], None
    for row in sorted(section.rows, key=lambda row: _order(section.rows, row)):
        if row.device_class != device_class:
            device_class = row.device_class
            heading = tag("th", device_class, colspan=str(len(heads)), scope="rowgroup", role="rowheader")
            lines.append(tag("tr", heading, class_="class", role="row"))
        lines.append(_line(section.layer, row, section.columns))
    caption = tag("caption", f"{section.title}: all figures", class_="unseen")
    return tag("table", caption, head, tag("tbody", *lines, role="rowgroup"), class_="main", role="table")


def _order(rows: Sequence[TableRow], row: TableRow) -> int:
    """Classes in the order in which they come first."""
    return next(index for index, each in enumerate(rows) if each.device_class == row.device_class)


def _line(layer: str, row: TableRow, names: Sequence[str]) -> Html:
    small = [tag("small", row.what)]
    if row.config_hash:
        small.append(tag("small", f"other parameters than the workload's: {row.config_hash}"))
    cells = (
        tag("td", _cell(layer, cell) if cell else Html(), data_label=name, role="cell")
        for name, cell in zip(names, row.cells, strict=True)
    )
    operation = f" {row.operation}" if row.operation not in row.workload.split("-")[0] else ""
    return tag("tr", tag("th", f"{row.workload}{operation}", *small, scope="row", role="rowheader"), *cells, role="row")


def _cell(layer: str, cell: Cell) -> Html:
    pairs = (pair for figure in cell.figures for pair in _figure(figure))
    notes = [tag("a", str(number), " ", href=f"#{layer}-note-{number}") for number in cell.notes]
    extra = []
    if cell.tolerance_ratio is not None:
        extra.append(tag("span", f"tolerance ×{cell.tolerance_ratio:.2f}"))
    if not cell.judges:
        extra.append(tag("span", "† in doubt", class_="mark", title=DOUBT))
    elif cell.contradicts:
        extra.append(tag("span", "‡ contradicted", class_="mark", title=CONTRADICTS))
    if notes:
        extra.append(tag("span", "notes ", *notes))
    said_below = tag("div", *extra, class_="below") if extra else Html()
    inner = joined(tag("dl", *pairs, class_="figures"), said_below)
    return tag("div", inner, class_="" if cell.judges else "doubtful")


def _figure(figure: Figure) -> Iterable[Html]:
    name = figure.figure.removeprefix("latency.")
    yield tag("dt", {"iops": "IOPS", "throughput": "rate"}.get(name, name))
    text = figure_text(figure.printed, figure.base, figure.figure)
    _, separator, base = text.partition(" = ")
    yield tag("dd", figure.printed, tag("small", f"= {base}") if separator else Html())


# --- what is no row


def _rest(subjects: Sequence[Subject]) -> Iterator[Html]:
    for subject in subjects:
        shown = subject.shown
        lists = []
        if shown.contradictions:
            lists.append(tag("h3", "What the document says differently at several places"))
            lists.append(_list(f"{c.about}: {said(c.says)}. Used: {c.used}. {c.why}" for c in shown.contradictions))
        if shown.left_out:
            lists.append(tag("h3", "Figures that are no row"))
            lists.append(_list(f"{each.where}: {each.says}. {each.why}" for each in shown.left_out))
        if shown.pictures:
            lists.append(tag("h3", "Pictures without figures"))
            lists.append(
                _list(f"{each.where}: {each.shows}{f'. {each.note}' if each.note else ''}" for each in shown.pictures)
            )
        if lists:
            heading = tag("h2", f"{shown.name}: beyond the figures")
            yield tag("section", heading, tag("div", *lists, class_="rest"))


def said(statements: Iterable[Statement]) -> str:
    """``37 (8.1); 115 (10.3)``."""
    return "; ".join(f"{each.text} ({each.where})" for each in statements)


def _list(lines: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", line) for line in lines))
