"""A review as a document: words, tables and plots in their order. Two renderers read it, and it knows neither."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.review.model import Days, Span


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` as wide as ``heads``; the first column names the row."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Values of days; a day that is missing interrupts it."""

    name: str
    days: Days


@dataclass(frozen=True, slots=True)
class TimePlot:
    """Lines over the period. ``unit``: ``ratio``, ``share`` or a base unit. ``level`` (name, value) is drawn dashed."""

    title: str
    about: str
    unit: str
    start_s: float
    end_s: float
    lines: tuple[Line, ...]
    gaps: tuple[Span, ...] = ()
    level: tuple[str, float] | None = None
    moments: tuple[tuple[str, float], ...] = ()
    picture_only: bool = False
    """A table says it already; Markdown leaves it out."""


Block = Paragraph | Table | TimePlot


@dataclass(frozen=True, slots=True)
class Section:
    """``about`` says in a sentence or two what it is, for who has never seen one."""

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
    points: tuple[Point, ...]
    sections: tuple[Section, ...]
    glossary: tuple[tuple[str, str], ...]
