"""``plumbline baseline list`` and ``show``.

Each figure is shown as printed, its base unit beside it (wide) or below it (narrow, under ``WIDE`` columns). A row that
contradicts itself or never judges says so in its own line. What all rows of a table share is under its heading; what
only some share is a numbered note. In a pipe, each row, note and contradiction is one line.
"""

import argparse
import os
import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import groupby

from rich.console import Console
from rich.text import Text

from plumbline.background.fingerprint import read_fingerprint
from plumbline.baseline import describe
from plumbline.baseline.book import mismatched, outdated
from plumbline.baseline.documented import Contradiction, Method, Picture, Setting
from plumbline.baseline.shown import Shown, ShownBudget, ShownLink, ShownRow, Summary
from plumbline.commands.node import Node, this_node
from plumbline.commands.shared import show
from plumbline.core.console import clean, line, table

WIDE = 120
# Only this column wraps: names and figures stay whole
_REMARKS = {"Remarks": 0}
# Column of a figure → column of its base unit.
_FIGURES = {"Latency": "in s", "IOPS": "", "Throughput": "in B/s"}


def run_list(options: argparse.Namespace) -> int:
    node = this_node(options)
    summaries = describe.summaries(node.profiles, node.sites, node.config.baseline.judge)
    show(options, summaries, lambda console: print_list(console, summaries, _mismatches(node)))
    return 0


def _mismatches(node: Node) -> list[str]:
    """Where the baselines don't match this node, one sentence each."""
    book = node.book()
    sentences = list(mismatched(book.selection))
    if book.measured_on:
        now = read_fingerprint(node.roots, environment=os.environ, ceph=node.config.ceph)
        sentences += outdated(book.measured_on, now)
    return sentences


def run_show(options: argparse.Namespace) -> int:
    node = this_node(options)
    shown = describe.show(
        options.name,
        node.profiles,
        node.sites,
        layer=options.layer,
        device_class=options.device_class,
        workload=options.workload,
    )
    show(options, shown, lambda console: print_show(console, shown))
    return 0


def print_list(console: Console, summaries: Sequence[Summary], mismatches: Sequence[str] = ()) -> None:
    """One line each; on a narrow terminal a paragraph each, because the titles are long."""
    rows = [
        (
            summary.name,
            summary.source.value,
            _classes(summary.device_classes),
            ", ".join(summary.judges) or "shown only",
            summary.where or summary.title,
            _besides(summary),
        )
        for summary in summaries
    ]
    if _wide(console):
        table(console, ("Baseline", "Source", "Rows", "Judges here", "What it is", "Besides"), rows)
    else:
        for name, source, held, judges, what, besides in rows:
            line(console, f"{name} ({source}): {'' if judges == 'shown only' else 'judges '}{judges}", "bold")
            for text in filter(None, (what, f"rows: {held}", besides)):
                _item(console, text)
    for sentence in mismatches:
        line(console, sentence, "yellow")


def _classes(entries: dict[str, int]) -> str:
    """Of more than four classes the three with most entries; ``--json`` has all of them."""
    if not entries:
        return "none"
    if len(entries) <= 4:
        return ", ".join(f"{count} {cls}" for cls, count in entries.items())
    most = sorted(entries, key=lambda cls: -entries[cls])[:3]
    rest = sum(count for cls, count in entries.items() if cls not in most)
    return ", ".join(f"{entries[cls]} {cls}" for cls in most) + f", {rest} more"


def _besides(summary: Summary) -> str:
    recorded = [f"recorded {summary.recorded}"] if summary.recorded else []
    return ", ".join(recorded + [f"{count} {what}" for what, count in summary.holds.items()])


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
    shown_notes: set[str] = set()
    for budget in shown.budgets:
        _budget(console, budget, shown_notes)
    _section(console, "Settings", map(_setting, shown.settings))
    _section(console, "How it was measured", map(_method, shown.methods))
    _section(console, "Pictures without figures", map(_picture, shown.pictures))
    _section(
        console,
        "Figures that are not a row",
        (f"{_at(item.where, item.line, item.last_line)}: {item.says} ({item.why})" for item in shown.left_out),
    )
    if shown.contradictions:
        _heading(console, "What the document says differently in different places")
    for item in shown.contradictions:
        _contradiction(console, item)


def _series(console: Console, rows: Sequence[ShownRow], notes: dict[str, int]) -> None:
    first = rows[0]
    shared = [note for note in first.notes if len(rows) > 1 and all(note in row.notes for row in rows)]
    line(console, "")
    if first.series:
        line(console, first.series, "bold")
    for text in (first.command, *shared):
        if text:
            _item(console, text)
    marks = [
        [f"[{notes.setdefault(note, len(notes) + 1)}]" for note in row.notes if note not in shared] for row in rows
    ]
    names = [name for name in _FIGURES if any(_figures(row, name) for row in rows)]
    if _wide(console):
        heads = ["Workload", "Operation", *(head for name in names for head in (name, _FIGURES[name]) if head)]
        body = [_wide_row(row, names, mark) for row, mark in zip(rows, marks, strict=True)]
        if any(row[-1] for row in body):
            heads.append("Remarks")
        table(console, heads, [row[: len(heads)] for row in body], wraps=_REMARKS)
    else:
        stacked = [_narrow_row(row, names, mark) for row, mark in zip(rows, marks, strict=True)]
        table(console, ("Workload", *names), stacked, wraps={"Workload": max(len(row.workload) for row in rows)})


def _wide_row(row: ShownRow, names: Sequence[str], marks: Sequence[str]) -> list[str | Text]:
    """One line: the base unit has a column of its own."""
    cells: list[str | Text] = [row.workload, row.operation]
    for name in names:
        figures = _figures(row, name)
        cells.append(", ".join(printed for printed, _ in figures))
        if _FIGURES[name]:
            cells.append(Text(", ".join(base.partition(" ")[0] for _, base in figures), "dim"))
    return [*cells, " ".join((*_remarks(row), *marks))]


def _narrow_row(row: ShownRow, names: Sequence[str], marks: Sequence[str]) -> list[list[Text]]:
    """Two lines per figure; the operation is with the remarks unless the workload's name contains it."""
    operation = "" if row.operation in row.workload else row.operation
    remarks = ", ".join(filter(None, (operation, *_remarks(row))))
    text = Text(" ".join(filter(None, (remarks, *marks))), "yellow" if _remarks(row) else "dim")
    cells = [[Text(row.workload), text]]
    for name in names:
        lines: list[Text] = []
        for printed, base in _figures(row, name):
            repeated = not base or f" {printed}".endswith(f" {base}")
            lines += [Text(printed), Text("" if repeated else f"= {base}", "dim")]
        cells.append(lines)
    return [[text for text in cell if text] for cell in cells]


def _figures(row: ShownRow, name: str) -> list[tuple[str, str]]:
    """As printed, and in the base unit; IOPS without the unit, which the column has."""
    if name == "Latency":
        latencies = [figure for figure in row.figures if figure.figure.startswith("latency.")]
        return [
            (f"{figure.figure.removeprefix('latency.')} {figure.printed}", f"{_plain(figure.base)} s")
            for figure in latencies
        ]
    figure = next((figure for figure in row.figures if figure.figure == name.lower()), None)
    if figure is None:
        return []
    if name == "Throughput":
        return [(figure.printed, f"{figure.base:,.0f} B/s")]
    printed = figure.printed.removesuffix(" IOPS")
    return [(f"{printed} = {figure.base:,.0f}" if printed.endswith("K") else printed, "")]


def _remarks(row: ShownRow) -> list[str]:
    tolerance = [] if row.tolerance_ratio is None else [f"tolerance ×{row.tolerance_ratio:.2f}"]
    return [*row.breaches, *tolerance, *filter(None, [row.level]), *([] if row.judges else ["never judges"])]


def _plain(seconds: float) -> str:
    """Without an exponent: 0.000065."""
    return f"{Decimal(f'{seconds:.12g}'):f}"


def _budget(console: Console, budget: ShownBudget, shown_notes: set[str]) -> None:
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
        if note not in shown_notes:
            shown_notes.add(note)
            _item(console, note)


def _off(link: ShownLink) -> str:
    side = "above" if link.over_seconds > 0 else "below"
    return f"{link.link}: the stages are {_plain(abs(link.over_seconds))} s {side} the total: {link.breaks}"


def _setting(item: Setting) -> str:
    check, place = f"{item.check}: " if item.check else "", _at(item.where, item.line, item.last_line)
    return f"{item.setting} = {item.printed} for {item.of} ({place}). {check}{item.says}"


def _method(item: Method) -> str:
    parts = [f"{item.tool}: {item.command}", item.conditions, item.note, _workloads(item.workloads)]
    return f"{_at(item.where, item.line, item.last_line)}: " + "; ".join(filter(None, parts))


def _picture(item: Picture) -> str:
    details = "; ".join(filter(None, (item.note, _workloads(item.workloads))))
    return f"{_at(item.where, item.line, item.last_line)}: {item.shows}" + (f" ({details})" if details else "")


def _workloads(ids: Sequence[str]) -> str:
    """Of more than four the first, the last and the count; ``--json`` has all of them."""
    if len(ids) <= 4:
        return ", ".join(ids)
    return f"{len(ids)} workloads, {ids[0]} to {ids[-1]}"


def _contradiction(console: Console, item: Contradiction) -> None:
    used = f"used: {item.used} ({item.why})"
    if console.is_terminal:
        _item(console, item.about)
        for statement in item.says:
            _item(console, f"“{statement.text}” {_at(statement.where, statement.line)}", indent=4)
        _item(console, used, indent=4)
    else:
        quoted = "; ".join(f"“{statement.text}” ({_at(statement.where, statement.line)})" for statement in item.says)
        line(console, f"  {item.about}: {quoted}; {used}")


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
    text_line = f"{' ' * indent}{clean(text)}"
    rest = " " * (hang or indent + 2)
    wide = console.width if console.is_terminal else len(text_line) + 1
    for part in textwrap.wrap(text_line, wide, subsequent_indent=rest, break_on_hyphens=False):
        line(console, part)


def _wide(console: Console) -> bool:
    return not console.is_terminal or console.width >= WIDE
