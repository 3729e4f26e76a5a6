"""What a panel's legends, columns and links may speak of: labels that its queries can return, columns of its table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from . import labelflow, promql
from .dashboards import Panel, panel_links

_LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_COLUMN = re.compile(r"\$\{__data\.fields(?:\.([^}:]+)|\[\"([^\"]+)\"\])(?::\w+)?\}")
_LABEL = re.compile(r"\$\{__field\.labels(?:\.(\w+)|\[\"(\w+)\"\])(?::\w+)?\}")
_REFERENCE = re.compile(r"\$\{__(\w+)")
_NUMBERED = re.compile(r"Time \d+")
_KNOWN_REFERENCES = frozenset({"data", "field", "value", "url_time_range", "from", "to"})


@dataclass(frozen=True, slots=True)
class Columns:
    """A table's columns: by Grafana's names, and as the headings say. ``open``: more come from the data (a matrix)."""

    names: frozenset[str]
    headings: frozenset[str]
    open: bool


@cache
def labels(expr: str) -> frozenset[str]:
    """Every label that a query's result can have."""
    return labelflow.of(promql.parse(expr), labelflow.known())


def legend_faults(panel: Panel) -> Iterator[str]:
    """Placeholders of legends that their query can't fill."""
    for target in panel["targets"]:
        has = labels(target["expr"])
        for name in _LEGEND.findall(target.get("legendFormat", "")):
            if name not in has:
                yield f"{target['legendFormat']}: {name} isn't among {', '.join(sorted(has)) or 'no labels'}"


def annotation_faults(annotation: dict[str, str]) -> Iterator[str]:
    """The same of an annotation's title and text."""
    has = labels(annotation["expr"])
    for text in (annotation["titleFormat"], annotation["textFormat"]):
        yield from (f"{text}: no label {name}" for name in _LEGEND.findall(text) if name not in has)


def link_faults(panel: Panel) -> Iterator[str]:
    """Data links that name a label or column which isn't there. A dashed baseline or limit may lack a link's label."""
    queried = [labels(target["expr"]) for target in panel["targets"] if not _is_dashed(target)]
    columns = table_columns(panel) if panel["type"] == "table" else None
    for link in panel_links(panel):
        url = link["url"]
        for found in _LABEL.findall(url):
            name = found[0] or found[1]
            if not all(name in each for each in queried):
                yield f"{link['title']}: a series without the label {name}"
        for found in _COLUMN.findall(url):
            name = found[0] or found[1]
            if columns is None or name not in columns.names | columns.headings:
                yield f"{link['title']}: no column {name}"
        yield from (f"{link['title']}: {each}" for each in _REFERENCE.findall(url) if each not in _KNOWN_REFERENCES)


def table_faults(panel: Panel) -> Iterator[str]:
    """What a table's transformations, overrides and order name though no column is called so."""
    raw = _raw(panel)
    for each in panel.get("transformations", []):
        if each["id"] == "organize" and not any(one["id"] == "groupingToMatrix" for one in panel["transformations"]):
            for option in ("excludeByName", "indexByName", "renameByName"):
                for name in each["options"].get(option, {}):
                    if name not in raw and not _NUMBERED.fullmatch(name):
                        yield f"{option} {name}: no such column"
        elif each["id"] == "groupingToMatrix":
            options = each["options"]
            for option in ("rowField", "columnField", "valueField"):
                if options[option] not in raw:
                    yield f"{option} {options[option]}: no such column"
        elif each["id"] == "joinByField" and not all(
            each["options"]["byField"] in labels(target["expr"]) for target in panel["targets"]
        ):
            yield f"joinByField {each['options']['byField']}: not in every query"
    columns = table_columns(panel)
    if "__name__" in columns.names:
        yield "a column __name__: rows of several queries don't meet, and nobody wants to read it"
    if columns.open:
        return
    named = [
        override["matcher"]["options"]
        for override in panel["fieldConfig"].get("overrides", [])
        if override["matcher"]["id"] == "byName"
    ]
    named += [each["displayName"] for each in panel["options"].get("sortBy", [])]
    yield from (f"{name}: no column is called so" for name in named if name not in columns.headings)


def table_columns(panel: Panel) -> Columns:
    """The columns after all transformations."""
    names, is_open = _raw(panel), False
    renamed: dict[str, str] = {}
    for each in panel.get("transformations", []):
        options = each["options"]
        if each["id"] == "groupingToMatrix":
            names, is_open = {f"{options['rowField']}\\{options['columnField']}"}, True
        elif each["id"] == "organize":
            names -= {name for name, out in options.get("excludeByName", {}).items() if out}
            renamed |= options.get("renameByName", {})
    return Columns(frozenset(names), frozenset(renamed.get(name) or name for name in names), is_open)


def _raw(panel: Panel) -> set[str]:
    """Before the transformations: every label, the time, and a value of each query."""
    lone = len(panel["targets"]) == 1
    found = {"Time"}
    for target in panel["targets"]:
        found |= labels(target["expr"]) | {"Value" if lone else f"Value #{target['refId']}"}
        if labelflow.keeps_name(promql.parse(target["expr"])):
            found.add("__name__")
    return found


def _is_dashed(target: dict[str, str]) -> bool:
    return target.get("legendFormat", "").startswith(("baseline", "documented", "limit"))
