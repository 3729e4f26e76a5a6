"""``plumbline baseline list`` and ``show`` on the terminal.

Each figure is shown as printed, its base unit beside it (wide) or below it (narrow, under ``WIDE`` columns). A row that
contradicts itself or never judges says so in its own line. What all rows of a table share is under its heading; what
only some share is a numbered note. In a pipe, each row, note and contradiction is one line.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import groupby

from rich.console import Console
from rich.text import Text

from plumbline.baseline.documented import Contradiction, Method, Picture, Setting
from plumbline.baseline.shown import Figure, Shown, ShownBudget, ShownLink, ShownRow, Summary
from plumbline.core.console import clean, line, table

WIDE = 120
# Only this column wraps: names and figures stay whole
_REMARKS = {"Remarks": 0}


def print_list(console: Console, summaries: Sequence[Summary], standing: Sequence[str] = ()) -> None:
    """One line each; on a narrow terminal a paragraph each, because the titles are long. ``standing``: what no longer
    fits, one sentence each."""
    rows = [(*_known(one), one.where or one.title, _besides(one)) for one in summaries]
    if _wide(console):
        table(console, ("Baseline", "Source", "Rows", "Judges here", "What it is", "Besides"), rows)
    else:
        for name, source, held, judges, *more in rows:
            said = judges if judges == "shown only" else f"judges {judges}"
            line(console, f"{name} ({source}): {said}", "bold")
            for text in filter(None, (more[0], f"rows: {held}", more[1])):
                _item(console, text)
    for sentence in standing:
        line(console, sentence, "yellow")


def _known(one: Summary) -> tuple[str, str, str, str]:
    return one.name, one.source.value, _classes(one.device_classes), ", ".join(one.judges) or "shown only"


def _classes(entries: dict[str, int]) -> str:
    """Of more than four classes the three with most entries; ``--json`` has all of them."""
    if not entries:
        return "none"
    if len(entries) <= 4:
        return ", ".join(f"{count} {cls}" for cls, count in entries.items())
    most = sorted(entries, key=lambda cls: -entries[cls])[:3]
    rest = sum(count for cls, count in entries.items() if cls not in most)
    return ", ".join(f"{entries[cls]} {cls}" for cls in most) + f", {rest} more"


def _besides(one: Summary) -> str:
    recorded = [f"recorded {one.recorded}"] if one.recorded else []
    return ", ".join(recorded + [f"{count} {what}" for what, count in one.holds.items()])


def print_show(console: Console, shown: Shown) -> None:
    """Rows by series, then budgets, settings, methods, pictures, what is left out, contradictions."""
    line(console, f"{shown.name} ({shown.source.value}): {shown.title}", "bold")
    for name, value in shown.facts.items():
        _item(console, f"{name}: {value}")
    notes: dict[str, int] = {}
    for _, rows in groupby(shown.rows, key=lambda row: (row.series, row.command)):
        _series(console, list(rows), notes)
    if notes:
        _heading(console, "Notes")
    for note, mark in notes.items():
        _item(console, f"[{mark}] {note}", hang=4 + len(str(mark)) + 1)
    said: set[str] = set()
    for budget in shown.budgets:
        _budget(console, budget, said)
    _section(console, "Settings", map(_setting, shown.settings))
    _section(console, "How it was measured", map(_method, shown.methods))
    _section(console, "Pictures without figures", map(_picture, shown.pictures))
    _section(
        console,
        "Figures that are no row",
        (f"{_at(one.where, one.line, one.last_line)}: {one.says} ({one.why})" for one in shown.left_out),
    )
    if shown.contradictions:
        _heading(console, "What the document says differently in different places")
    for one in shown.contradictions:
        _contradiction(console, one)


def _series(console: Console, rows: Sequence[ShownRow], notes: dict[str, int]) -> None:
    first = rows[0]
    shared = [note for note in first.notes if len(rows) > 1 and all(note in row.notes for row in rows)]
    line(console, "")
    if first.series:
        line(console, first.series, "bold")
    for text in (first.command, *shared):
        if text:
            _item(console, text)
    marks = [[notes.setdefault(note, len(notes) + 1) for note in row.notes if note not in shared] for row in rows]
    if _wide(console):
        _wide_rows(console, rows, marks)
    else:
        _narrow_rows(console, rows, marks)


def _wide_rows(console: Console, rows: Sequence[ShownRow], marks: Sequence[Sequence[int]]) -> None:
    heads = ("Workload", "Operation", "Latency", "in s", "IOPS", "Throughput", "in B/s", "Remarks")
    body = []
    for row, numbers in zip(rows, marks, strict=True):
        latency, others = _latency(row), {figure.figure: figure for figure in row.figures}
        throughput = others.get("throughput")
        body.append(
            (
                row.workload,
                row.operation,
                ", ".join(f"{statistic} {figure.printed}" for statistic, figure in latency),
                Text(", ".join(_plain(figure.base) for _, figure in latency), "dim"),
                _iops(others.get("iops")),
                throughput.printed if throughput else "",
                Text(f"{throughput.base:,.0f}" if throughput else "", "dim"),
                " ".join((*_remarks(row), *(f"[{number}]" for number in numbers))),
            )
        )
    used = [index for index in range(len(heads)) if index < 2 or any(row[index] for row in body)]
    table(console, [heads[index] for index in used], [[row[index] for index in used] for row in body], wraps=_REMARKS)


def _narrow_rows(console: Console, rows: Sequence[ShownRow], marks: Sequence[Sequence[int]]) -> None:
    """Two lines per figure; the operation is with the remarks unless the workload's name contains it."""
    heads = [name for name in ("Latency", "IOPS", "Throughput") if any(_figures(row, name) for row in rows)]
    body = []
    for row, numbers in zip(rows, marks, strict=True):
        operation = "" if row.operation in row.workload else row.operation
        said = ", ".join(filter(None, (operation, *_remarks(row))))
        said = " ".join(filter(None, (said, *(f"[{number}]" for number in numbers))))
        remarks = [Text(said, "yellow" if _remarks(row) else "dim")] if said else []
        cells = [[Text(row.workload), *remarks]]
        for name in heads:
            lines = [(Text(printed), Text(f"= {base}" if base else "", "dim")) for printed, base in _figures(row, name)]
            cells.append([text for pair in lines for text in pair if text])
        body.append(cells)
    table(console, ("Workload", *heads), body, wraps={"Workload": max(len(row.workload) for row in rows)})


def _figures(row: ShownRow, name: str) -> list[tuple[str, str]]:
    """As printed, and in the base unit where that number differs."""
    if name == "Latency":
        return [
            (f"{statistic} {figure.printed}", _other(figure, f"{_plain(figure.base)} s"))
            for statistic, figure in _latency(row)
        ]
    found = next((figure for figure in row.figures if figure.figure == name.lower()), None)
    if found is None:
        return []
    if name == "IOPS":
        return [(_iops(found), "")]
    return [(found.printed, _other(found, f"{found.base:,.0f} B/s"))]


def _other(figure: Figure, base: str) -> str:
    """The base unit's text, unless it is already printed."""
    return "" if figure.printed == base else base


def _latency(row: ShownRow) -> list[tuple[str, Figure]]:
    return [
        (figure.figure.removeprefix("latency."), figure)
        for figure in row.figures
        if figure.figure.startswith("latency.")
    ]


def _iops(figure: Figure | None) -> str:
    """Without the unit, which the column has; a thousand printed as K is spelled out."""
    if figure is None:
        return ""
    printed = figure.printed.removesuffix(" IOPS")
    return f"{printed} = {figure.base:,.0f}" if printed.endswith("K") else printed


def _remarks(row: ShownRow) -> list[str]:
    tolerance = [] if row.tolerance_ratio is None else [f"tolerance ×{row.tolerance_ratio:.2f}"]
    return [*row.breaches, *tolerance, *([] if row.judges else ["never judges"])]


def _plain(seconds: float) -> str:
    """Without an exponent: 0.000065."""
    return f"{Decimal(f'{seconds:.12g}'):f}"


def _budget(console: Console, budget: ShownBudget, said: set[str]) -> None:
    """``said``: notes of earlier budgets, which are not repeated."""
    _heading(console, f"Latency budget: {budget.about} ({budget.workload})")
    _item(console, f"{budget.where}: {budget.hardware}")
    _item(console, budget.command)
    stages = [stage.stage for stage in budget.links[0].stages]
    heads = ("Link", "Total", "in s", *stages)
    body = [
        (
            link.link,
            link.total.printed,
            _plain(link.total.base),
            *(
                (f"{stage.times} × " if stage.times > 1 else "") + f"{stage.printed} {stage.share_ratio:.0%}"
                for stage in link.stages
            ),
        )
        for link in budget.links
    ]
    if not _wide(console):
        heads, body = (heads[:2] + heads[3:]), [row[:2] + row[3:] for row in body]
    table(console, heads, body, wraps=_REMARKS)
    notes = ["Shares are of the total: a stage's figure is one pass, its share all of them."]
    notes += [_off(link) for link in budget.links if link.breaks]
    notes += [f"{stage}: {note}" for stage, note in budget.stage_notes.items()]
    for note in (*notes, *budget.notes):
        if note not in said:
            said.add(note)
            _item(console, note)


def _off(link: ShownLink) -> str:
    side = "above" if link.over_seconds > 0 else "below"
    return f"{link.link}: the stages are {_plain(abs(link.over_seconds))} s {side} the total: {link.breaks}"


def _setting(one: Setting) -> str:
    check = f"{one.check}: " if one.check else ""
    return f"{one.setting} = {one.printed} for {one.of} ({_at(one.where, one.line, one.last_line)}). {check}{one.says}"


def _method(one: Method) -> str:
    parts = [f"{one.tool}: {one.command}", one.conditions, one.note, _workloads(one.workloads)]
    return f"{_at(one.where, one.line, one.last_line)}: " + "; ".join(filter(None, parts))


def _picture(one: Picture) -> str:
    said = "; ".join(filter(None, (one.note, _workloads(one.workloads))))
    return f"{_at(one.where, one.line, one.last_line)}: {one.shows}" + (f" ({said})" if said else "")


def _workloads(ids: Sequence[str]) -> str:
    """Of more than four the first, the last and the count; ``--json`` has all of them."""
    if len(ids) <= 4:
        return ", ".join(ids)
    return f"{len(ids)} workloads, {ids[0]} to {ids[-1]}"


def _contradiction(console: Console, one: Contradiction) -> None:
    used = f"used: {one.used} ({one.why})"
    if console.is_terminal:
        _item(console, one.about)
        for said in one.says:
            _item(console, f"“{said.text}” {_at(said.where, said.line)}", indent=4)
        _item(console, used, indent=4)
    else:
        quoted = "; ".join(f"“{said.text}” ({_at(said.where, said.line)})" for said in one.says)
        line(console, f"  {one.about}: {quoted}; {used}")


def _at(where: str, number: int, last: int = 0) -> str:
    lines = f"lines {number} to {last}" if last > number else f"line {number}"
    return f"{where}, {lines}"


def _section(console: Console, title: str, items: Iterable[str]) -> None:
    for index, item in enumerate(items):
        if not index:
            _heading(console, title)
        _item(console, item)


def _heading(console: Console, text: str) -> None:
    line(console, "")
    line(console, text, "bold")


def _item(console: Console, text: str, *, indent: int = 2, hang: int = 0) -> None:
    """A paragraph; on a terminal, its further lines are indented more."""
    said = f"{' ' * indent}{clean(text)}"
    rest = " " * (hang or indent + 2)
    wide = console.width if console.is_terminal else len(said) + 1
    for part in textwrap.wrap(said, wide, subsequent_indent=rest, break_on_hyphens=False):
        line(console, part)


def _wide(console: Console) -> bool:
    return not console.is_terminal or console.width >= WIDE
