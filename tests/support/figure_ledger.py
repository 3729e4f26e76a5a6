"""Which figures a document prints, and which of them its profile has: the proof that a profile is complete.

``python tests/support/figure_ledger.py DOCUMENT.txt tests/fixtures/seeds/PROFILE-figures.tsv`` writes the ledger
anew and keeps the classes that stand in it. A ledger holds facts only, three columns:

    line    line of the document's text, from 1
    token   a number with its unit, or a number of a table's row, as printed
    class   empty: the profile must have something on that line; otherwise why it need not (CLASSES), or ``at LINE``:
            the token belongs to what the profile has on that other line (a bar's second label, a cell below its row)
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from plumbline.baseline.documented import LeftOut, Method, Picture, Setting
from plumbline.baseline.profiles import Also, NotUsed, Point, Profile, Restated

CLASSES = {
    "axis": "a label of a picture's axis",
    "capacity": "how much something holds or a file has, not how fast it is",
    "count": "how many there are of something",
    "date": "a day, a year, a time of day",
    "parameter": "what a test, a command or a table's column was set to",
    "reference": "the number of a page, a figure, a chapter, a source",
    "scan": "a number that stands only in the scan",
    "spec": "what a maker or a standard promises",
    "version": "of a program or a device",
}
HEADER = "line\ttoken\tclass"

_NUMBER = r"\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?"
_DATA = r"[KkMGTPE]?i?(?:[Bb]ytes?|[Bb]its?|B|b)(?:/s(?:ec|eg)?\b|ps)?"
_TIME = (
    r"[nuµμmp]s(?:eg|ec)?|(?:micro|mili|milli|nano)?(?:segundos?|seconds?|secondi|sekund[ay]?)|sec|seg|s"
    r"|min(?:utos?|utes?|uti|ut[ay]?)?|h|hours?|horas?|ore|godzin[ay]?|d[ií]as?|days?|giorni|dni"
)
_RATE = r"[kK]?(?:IOPS|iops)|IO/s|op(?:s|er(?:aciones|azioni|ations))?/s(?:eg|ec)?|req/s|pps|[Rr][Pp][Mm]"
_OTHER = r"[GMK]bE|Gb ?IPo\w*|GbIB\w*|GT/s|[GM]Hz|%|°C|times|veces|volte|razy"
_FIGURE = re.compile(
    rf"(?<![\w.])(?P<all>{_NUMBER}(?:\s?[kKMGT]\b)?(?:\s?/\s?{_NUMBER}[kKMGT]?)?"
    rf"(?:(?<=[kKMGT])|\s?(?:{_DATA}|{_TIME}|{_RATE}|{_OTHER})))(?![^\W\d_])"
)
_BARE = re.compile(rf"(?<![\w.]){_NUMBER}(?![\w.]\w)")
_LABELLED = re.compile(rf"(?<!\d)[:=]\s*(?P<bare>{_NUMBER})(?![\w.:]\w|[:/])")
_AT_END = re.compile(rf"(?<![\w.]){_NUMBER}\s*$")
_UNIT_NEXT = re.compile(rf"\s*(?P<unit>{_DATA}|{_TIME}|{_RATE})(?![\w/])")


@dataclass(frozen=True, slots=True)
class Entry:
    """One token of a document; ``kind`` is the ledger's third column."""

    line: int
    token: str
    kind: str = ""


def tokens(text: str) -> Iterator[Entry]:
    """Every number with a unit, be it on the next line; and the bare numbers of cells (``|``) and lines that are mostly
    numbers, and those behind a label (``:``, ``=``)."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        following = next(filter(str.strip, lines[number : number + 2]), "")
        wrapped = _UNIT_NEXT.match(following) if _AT_END.search(line) else None
        for cell in (f"{line} {wrapped['unit']}" if wrapped else line).split("|"):
            yield from (Entry(number, " ".join(token.split())) for token in _cell(cell))


def _cell(text: str) -> list[str]:
    figures = [(match.start(), match.end(), match["all"]) for match in _FIGURE.finditer(text)]
    bare = [
        (match.start(), match.end(), match[0])
        for match in _BARE.finditer(text)
        if not any(start < match.end() and match.start() < end for start, end, _ in figures)
    ]
    if 2 * (len(bare) + len(figures)) < len(text.split()):
        labelled = {match.start("bare") for match in _LABELLED.finditer(text)}
        bare = [one for one in bare if one[0] in labelled]
    return [token for _, _, token in sorted(figures + bare)]


def read_ledger(path: Path) -> list[Entry]:
    """``ValueError`` for a line that is none."""
    header, *lines = path.read_text("utf-8").splitlines()
    if header != HEADER:
        raise ValueError(f"{path}: expected the columns {HEADER!r}")
    entries = []
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != 3:
            raise ValueError(f"{path}: line {number}: expected three columns")
        entries.append(Entry(int(cells[0]), cells[1], cells[2]))
    return entries


def write_ledger(path: Path, entries: Sequence[Entry]) -> None:
    """One line a token, in the document's order."""
    lines = [HEADER, *(f"{entry.line}\t{entry.token}\t{entry.kind}" for entry in entries)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def beside(point: Point) -> list[Restated | NotUsed | Also]:
    """What is printed elsewhere of a row, agreeing or not, and its spread."""
    return [*point.restated, *point.not_used, *point.also]


def covered(profile: Profile) -> set[int]:
    """The document's lines of which the profile has something."""
    lines: set[int] = set()
    for point in chain.from_iterable(series.points for series in profile.series):
        lines.update({point.line}, (other.line for other in beside(point)))
    lines.update(link.line for budget in profile.budgets for link in budget.links)
    lines.update(budget.line for budget in profile.budgets)
    lines.update(statement.line for contradiction in profile.contradictions for statement in contradiction.says)
    parts: list[Picture | LeftOut | Setting | Method] = [*profile.pictures, *profile.left_out]
    parts += [*profile.settings, *profile.methods]
    for part in parts:
        lines.update(range(part.line, (part.last_line or part.line) + 1))
    return lines


def uncovered(profile: Profile, ledger: Sequence[Entry]) -> list[Entry]:
    """The entries that the profile says nothing of, though no class excuses them."""
    have = covered(profile)
    return [entry for entry in ledger if entry.kind not in CLASSES and _line(entry) not in have]


def _line(entry: Entry) -> int:
    return int(entry.kind.removeprefix("at ")) if entry.kind else entry.line


def _renewed(text: str, old: Sequence[Entry]) -> list[Entry]:
    """The document's tokens with the classes of ``old``, in turn where a token stands twice on a line."""
    kinds = defaultdict(list)
    for entry in old:
        kinds[entry.line, entry.token].append(entry.kind)
    return [
        Entry(one.line, one.token, kinds[one.line, one.token].pop(0) if kinds[one.line, one.token] else "")
        for one in tokens(text)
    ]


if __name__ == "__main__":
    document, ledger_path = map(Path, sys.argv[1:])
    known = read_ledger(ledger_path) if ledger_path.exists() else []
    write_ledger(ledger_path, _renewed(document.read_text("utf-8"), known))
