"""Tables out of instant queries, and the transformations that the dashboards use, as Grafana does them.

A frame is a list of columns; a row is what stands at the same place of each. ``None`` is an empty cell.
https://grafana.com/docs/grafana/latest/panels-visualizations/query-transform-data/transform-data/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .answers import Series

Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """``name`` is Grafana's, ``heading`` what stands above it; ``of_values``: figures, and no labels."""

    name: str
    heading: str
    of_values: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of the same length."""

    columns: tuple[Column, ...]

    @property
    def rows(self) -> list[dict[str, Cell]]:
        """Column's name → cell."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, cells, strict=True)) for cells in zip(*(c.cells for c in self.columns), strict=True)]

    def column(self, name: str) -> Column | None:
        """By Grafana's name or by the heading."""
        return next((each for each in self.columns if name in (each.name, each.heading)), None)


def of_series(series: Sequence[Series], ref_id: str, *, alone: bool) -> Frame:
    """What a query in table format gives: the time, a column a label, the figure (without its letter where alone)."""
    labels = sorted({name for each in series for name in each.labels})
    value = "Value" if alone else f"Value #{ref_id}"
    if not series:
        return Frame(())
    return Frame(
        (
            Column("Time", "Time", False, tuple(each.points[-1][0] for each in series)),
            *(Column(name, name, False, tuple(each.labels.get(name) for each in series)) for name in labels),
            Column(value, value, True, tuple(each.points[-1][1] for each in series)),
        )
    )


def transformed(frames: Sequence[Frame], transformations: Iterable[Mapping[str, Any]]) -> Frame:
    """The one table that is left; the first frame where nothing joined them. Unknown ones are left out."""
    now = [frame for frame in frames if frame.columns]
    for each in transformations:
        options = each.get("options", {})
        match each["id"]:
            case "merge":
                now = [merged(now)]
            case "joinByField":
                now = [joined(now, options["byField"])]
            case "groupingToMatrix":
                now = [matrix(frame, options) for frame in now]
            case "organize":
                now = [organized(frame, options) for frame in now]
    return now[0] if now else Frame(())


def merged(frames: Sequence[Frame]) -> Frame:
    """Rows of several frames into one where all columns that every frame has are equal."""
    kinds = {column.name: column for frame in frames for column in frame.columns}
    shared = [name for name in kinds if all(frame.column(name) for frame in frames)]
    rows: dict[tuple[Cell, ...], dict[str, Cell]] = {}
    others = 0
    for frame in frames:
        for row in frame.rows:
            key = tuple(row[name] for name in shared)
            same = rows.get(key)
            if same is not None and any(same.get(name, cell) != cell for name, cell in row.items()):
                others += 1  # the same key with another label: a row of its own
                key = (*key, float(others))
                same = None
            rows[key] = {**(same or {}), **row}
    return _of_rows(kinds, list(rows.values()))


def joined(frames: Sequence[Frame], by: str) -> Frame:
    """All rows of all frames, those with the same ``by`` in one; columns of one name are numbered."""
    kinds: dict[str, Column] = {}
    rows: dict[Cell, dict[str, Cell]] = {}
    frames = [frame for frame in frames if frame.column(by)]
    times: dict[str, int] = {}
    for frame in frames:
        for column in frame.columns:
            times[column.name] = times.get(column.name, 0) + 1
    for number, frame in enumerate(frames, 1):
        names = {
            column.name: f"{column.name} {number}" if column.name != by and times[column.name] > 1 else column.name
            for column in frame.columns
        }
        kinds |= {names[c.name]: replace(c, name=names[c.name], heading=names[c.name]) for c in frame.columns}
        for row in frame.rows:
            rows.setdefault(row[by], {}).update({names[name]: cell for name, cell in row.items()})
    return _of_rows(kinds, list(rows.values()))


def matrix(frame: Frame, options: Mapping[str, str]) -> Frame:
    """Rows by columns; the corner is called ``row\\column``."""
    row_field, column_field, value = options["rowField"], options["columnField"], options["valueField"]
    rows = list(dict.fromkeys(row.get(row_field) for row in frame.rows))
    columns = list(dict.fromkeys(row.get(column_field) for row in frame.rows))
    cells = {(row.get(row_field), row.get(column_field)): row.get(value) for row in frame.rows}
    corner = f"{row_field}\\{column_field}"
    return Frame(
        (
            Column(corner, corner, False, tuple(rows)),
            *(Column(str(c), str(c), True, tuple(cells.get((row, c)) for row in rows)) for c in columns),
        )
    )


def organized(frame: Frame, options: Mapping[str, Any]) -> Frame:
    """Columns left out, put in order and renamed."""
    out, order, names = (options.get(key, {}) for key in ("excludeByName", "indexByName", "renameByName"))
    kept = [column for column in frame.columns if not out.get(column.name)]
    kept.sort(key=lambda column: order.get(column.name, len(order)))
    return Frame(tuple(replace(column, heading=names.get(column.name) or column.heading) for column in kept))


def ordered(frame: Frame, sort_by: Sequence[Mapping[str, Any]]) -> Frame:
    """As the table's first order says; empty cells last."""
    column = frame.column(sort_by[0]["displayName"]) if sort_by else None
    if column is None:
        return frame
    sign = -1 if sort_by[0].get("desc") else 1

    def key(index: int) -> tuple[bool, float, str]:
        cell = column.cells[index]
        return cell is None, sign * cell if isinstance(cell, float) else 0.0, str(cell)

    places = sorted(range(len(column.cells)), key=key)
    return Frame(tuple(replace(each, cells=tuple(each.cells[place] for place in places)) for each in frame.columns))


def _of_rows(kinds: Mapping[str, Column], rows: Sequence[Mapping[str, Cell]]) -> Frame:
    return Frame(tuple(replace(column, cells=tuple(row.get(name) for row in rows)) for name, column in kinds.items()))
