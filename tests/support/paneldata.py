"""Which queries of a page have data in a real Prometheus, with the values that Grafana offers for its variables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from preview.variables import choices

from .dashboards import Dashboard, data_panels, placeholders, substitute

MOST_CHOICES = 80
"""Combinations of values that are tried for one query, the page's first ones first."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query: of which page, panel (or annotation) and letter."""

    page: str
    panel: str
    letter: str
    expr: str


@dataclass(frozen=True, slots=True)
class Empty:
    """Queries that have no data on test machines. ``sure``: having some is as wrong as missing some elsewhere."""

    page: str
    panel: str
    letters: frozenset[str]
    reason: str
    sure: bool

    def covers(self, query: Query) -> bool:
        """Whether it speaks of this query."""
        return (self.page, self.panel) == (query.page, query.panel) and (
            not self.letters or query.letter in self.letters
        )


def queries(dashboard: Dashboard) -> Iterator[Query]:
    """Every query of every panel, and of the annotations."""
    for panel in data_panels(dashboard):
        for target in panel["targets"]:
            if target["refId"] == "proof":  # its row says that the rules are missing
                continue
            yield Query(dashboard["uid"], panel["title"], target["refId"], target["expr"])
    for annotation in dashboard["annotations"]["list"]:
        yield Query(dashboard["uid"], f"annotation {annotation['name']}", "", annotation["expr"])


def listed(file: Path) -> list[Empty]:
    """What ``file`` lists: reasons, each with the queries it holds for (``page / panel`` or ``page / panel / A B``)."""
    found = []
    for group in yaml.safe_load(file.read_text("utf-8")):
        for where in group["queries"]:
            page, panel, *letters = where.split(" / ")
            named = frozenset(letters[0].split()) if letters else frozenset()
            found.append(Empty(f"plumbline-{page}", panel, named, group["reason"], group["sure"]))
    return found


def offered(dashboard: Dashboard, ask: Callable[[str, str], list[str]]) -> Iterator[dict[str, str]]:
    """Every choice of the page's variables, in the order that a reader would go through them; the opened page first."""
    yield from _chosen([each for each in dashboard["templating"]["list"] if each["type"] != "datasource"], {}, ask)


def has_data(query: Query, offers: list[dict[str, str]], ask: Callable[[str], Any]) -> bool:
    """For the page as it opens, or for any other choice of the variables that the query names."""
    names = sorted(placeholders(query.expr))
    told = {tuple(each.get(name, "") for name in names): each for each in reversed(offers)}
    ordered = dict.fromkeys(tuple(each.get(name, "") for name in names) for each in offers)
    return any(ask(substitute(query.expr, **told[key])) for key in itertools.islice(ordered, MOST_CHOICES))


def _chosen(
    variables: list[Mapping[str, Any]], before: dict[str, str], ask: Callable[[str, str], list[str]]
) -> Iterator[dict[str, str]]:
    if not variables:
        yield before
        return
    first, *others = variables
    for value in choices(first, before, ask) or [""]:
        yield from _chosen(others, {**before, first["name"]: value}, ask)
