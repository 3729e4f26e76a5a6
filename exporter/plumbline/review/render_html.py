"""A review as one HTML page: no script, nothing from outside, readable on a phone, on paper and by a screen reader."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.htmltext import Html, tag
from plumbline.pages.charts import swatch
from plumbline.pages.shell import folded_table, page, stacked_table
from plumbline.pages.style import STYLE
from plumbline.review.document import Block, Document, Paragraph, Point, Section, Table, TimePlot
from plumbline.review.time_plot import plot_svg, plot_table

OPEN_ROWS = 24
"""A longer table is folded; paper shows it always."""
_TONES = {"good": "Good", "note": "Watch", "bad": "Act", "unknown": "Not known"}
"""Colour is never alone."""
_STYLE = """
:root { --good: #17713c; --good-ground: #e4f3e9; --bad: #b3201f; --bad-ground: #fde7e5; --shade: #e9ebee; }
@media (prefers-color-scheme: dark) { :root { --good: #6fd08f; --good-ground: #14301f; --bad: #ff8f87;
  --bad-ground: #40191a; --shade: #2a3036; } }
body > header p { max-width: 52rem; margin: 0 0 .375rem; }
.points { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem;
  margin: 1.5rem 0; }
.point { padding: .875rem 1.125rem; border-radius: .5rem; border-left: .375rem solid var(--line);
  background: var(--card); }
.point p { margin: .375rem 0 0; font-size: .9375rem; }
.point p.answer { font-weight: 600; font-size: 1rem; }
.plots { margin-top: 1.25rem; } figure.of1 { flex: 1 1 30rem; max-width: 38rem; }
.point.good { background: var(--good-ground); border-color: var(--good); }
.point.note { background: var(--note-ground); border-color: var(--note); }
.point.bad { background: var(--bad-ground); border-color: var(--bad); }
.point .tone { font-size: .8125rem; font-weight: 600; float: right; margin-left: .5rem; }
.point.good .tone { color: var(--good); } .point.note .tone { color: var(--note); }
.point.bad .tone { color: var(--bad); }
section > p { max-width: 52rem; margin: 1rem 0; }
section h3 { margin: 1.5rem 0 .5rem; }
figure h3 { margin: 0; }
.main td, .main tbody th { font-variant-numeric: tabular-nums; }
.main td:empty::before { content: none; }
.shade { fill: var(--shade); } .level { stroke: var(--dim); stroke-width: 1.25; stroke-dasharray: 4 3; fill: none; }
.moment { stroke: var(--bad); stroke-width: 1.25; stroke-dasharray: 2 2; }
.dot { stroke: none; }
.words { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .375rem 1.25rem; max-width: 60rem; }
.words dt { font-weight: 600; color: var(--ink); }
@media screen and (max-width: 48rem) { .words { display: block; } .words dd { margin-bottom: .5rem; } }
@media print { :root { --good: #17713c; --good-ground: #fff; --bad: #b3201f; --bad-ground: #fff; --shade: #e4e4e4; }
  .point { border: 1px solid #bbb; border-left-width: .375rem; break-inside: avoid; }
  section { break-inside: auto; } h3 { break-after: avoid; } }
"""


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
    return page(document.title, STYLE + _STYLE, header, main)


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
