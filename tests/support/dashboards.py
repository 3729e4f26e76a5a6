"""The rendered dashboards, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted(p for p in (ROOT / "dashboards" / "out").glob("*.json") if p.name != "manifest.json")

_VALUES = {
    "$__rate_interval": "1m",
    "$__interval": "15s",
    "$__range": "1h",
    "$cluster": ".*",
    "$statistic": "p50",
    "$device": ".*",
    "$operation": ".*",
    "$ceph_daemon": "osd.0",
    "$device_class": ".*",
    "$pool": ".*",
    "$vantage": ".*",
}


def load(path: Path) -> dict[str, Any]:
    """A dashboard's JSON."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def data_panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel that queries something, those inside rows too."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def expressions(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(where, PromQL) of every panel query and annotation, variables not yet replaced."""
    for panel in data_panels(dashboard):
        for target in panel["targets"]:
            yield f"{dashboard['uid']} / {panel['title']}", target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        if "expr" in annotation:
            yield f"{dashboard['uid']} / annotation {annotation['name']}", annotation["expr"]


def substitute(expr: str, **variables: str) -> str:
    """The query as Grafana sends it; ``variables`` override the defaults (``instance`` matches anything)."""
    values = {**_VALUES, "$instance": "node", **{f"${name}": value for name, value in variables.items()}}
    for name in sorted(values, key=len, reverse=True):
        expr = expr.replace(name, values[name])
    return expr
