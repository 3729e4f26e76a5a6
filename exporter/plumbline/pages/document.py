"""A report as a document: text, tables and plots in order. The templates and the Markdown writer render it."""

from typing import ClassVar, Literal

from msgspec import Struct

from plumbline.pages.charts import BarChart, LineChart, bar_swatch, hollow_swatch, swatch
from plumbline.pages.htmltext import Html


class Paragraph(Struct, frozen=True):
    """Plain sentences; ``more`` holds further lines."""

    kind: ClassVar[Literal["paragraph"]] = "paragraph"
    text: str
    more: tuple[str, ...] = ()


class Listing(Struct, frozen=True):
    kind: ClassVar[Literal["listing"]] = "listing"
    items: tuple[str, ...]
    numbered: bool = False


class Table(Struct, frozen=True):
    """``rows`` have as many cells as ``heads``; the first column names the row."""

    kind: ClassVar[Literal["table"]] = "table"
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Plot(Struct, frozen=True):
    """Charts side by side, and their data as a table. ``series`` are the legend's names, ordered by colour. A panel is
    a heading (empty if the title is enough) and its chart. ``weekly``: the table has weekly medians, the chart has more
    points. ``picture_only``: another table already has the data, so Markdown omits the plot."""

    kind: ClassVar[Literal["plot"]] = "plot"
    title: str
    about: str
    panels: tuple[tuple[str, LineChart | BarChart], ...]
    series: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    weekly: bool = False
    picture_only: bool = False

    @property
    def legend(self) -> list[tuple[Html, str]]:
        """Swatches and names, if there are several series, plus one for doubtful values."""
        mark = bar_swatch if any(isinstance(chart, BarChart) for _, chart in self.panels) else swatch
        items = [(mark(index), name) for index, name in enumerate(self.series)] if len(self.series) > 1 else []
        if any(mark.doubt for _, chart in self.panels for mark in chart.marks):
            items.append((hollow_swatch(), "hollow: in doubt"))
        return items


Block = Paragraph | Listing | Table | Plot


class Section(Struct, frozen=True):
    """``about`` explains the section to a newcomer in a sentence or two; it may be empty."""

    ident: str
    title: str
    about: str
    blocks: list[Block]


class Point(Struct, frozen=True):
    """One of the main results. ``tone`` is good, note, bad or unknown; the words must say it too."""

    question: str
    answer: str
    tone: str
    more: tuple[str, ...] = ()


class Document(Struct, frozen=True):
    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    points: tuple[Point, ...] = ()
    glossary: tuple[tuple[str, str], ...] = ()
