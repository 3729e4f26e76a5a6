"""What the panels of others ask: ceph-mixin's from Debian's package, node-mixin's from node_exporter's Go module.

Neither is committed here. Where one can't be had (no apt, no Go, no Grafonnet) the comparison says so and goes without.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from preview.variables import substitute
from support.promql import parse, selectors

ROOT = Path(__file__).parents[2]
OUT = ROOT / "dashboards" / "out"
NODE_EXPORTER = "github.com/prometheus/node_exporter@v1.9.1"
_NEWEST = "github.com/grafana/grafonnet/gen/grafonnet-latest/"
_OURS = "github.com/grafana/grafonnet/gen/grafonnet-v11.4.0/"
_OLD_VARIABLE = re.compile(r"\[\[(\w+)\]\]")
VALUES = {
    "cluster": "fleet", "instance": "node000", "statistic": "p50", "topk": "10", "ceph_daemon": "osd.0",
    "__rate_interval": "5m", "__interval": "1m", "__range": "6h", "__range_s": "21600",
}  # fmt: skip
"""What is chosen on a page. What is missing here matches anything."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query with its variables. ``instant``: asked for the end of the range alone, as tables are."""

    expr: str
    instant: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its dashboard, its title, its queries, and how many points it asks for where it says so."""

    dashboard: str
    title: str
    queries: tuple[Query, ...]
    points: int | None = None


def panels(dashboard: dict[str, Any], name: str) -> Iterator[Panel]:
    """Every panel that asks for something, inside rows too, in all of Grafana's schemas."""
    for each in [
        *dashboard.get("panels", []),
        *(panel for row in dashboard.get("rows", []) for panel in row["panels"]),
    ]:
        yield from panels(each, name)
        queries = tuple(
            Query(_OLD_VARIABLE.sub(r"${\1}", target["expr"]), bool(target.get("instant")))
            for target in each.get("targets", [])
            if target.get("expr")
        )
        if queries:
            yield Panel(name, each.get("title") or "(untitled)", queries, each.get("maxDataPoints"))


def names(expr: str) -> set[str]:
    """Metrics that a query reads."""
    return {selector.metric for selector in selectors(parse(substitute(expr, VALUES)))}


def ours() -> list[Panel]:
    """All panels of the committed dashboards; ``dashboard`` is the page's short name."""
    files = sorted(OUT.glob("plumbline-*.json"))
    return [
        each
        for file in files
        for each in panels(json.loads(file.read_text("utf-8")), file.stem.removeprefix("plumbline-"))
    ]


def ceph_mixin() -> list[Panel]:
    """The overviews of Debian's ceph-grafana-dashboards; empty where apt can't bring it."""
    if shutil.which("apt-get") is None:
        return []
    with tempfile.TemporaryDirectory(prefix="plumbline-peers-") as folder:
        subprocess.run(
            ["apt-get", "download", "-qq", "ceph-grafana-dashboards"], cwd=folder, check=False, capture_output=True
        )
        packages = list(Path(folder).glob("*.deb"))
        if not packages:
            return []
        subprocess.run(["dpkg-deb", "-x", packages[0], folder], check=True)
        files = sorted(Path(folder).glob("etc/grafana/dashboards/ceph-dashboard/*.json"))
        return [each for file in files for each in panels(json.loads(file.read_text("utf-8")), file.stem)]


def node_mixin(rules_to: Path) -> list[Panel]:
    """node-mixin's panels; its recording rules are written to ``rules_to``. Empty without Go or Grafonnet."""
    vendor = ROOT / "dashboards" / "vendor"
    if shutil.which("go") is None or not vendor.is_dir():
        return []
    with tempfile.TemporaryDirectory(prefix="plumbline-peers-") as folder:
        done = subprocess.run(
            ["go", "mod", "download", "-json", NODE_EXPORTER], cwd=folder, check=False, capture_output=True, text=True
        )
    if done.returncode != 0:
        return []
    mixin = Path(json.loads(done.stdout)["Dir"]) / "docs" / "node-mixin"
    rendered = json.loads(
        _evaluate(
            f"local m = import '{mixin}/mixin.libsonnet'; {{ d: m.grafanaDashboards, r: m.prometheusRules }}", vendor
        )
    )
    rules_to.write_text(json.dumps(rendered["r"]))
    return [each for name, board in rendered["d"].items() for each in panels(board, name.removesuffix(".json"))]


def _evaluate(snippet: str, vendor: Path) -> str:
    import _gojsonnet

    def found(folder: str, name: str) -> tuple[str, bytes]:
        for place in (Path(folder), vendor):
            path = place / name.replace(_NEWEST, _OURS)
            if path.is_file():
                return str(path), path.read_bytes()
        raise RuntimeError(f"{name}: no such import")

    text: str = _gojsonnet.evaluate_snippet("peers", snippet, import_callback=found)
    return text
