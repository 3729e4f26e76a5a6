"""The table in ``docs/verdicts.md``: a run replaces the rows of the faults that it made and keeps the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

PATH = Path(__file__).parents[3] / "docs/verdicts.md"
BEGIN, END = "<!-- by make lab ARGS=--cluster -->", "<!-- end -->"
COLUMNS = (
    "fault", "Ceph", "first notification", "after", "host", "layer", "device", "what else was sent",
    "over after it was mended", "verdict", "date",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One fault, in the order of ``COLUMNS``."""

    fault: str
    ceph: str
    first: str
    after: str
    host: str
    layer: str
    device: str
    others: str
    over: str
    verdict: str
    date: str


def written(text: str, lines: Iterable[Line], order: Iterable[str]) -> str:
    """The page ``text`` with these rows in its table, in this order of faults; ValueError where it has no table.

    A fault has one row for each major release of Ceph.
    """
    head, begin, rest = text.partition(BEGIN)
    old, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END}")
    rows = {(line.fault, _major(line)): line for line in (*parse(old), *lines)}
    faults = {fault: number for number, fault in enumerate(order)}
    kept = sorted((each for each in rows if each[0] in faults), key=lambda each: (faults[each[0]], each[1]))
    table = [_row(COLUMNS), _row(["---"] * len(COLUMNS)), *(_row(astuple(rows[each])) for each in kept)]
    return f"{head}{BEGIN}\n\n" + "\n".join(table) + f"\n\n{END}{tail}"


def parse(text: str) -> list[Line]:
    """The rows of a table."""
    fields = [[field.strip() for field in line.strip("| ").split(" | ")] for line in text.splitlines() if "| " in line]
    return [Line(*row) for row in fields if len(row) == len(COLUMNS) and row[0] not in ("fault", "---")]


def _major(line: Line) -> int:
    return int(line.ceph.partition(".")[0])


def _row(fields: Iterable[str]) -> str:
    return f"| {' | '.join(' '.join(field.replace('|', '/').split()) or '-' for field in fields)} |"
