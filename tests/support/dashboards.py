"""The rendered dashboards, for tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from preview import variables as preview

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted(p for p in (ROOT / "dashboards" / "out").glob("*.json") if p.name != "manifest.json")

label_values = preview.label_values
placeholders = preview.placeholders

Dashboard = dict[str, Any]
Panel = dict[str, Any]

GRAFANAS = {
    "__rate_interval": "1m",
    "__interval": "15s",
    "__range": "1h",
    "__range_s": "3600",
}
"""What Grafana itself knows, for a query over an hour."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another of our pages: where it stands, and which variables it carries with which text."""

    where: str
    uid: str
    variables: Mapping[str, str]
    panel: Panel | None


def load(path: Path) -> Dashboard:
    """A dashboard's JSON."""
    content: Dashboard = json.loads(path.read_text("utf-8"))
    return content


def data_panels(dashboard: Dashboard) -> Iterator[Panel]:
    """Every panel that queries something, those inside rows too."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        elif panel["type"] != "text":
            yield panel


def expressions(dashboard: Dashboard) -> Iterator[tuple[str, str]]:
    """(where, PromQL) of every panel query and annotation, variables not yet replaced."""
    for panel in data_panels(dashboard):
        for target in panel["targets"]:
            yield f"{dashboard['uid']} / {panel['title']}", target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        if "expr" in annotation:
            yield f"{dashboard['uid']} / annotation {annotation['name']}", annotation["expr"]


def variables(dashboard: Dashboard) -> dict[str, dict[str, Any]]:
    """The template variables by name, in the page's order."""
    return {each["name"]: each for each in dashboard["templating"]["list"]}


def substitute(expr: str, **variables: str) -> str:
    """The query as Grafana sends it, over an hour; a variable that isn't given matches anything."""
    return preview.substitute(expr, {**GRAFANAS, "instance": "node", "statistic": "p50", **variables})


def links(dashboard: Dashboard) -> Iterator[Link]:
    """Every link to a page: of the page itself (not its list of all pages), of panels, of columns."""
    uid = dashboard["uid"]
    for each in dashboard["links"]:
        if each["type"] == "link":
            yield from _links(f"{uid} / link {each['title']}", each["url"], None)
    for panel in data_panels(dashboard):
        for each in panel_links(panel):
            yield from _links(f"{uid} / {panel['title']} / {each['title']}", each["url"], panel)


def panel_links(panel: Panel) -> Iterator[dict[str, Any]]:
    """The data links of a panel, those of single columns too."""
    yield from panel["fieldConfig"]["defaults"].get("links", [])
    for override in panel["fieldConfig"].get("overrides", []):
        for each in override["properties"]:
            if each["id"] == "links":
                yield from each["value"]


def _links(where: str, url: str, panel: Panel | None) -> Iterator[Link]:
    """One, or one to each page that a column of the panel's own queries may name (``/d/${__data.fields.page}``)."""
    parts = urlsplit(url)
    found = re.fullmatch(r"/d/([\w-]+|\$\{__data\.fields\.\w+\})", parts.path)
    if not found:
        raise ValueError(f"{where}: not a page of ours: {url}")
    uids = [found[1]]
    if found[1].startswith("$") and panel is not None:
        uids = [uid for target in panel["targets"] for uid in re.findall(r'"(plumbline-[a-z]+)"', target["expr"])]
    carried: dict[str, str] = {}
    for each in filter(None, parts.query.split("&")):
        own = re.fullmatch(r"\$\{(\w+):queryparam\}", each)
        if own:  # Grafana writes var-x=… for the page's own choice
            carried[own[1]] = f"${{{own[1]}}}"
        elif each.startswith("var-"):
            name, _, value = each.partition("=")
            carried[name[4:]] = value
        elif each != "${__url_time_range}":
            raise ValueError(f"{where}: {each} in a link")
    for uid in dict.fromkeys(uids):
        yield Link(where, uid, carried, panel)
