"""What Grafana makes of a table panel's queries: one frame of named columns, by the panel's transformations.

Only what our panels use, and after Grafana 11's own behaviour, of which this is surprising:

- The figure of a query is the column "Value #A", of a panel's only query "Value".
- ``merge`` joins rows that agree wherever both have a value; a query with fewer labels goes to all rows it fits.
- ``groupingToMatrix`` calls its first column ``row\\column``, and does nothing where a label is missing.
- ``organize`` renames for the eye; links still find a column by its old name, and also by the new one.

https://grafana.com/docs/grafana/v11.6/panels-visualizations/query-transform-data/transform-data/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Vector = Sequence[tuple[Mapping[str, str], float]]
"""An instant vector as Prometheus answers: labels and value of every series."""


@dataclass(frozen=True, slots=True)
class Column:
    """``name`` as the data has it, ``heading`` as the table shows it; a value a row, ``None`` where there is none."""

    name: str
    values: tuple[str | float | None, ...]
    heading: str


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of equal length, in the order shown."""

    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def rows(self) -> list[dict[str, str | float | None]]:
        """Heading → value, row by row."""
        return [{each.heading: each.values[row] for each in self.columns} for row in range(len(self))]

    def find(self, key: str) -> Column | None:
        """The column a link's ``${__data.fields.<key>}`` means: by name, else by position, else by heading."""
        for each in self.columns:
            if each.name == key:
                return each
        if key.isdigit() and int(key) < len(self.columns):
            return self.columns[int(key)]
        return next((each for each in self.columns if each.heading == key), None)


def of_query(vector: Vector, *, ref_id: str, alone: bool) -> Frame:
    """One query in the format "table": the time, a column a label in alphabetical order, the value."""
    labels = sorted({label for found, _ in vector for label in found})
    value = "Value" if alone else f"Value #{ref_id}"
    columns: dict[str, tuple[str | float | None, ...]] = {"Time": (0.0,) * len(vector)}
    columns |= {label: tuple(found.get(label, "") for found, _ in vector) for label in labels}
    columns[value] = tuple(number for _, number in vector)
    return Frame(tuple(Column(name, values, name) for name, values in columns.items()))


def transformed(frames: Sequence[Frame], transformations: Sequence[Mapping[str, Any]]) -> Frame:
    """The one frame that the table shows; fails for a transformation it does not know, or that leaves several."""
    now = list(frames)
    for each in transformations:
        now = _KNOWN[each["id"]](now, each.get("options", {}))
    (shown,) = now
    return shown


def ordered(frame: Frame, by: Sequence[Mapping[str, Any]]) -> Frame:
    """Rows as ``options.sortBy`` of the panel has them; what has no value comes last in either direction."""
    order = list(range(len(frame)))
    for each in reversed(by):
        column = next((found for found in frame.columns if found.heading == each["displayName"]), None)
        if column is None:  # Grafana then leaves the order alone
            continue
        given = [row for row in order if column.values[row] is not None]
        given.sort(key=lambda row, of=column: of.values[row], reverse=bool(each.get("desc")))  # type: ignore[misc]
        order = given + [row for row in order if column.values[row] is None]
    return Frame(tuple(replace(each, values=tuple(each.values[row] for row in order)) for each in frame.columns))


def _merge(frames: list[Frame], _: Mapping[str, Any]) -> list[Frame]:
    if len(frames) < 2:
        return frames
    names = list(dict.fromkeys(column.name for frame in frames for column in frame.columns))
    rows: list[dict[str, str | float | None]] = []
    for frame in frames:
        for new in frame.rows():
            fitting = [row for row in rows if all(row.get(name) in (None, value) for name, value in new.items())]
            for row in fitting:
                row.update(new)
            if not fitting:
                rows.append(dict(new))
    return [Frame(tuple(Column(name, tuple(row.get(name) for row in rows), name) for name in names))]


def _grouping_to_matrix(frames: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    if len(frames) != 1:
        return frames
    assert options["emptyValue"] == "null", "an empty text is no number, and takes a colour"
    row, column = options["rowField"], options["columnField"]
    wanted = [
        next((each for each in frames[0].columns if each.heading == name), None)
        for name in (row, column, options["valueField"])
    ]
    if None in wanted:
        return frames
    rows, columns, values = (each.values for each in wanted if each is not None)
    cells = {(r, c): value for r, c, value in zip(rows, columns, values, strict=True)}
    corner = Column(f"{row}\\{column}", tuple(dict.fromkeys(rows)), f"{row}\\{column}")
    found = [
        Column(str(name), tuple(cells.get((each, name)) for each in corner.values), str(name))
        for name in dict.fromkeys(columns)
    ]
    return [Frame((corner, *found))]


def _organize(frames: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    hidden, names = options.get("excludeByName", {}), options.get("renameByName", {})
    index = options.get("indexByName", {})

    def one(frame: Frame) -> Frame:
        kept = [each for each in frame.columns if not hidden.get(each.heading)]
        kept.sort(key=lambda each: index.get(each.heading, float("inf")))
        return Frame(tuple(replace(each, heading=names.get(each.heading) or each.heading) for each in kept))

    return [one(frame) for frame in frames]


def _join_by_field(frames: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    """The outer join; columns of one name are numbered from the second on. A query without series has no column."""
    assert options["mode"] == "outer"
    if len(frames) < 2:
        return frames
    by = options["byField"]
    frames = [frame for frame in frames if frame.find(by)]
    keyed = [{row[by]: row for row in frame.rows()} for frame in frames]
    keys = list(dict.fromkeys(key for rows in keyed for key in rows))
    columns = [Column(by, tuple(keys), by)]
    seen: dict[str, int] = {}
    repeated = {
        name
        for name in (column.name for frame in frames for column in frame.columns)
        if sum(any(column.name == name for column in frame.columns) for frame in frames) > 1
    }
    for frame, rows in zip(frames, keyed, strict=True):
        for column in frame.columns:
            if column.name == by:
                continue
            name = column.name
            if name in repeated:
                seen[name] = seen.get(name, 0) + 1
                name = f"{name} {seen[name]}"
            columns.append(Column(name, tuple(rows.get(key, {}).get(column.heading) for key in keys), name))
    return [Frame(tuple(columns))]


_KNOWN: dict[str, Callable[[list[Frame], Mapping[str, Any]], list[Frame]]] = {
    "merge": _merge,
    "groupingToMatrix": _grouping_to_matrix,
    "organize": _organize,
    "joinByField": _join_by_field,
}
