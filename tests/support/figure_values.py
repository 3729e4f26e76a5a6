"""Which numbers a profile has for each line of its document: the ledger (figure_ledger.py) checked by value.

A profile that has *something* on every line may still have the wrong number there. Numbers are compared as printed,
with K for thousands and a comma or a point before decimals; units are the loader's part.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from plumbline.baseline.profiles import Point, Profile
from plumbline.baseline.units import Quantity
from support.figure_ledger import CLASSES, Entry, beside

_NUMBER = re.compile(r"(?P<number>\d+(?:[.,]\d+)*|\.\d+)(?:\s?(?P<thousand>[kK])(?![A-Za-z]|i?B|b|m|g|\s?B))?")


def numbers(text: str) -> set[Decimal]:
    """All numbers in ``text``; one with K counts as its thousands and as itself (``4k`` may be a block or a rate)."""
    found = set()
    for match in _NUMBER.finditer(text):
        number = _decimal(match["number"])
        found.add(number)
        if match["thousand"]:
            found.add(number * 1000)
    return found


def _decimal(text: str) -> Decimal:
    """``4.000.787`` has thousands, ``24,86`` and ``24.86`` decimals, as the documents print them."""
    separators = [char for char in text if char in ".,"]
    if len(separators) > 1:
        return Decimal(re.sub("[.,]", "", text))
    return Decimal(text.replace(",", "."))


def said(profile: Profile) -> dict[int, set[Decimal]]:
    """Line of the document → numbers the profile has for it."""
    have: dict[int, set[Decimal]] = defaultdict(set)
    for first, last, text in _parts(profile):
        for line in range(first, last + 1):
            have[line] |= numbers(text)
    return have


def _parts(profile: Profile) -> Iterator[tuple[int, int, str]]:
    for series in profile.series:
        for point in series.points:
            yield point.line, point.line, _row(point)
            for other in beside(point):
                yield other.line, other.line, other.printed
    for picture in profile.pictures:
        yield picture.line, picture.last_line or picture.line, f"{picture.shows} {picture.note}"
    for left in profile.left_out:
        yield left.line, left.last_line or left.line, left.says
    for setting in profile.settings:
        yield setting.line, setting.last_line or setting.line, f"{setting.printed} {setting.says}"
    for method in profile.methods:
        text = f"{method.command} {method.conditions} {method.note}"
        yield method.line, method.last_line or method.line, text
    for contradiction in profile.contradictions:
        for statement in contradiction.says:
            yield statement.line, statement.line, statement.text


def _row(point: Point) -> str:
    amount = point.transferred.text if point.transferred else ""
    return f"{_measured(point)} {amount}"


def _measured(point: Point) -> str:
    """The row's own figures. ``transferred`` may be the tool's arithmetic: so many objects of such a size."""
    quantities: list[Quantity | None] = [point.iops, point.throughput, point.duration]
    quantities += [latency for _, latency in point.latency.items()]
    texts = [quantity.text for quantity in quantities if quantity]
    return " ".join([*texts, "" if point.retransmits is None else str(point.retransmits)])


def figures(profile: Profile) -> Iterator[tuple[int, int, str]]:
    """Every figure that a row has or repeats: line, how many lines around it belong to it, text.

    A bar's labels, or a tool's labels and values, are up to thirty lines apart in a scan.
    """
    for series in profile.series:
        for point in series.points:
            yield point.line, 30, _measured(point)
            for other in beside(point):
                yield other.line, 0, other.printed


def unlike(profile: Profile, ledger: Sequence[Entry]) -> list[Entry]:
    """The figures of the ledger whose number the profile does not have for their line."""
    have: Mapping[int, set[Decimal]] = said(profile)
    return [
        entry
        for entry in ledger
        if entry.kind not in CLASSES
        and not numbers(entry.token) <= have.get(int(entry.kind[3:]) if entry.kind else entry.line, set())
    ]


def printed(ledger: Sequence[Entry], prose: Mapping[int, set[Decimal]]) -> dict[int, set[Decimal]]:
    """Line → the numbers that its tokens are, those that the ledger puts ``at`` it, and those of ``prose``.

    ``prose``: line → numbers that stand in a sentence without their unit beside them, which the scanner passes over.
    """
    found: dict[int, set[Decimal]] = defaultdict(set)
    for line, given in prose.items():
        found[line] |= given
    for entry in ledger:
        found[entry.line] |= numbers(entry.token)
        if entry.kind and entry.kind not in CLASSES:
            found[int(entry.kind[3:])] |= numbers(entry.token)
    return found


def invented(profile: Profile, known: Mapping[int, set[Decimal]]) -> list[tuple[int, list[Decimal]]]:
    """Line and numbers of rows that are not ``known`` (:func:`printed`) of that line, or of the next where it wraps."""
    found = []
    for line, around, text in figures(profile):
        wrapped = set() if around else known.get(line + 1, set())
        if left := numbers(text) - known.get(line, set()) - wrapped:
            found.append((line, sorted(left)))
    return found
