"""Clicks through the rendered dashboards as Grafana would take them, over the data of a real Prometheus.

A page is a dashboard with the values of its variables. A click is a data link, resolved: its placeholders are replaced
from the row or the series that was clicked, and the address is opened, which gives the next page.

https://grafana.com/docs/grafana/v11.6/panels-visualizations/configure-data-links/#data-link-variables
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from . import dashboards, grafana_frames
from .grafana_frames import Frame, Vector

_PLACEHOLDER = re.compile(r"\$\{(\w+)(?:\.([^:}]+))?(?::(\w+))?\}")
_FIELD = re.compile(r"fields(?:\.(\w+)|\[(?:\"([^\"]*)\"|(\d+))\])")
ALL = "$__all"
"""The value of a variable that stands for all of them."""


NOTHING = Frame(())


@dataclass(frozen=True, slots=True)
class Click:
    """What was clicked on: a cell of a table, or a point of a series with its labels."""

    frame: Frame = NOTHING
    row: int = 0
    labels: Mapping[str, str] | None = None


def resolve(url: str, click: Click, variables: Mapping[str, str], time_range: tuple[str, str]) -> str:
    """The address a data link leads to. A column or label that the data has not is empty, as in Grafana.

    ``variables``: name → value (:data:`ALL` for all) of the page it stands on. Fails for a placeholder that is neither
    one of them nor Grafana's own: Grafana would leave it in the address as it is.
    """

    def value(found: re.Match[str]) -> str:
        name, path, form = found[1], found[2] or "", found[3] or ""
        if name == "__url_time_range":
            return f"from={quote(time_range[0])}&to={quote(time_range[1])}"
        if name == "__data":
            return _formatted(_of_row(click, path), form)
        if name == "__field" and path.startswith("labels."):
            return _formatted((click.labels or {}).get(path.removeprefix("labels."), ""), form)
        if name in variables and not path:
            if form == "queryparam":
                return f"var-{name}={quote(variables[name], safe='$')}"
            return _formatted(variables[name], form)
        raise LookupError(f"no such placeholder: {found[0]} in {url}")

    return _PLACEHOLDER.sub(value, url)


class Grafana:
    """All rendered dashboards over one data source."""

    def __init__(self, query: Callable[[str], Vector], values: Callable[[str], set[str]]) -> None:
        """``query``: PromQL → an instant vector. ``values``: a variable's query → its values."""
        self.query = query
        self.values = values
        self._dashboards = {found["uid"]: found for found in map(dashboards.load, dashboards.DASHBOARDS)}

    def open(self, address: str) -> Page:
        """The page behind ``/d/<uid>?…``; fails where there is none, or the address gives what is no variable of it."""
        parts = urlsplit(address)
        _, folder, uid = parts.path.split("/")
        assert folder == "d", address
        dashboard = self._dashboards[uid]
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        wanted = {name.removeprefix("var-"): value for name, value in given.items() if name.startswith("var-")}
        variables = dict(self._variables(dashboard, wanted))
        unknown = wanted.keys() - variables.keys()
        assert not unknown, f"{address} gives {sorted(unknown)}, which are no variables there"
        return Page(self, dashboard, variables, (given.get("from", "now-6h"), given.get("to", "now")))

    def has(self, address: str) -> bool:
        """Whether the dashboard that an address leads to is rendered."""
        return urlsplit(address).path.removeprefix("/d/") in self._dashboards

    def _variables(self, dashboard: dict[str, Any], wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Each with what the address says; else all of them where it may be all, else the first there is."""
        so_far: dict[str, str] = {}
        for each in dashboard["templating"]["list"]:
            name = each["name"]
            if name in wanted:
                # "All" and the text that stands for all are taken for it
                chosen = (
                    ALL
                    if each.get("includeAll") and wanted[name] in (ALL, "All", each.get("allValue"))
                    else wanted[name]
                )
            elif each["type"] == "datasource":
                chosen = "prometheus"
            elif each.get("includeAll"):
                chosen = ALL
            elif each["type"] == "query":
                chosen = min(self.values(_filled(dashboard, each["query"], so_far)), default="")
            else:
                chosen = str(each["query"]).split(",", 1)[0].strip()
            so_far[name] = chosen
            yield name, chosen


@dataclass(frozen=True, slots=True)
class Page:
    """One dashboard with the values of its variables, and the time range."""

    grafana: Grafana
    dashboard: dict[str, Any]
    variables: Mapping[str, str]
    time_range: tuple[str, str]

    @property
    def uid(self) -> str:
        """The dashboard's."""
        return str(self.dashboard["uid"])

    def panel(self, title: str) -> dict[str, Any]:
        """The one panel of this title."""
        (found,) = [each for each in dashboards.data_panels(self.dashboard) if each["title"] == title]
        return found

    def expressions(self, title: str) -> list[str]:
        """Its queries, variables filled in."""
        return [_filled(self.dashboard, each["expr"], self.variables) for each in self.panel(title)["targets"]]

    def vectors(self, title: str) -> list[Vector]:
        """What its queries give now."""
        return [self.grafana.query(each) for each in self.expressions(title)]

    def value(self, title: str) -> float | None:
        """What a stat panel shows; ``None``: no data."""
        (found,) = self.vectors(title)
        return found[0][1] if found else None

    def table(self, title: str) -> Frame:
        """What a table panel shows, rows in its order."""
        panel = self.panel(title)
        assert panel["type"] == "table", title
        targets = panel["targets"]
        frames = [
            grafana_frames.of_query(found, ref_id=target["refId"], alone=len(targets) == 1)
            for target, found in zip(targets, self.vectors(title), strict=True)
        ]
        shown = grafana_frames.transformed(frames, panel.get("transformations", []))
        return grafana_frames.ordered(shown, panel.get("options", {}).get("sortBy", []))

    def addresses(self, title: str, click: Click, column: str = "") -> dict[str, str]:
        """Title → address of each link of a cell (``column`` is its heading), or of a series."""
        config = self.panel(title)["fieldConfig"]
        links: Sequence[Mapping[str, Any]] = config["defaults"].get("links", [])
        for override in config.get("overrides", []):
            matcher = override["matcher"]
            if column and matcher["id"] == "byName" and matcher["options"] == column:
                links = next((each["value"] for each in override["properties"] if each["id"] == "links"), links)
        return {each["title"]: resolve(each["url"], click, self.variables, self.time_range) for each in links}

    def click(self, title: str, *, column: str, row: int = 0, link: str = "") -> Page:
        """The page behind a cell's link; ``link`` is its title, where the cell has several."""
        return self._follow(self.addresses(title, Click(self.table(title), row), column), link)

    def _follow(self, addresses: Mapping[str, str], link: str) -> Page:
        if link:
            return self.grafana.open(addresses[link])
        (address,) = addresses.values()
        return self.grafana.open(address)


def _filled(dashboard: Mapping[str, Any], expression: str, variables: Mapping[str, str]) -> str:
    """With the values of its variables; all of them as the variable says what stands for all."""
    all_values = {each["name"]: each.get("allValue") or ".*" for each in dashboard["templating"]["list"]}
    given = {name: all_values[name] if value == ALL else value for name, value in variables.items()}
    return dashboards.substitute(expression, **given)


def _of_row(click: Click, path: str) -> str:
    found = _FIELD.fullmatch(path)
    if found is None:
        raise LookupError(f"no such data of a row: {path}")
    column = click.frame.find(found[1] or found[2] or found[3])
    value = None if column is None else column.values[click.row]
    return "" if value is None else str(value)


def _formatted(value: str, form: str) -> str:
    if form not in ("", "raw", "percentencode"):
        raise LookupError(f"no such format: {form}")
    return quote(value, safe="") if form == "percentencode" else value
