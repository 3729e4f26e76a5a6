"""A report as a document: words, tables and plots in their order. Templates and the Markdown writer read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from plumbline.pages.charts import BarChart, LineChart, bar_swatch, hollow_swatch, swatch
from plumbline.pages.htmltext import Html


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain sentences; ``more`` are further lines of it."""

    kind: ClassVar[Literal["paragraph"]] = "paragraph"
    text: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """One line an item."""

    kind: ClassVar[Literal["listing"]] = "listing"
    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` as wide as ``heads``; the first column names the row."""

    kind: ClassVar[Literal["table"]] = "table"
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Charts side by side, and their data as a table. ``series`` are the names of the legend, by colour."""

    kind: ClassVar[Literal["plot"]] = "plot"
    title: str
    about: str
    panels: tuple[tuple[str, LineChart | BarChart], ...]
    """A heading (empty where the title says it), and the chart."""
    series: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    weekly: bool = False
    """The table has medians of weeks, the chart more."""
    picture_only: bool = False
    """A table says it already; Markdown leaves it out."""

    @property
    def legend(self) -> list[tuple[Html, str]]:
        """Swatches and names: of several series, and of doubtful figures."""
        mark = bar_swatch if any(isinstance(chart, BarChart) for _, chart in self.panels) else swatch
        items = [(mark(index), name) for index, name in enumerate(self.series)] if len(self.series) > 1 else []
        if any(each.doubt for _, chart in self.panels for each in chart.marks):
            items.append((hollow_swatch(), "hollow: in doubt"))
        return items


Block = Paragraph | Listing | Table | Plot


@dataclass(frozen=True, slots=True)
class Section:
    """``about`` says in a sentence or two what it is, for who has never seen one; it may be empty."""

    ident: str
    title: str
    about: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One of the things that matter. ``tone``: good, note, bad, unknown; the words say it, too."""

    question: str
    answer: str
    tone: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """All of it."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    points: tuple[Point, ...] = ()
    glossary: tuple[tuple[str, str], ...] = ()
