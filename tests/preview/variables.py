"""What Grafana puts in place of variables when a page is opened: the first value of each, or all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_PLACE = re.compile(r"\$\{([a-zA-Z_]\w*)(?::\w+)?\}|\$([a-zA-Z_]\w*)")  # not $1, which is a regular expression's
_LABEL_VALUES = re.compile(r"label_values\((.+),\s*(\w+)\)", re.DOTALL)
ALL = ".*"

Ask = Callable[[str, str], list[str]]
"""(selector, label) → its values."""


def label_values(query: str) -> tuple[str, str]:
    """(selector, label) of a variable's ``label_values(selector, label)``; ``ValueError`` for other queries."""
    found = _LABEL_VALUES.fullmatch(query)
    if not found:
        raise ValueError(f"not a query of label values: {query}")
    return found[1], found[2]


def substitute(text: str, values: Mapping[str, str]) -> str:
    """The text as Grafana sends it. A variable that ``values`` lacks matches anything."""
    return _PLACE.sub(lambda found: values.get(found[1] or found[2], ALL), text)


def placeholders(text: str) -> set[str]:
    """The names of the variables in a text, Grafana's own too."""
    return {found[1] or found[2] for found in _PLACE.finditer(text)}


def choices(variable: Mapping[str, Any], before: Mapping[str, str], ask: Ask) -> list[str]:
    """The values one may choose, the one that the page opens with first; empty where the query has none.

    ``before``: what is chosen for the variables that stand before this one.
    """
    if variable["type"] == "query":
        selector, label = label_values(substitute(variable["query"], before))
        found = sorted(ask(selector, label))
    else:
        # "text : value", or the value alone
        found = [each.rpartition(" : ")[2].strip() for each in variable["query"].split(",")]
    return [variable.get("allValue") or ALL, *found] if variable.get("includeAll") else found


def opened(dashboard: Mapping[str, Any], given: Mapping[str, str], ask: Ask) -> dict[str, str]:
    """Variable → value when the page is opened with ``given`` in its address. Without any value a variable is empty."""
    values: dict[str, str] = {}
    for variable in dashboard["templating"]["list"]:
        name = variable["name"]
        if variable["type"] == "datasource":
            continue
        values[name] = given[name] if name in given else next(iter(choices(variable, values, ask)), "")
    return values
