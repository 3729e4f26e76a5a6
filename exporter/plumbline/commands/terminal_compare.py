"""``plumbline baseline compare`` on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from plumbline.baseline.compare.comparison import Compared, Comparison, Figure, Only, Other, Side, Word
from plumbline.core.console import line, table
from plumbline.core.units import figure_text, seconds_text

_STYLE = {Word.WORSE: "bold red", Word.BETTER: "green", Word.AS_ACCEPTED: "green", Word.NOT_JUDGED: ""}
_NOTE = "yellow"
# Longer lists of names become counts
_NAMED = 24
_HEADS = ("Layer", "Workload", "Operation", "Figure", "Accepted", "Compared", "Ratio", "Tolerance", "Verdict")


def print_comparison(console: Console, found: Comparison) -> None:
    """A table of what both sides have, then what could not be compared and why, then the verdict."""
    line(console, f"accepted: {_side(found.a)}", "bold")
    line(console, f"compared: {_side(found.b)}", "bold")
    if found.rows:
        table(console, _HEADS, [cells for row in found.rows for cells in _cells(row)])
    for doubt in dict.fromkeys(row.doubt for row in found.rows if row.doubt):
        line(console, f"not judged, the document contradicts itself: {doubt}", _NOTE)
    _others(console, found.others)
    _only(console, f"only in {found.a.name}", found.only_a)
    _only(console, f"only in {found.b.name}", found.only_b)
    for missing in found.b.missing:
        line(console, f"not available: {missing}", _NOTE)
    _environment(console, found)
    _verdict(console, found)


def _side(side: Side) -> str:
    return ", ".join(filter(None, (f"{side.name} ({side.source}): {side.title}", side.when)))


def _cells(row: Compared) -> Iterable[tuple[str | Text, ...]]:
    classes = row.device_class if row.device_class == row.device_class_b else f"{row.device_class}={row.device_class_b}"
    age = f"{seconds_text(row.age_s)} ago" if row.age_s is not None else ""
    workload = row.workload + (f" ({', '.join(filter(None, (row.what, age)))})" if row.what or age else "")
    for figure in row.figures:
        yield (
            f"{row.layer} {classes}",
            workload,
            row.operation,
            figure.name.removeprefix("latency."),
            figure_text(figure.name, figure.a),
            figure_text(figure.name, figure.b),
            f"{figure.ratio:.2f}",
            _tolerance(row, figure),
            Text(figure.word.value, style=_STYLE[figure.word]),
        )


def _tolerance(row: Compared, figure: Figure) -> str:
    if figure.allowed is None:
        return ""
    return f"{figure.allowed:.2f}" + ("" if row.own_tolerance else " (default)")


def _others(console: Console, others: Sequence[Other]) -> None:
    for each in others:
        what = f"{each.layer} {each.device_class} {each.workload} {each.operation}"
        hashes = f"{', '.join(each.a)} and {', '.join(each.b)}"
        line(console, f"not compared, other parameters: {what} (config_hash {hashes})", _NOTE)


def _only(console: Console, heading: str, only: Sequence[Only]) -> None:
    """By layer and class. A documented profile has 170 rows that a node does not measure: many names become a count."""
    groups: dict[str, dict[str, None]] = {}
    for each in only:
        groups.setdefault(f"{each.layer} {each.device_class}", {})[each.workload] = None
    if len(only) > _NAMED:
        counts = ", ".join(f"{place} {len(workloads)}" for place, workloads in groups.items())
        line(console, f"{heading}, by layer and class (--json names them): {counts}")
        return
    for place, workloads in groups.items():
        line(console, f"{heading}: {place}: {', '.join(workloads)}")


def _environment(console: Console, found: Comparison) -> None:
    if found.environment is None:
        without = [side.name for side in (found.a, found.b) if side.fingerprint is None]
        line(console, f"environment not compared: {' and '.join(without)} has no fingerprint")
        return
    for change in found.environment.changes:
        line(console, f"possible cause, {change.part.value}: {change.then} → {change.now}", _NOTE)
    if not found.environment.changes:
        parts = ", ".join(part.value for part in found.environment.compared)
        line(
            console,
            f"environment unchanged: {parts}" if parts else "environment not compared: no part is known of both",
        )


def _verdict(console: Console, found: Comparison) -> None:
    worse, better, same = (found.count(word) for word in (Word.WORSE, Word.BETTER, Word.AS_ACCEPTED))
    if not worse + better + same:
        line(console, "nothing could be compared", _NOTE)
        return
    for row in found.rows:
        beyond = [figure for figure in row.figures if figure.word is Word.WORSE]
        if beyond:
            told = ", ".join(f"{figure.name.removeprefix('latency.')} {figure.ratio:.2f}" for figure in beyond)
            where = " ".join(filter(None, (row.layer, row.device_class_b, row.workload, row.operation, row.what)))
            line(console, f"worse: {where}: {told}", "bold red")
    told = f"{worse} worse beyond tolerance, {better} better, {same} as accepted"
    unjudged = found.count(Word.NOT_JUDGED)
    told += f", {unjudged} not judged" if unjudged else ""
    line(console, told, "bold red" if worse else "green")
