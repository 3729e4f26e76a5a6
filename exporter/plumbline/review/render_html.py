"""A review as one HTML page: no script, nothing from outside, readable on a phone, on paper and by a screen reader."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.htmltext import Html, tag
from plumbline.pages.charts import swatch
from plumbline.pages.shell import folded_table, page, stacked_table
from plumbline.pages.style import style
from plumbline.review.document import Block, Document, Paragraph, Point, Section, Table, TimePlot
from plumbline.review.time_plot import plot_svg, plot_table

OPEN_ROWS = 24
"""A longer table is folded; paper shows it always."""
_TONES = {"good": "Good", "note": "Watch", "bad": "Act", "unknown": "Not known"}
"""Colour is never alone."""


def render_html(document: Document) -> str:
    """The whole page."""
    links = [tag("li", tag("a", each.title, href=f"#{each.ident}")) for each in document.sections]
    links.append(tag("li", tag("a", "Words", href="#words")))
    header = tag(
        "header",
        tag("h1", document.title),
        *(tag("p", sentence) for sentence in document.lead),
        tag("nav", tag("ul", *links), aria_label="Sections"),
    )
    words = [part for term, meaning in document.glossary for part in (tag("dt", term), tag("dd", meaning))]
    glossary = tag(
        "section", tag("h2", "Words", id="words"), tag("dl", *words, class_="words"), aria_labelledby="words"
    )
    main = tag(
        "main",
        tag("h2", "What matters", class_="unseen"),
        tag("div", *(_point(point) for point in document.points), class_="points"),
        *(tag("section", *_section(each), aria_labelledby=each.ident) for each in document.sections),
        glossary,
    )
    return page(document.title, style("report", "review"), header, main)


def _point(point: Point) -> Html:
    tone = tag("span", _TONES[point.tone], class_="tone")
    said = [tag("p", point.answer, class_="answer"), *(tag("p", sentence) for sentence in point.more)]
    return tag("article", tone, tag("h3", point.question), *said, class_=f"point {point.tone}")


def _section(section: Section) -> Iterator[Html]:
    yield tag("h2", section.title, id=section.ident)
    yield tag("p", section.about, class_="dim")
    plots: list[Html] = []
    for index, block in enumerate(section.blocks):
        if isinstance(block, TimePlot):
            plots.append(_plot(block, f"{section.ident}-{index}"))
            continue
        if plots:
            yield tag("div", *plots, class_="plots")
            plots = []
        yield from _block(block)
    if plots:
        yield tag("div", *plots, class_="plots")


def _block(block: Block) -> Iterator[Html]:
    match block:
        case Paragraph():
            yield tag("p", block.text)
        case Table():
            table = stacked_table(block.title, block.heads, block.rows)
            if len(block.rows) > OPEN_ROWS:
                yield tag("details", tag("summary", f"{block.title} ({len(block.rows)} rows)"), table, class_="all")
            else:
                yield tag("h3", block.title)
                yield table


def _plot(plot: TimePlot, ident: str) -> Html:
    legend = Html()
    if len(plot.lines) > 1:
        items = (tag("li", swatch(index), line.name) for index, line in enumerate(plot.lines))
        legend = tag("ul", *items, class_="legend")
    caption = tag("figcaption", tag("h3", plot.title), tag("p", plot.about), legend)
    panel = tag("div", tag("div", plot_svg(plot, ident), class_="panel"), class_="panels")
    data = folded_table(f"Data of {plot.title}", f"Data of “{plot.title}”, by the week", *plot_table(plot))
    return tag("figure", caption, panel, data, class_="of1")
