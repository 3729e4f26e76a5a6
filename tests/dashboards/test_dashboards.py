"""The rendered dashboards are fresh, valid for Grafana 11, complete for a reader, and ask only for what exists."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.dashboards import DASHBOARDS, data_panels, expressions, load, substitute
from support.metrics import FOREIGN, known_metrics

ROOT = Path(__file__).parents[2]
BASE_UNITS = {"none", "s", "bytes", "Bps", "bps", "pps", "iops", "ops", "percentunit", "short"}
# Prometheus' own annotation fields: Grafana's schema leaves datasource-specific fields open
ANNOTATION_FIELDS = {"expr", "titleFormat", "textFormat", "step", "useValueForTime"}


@pytest.fixture(params=DASHBOARDS, ids=lambda path: path.stem)
def dashboard(request):
    return load(request.param)


def test_there_is_a_dashboard_for_every_source():
    sources = sorted(path.name for path in (ROOT / "dashboards").glob("*.jsonnet"))
    assert sources
    assert len(sources) == len(DASHBOARDS)


def test_the_committed_json_is_what_the_sources_render_to():
    done = subprocess.run(
        [sys.executable, ROOT / "dashboards" / "render.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_changed_input_is_noticed_without_grafonnet(tmp_path):
    import shutil

    for part in ("dashboards", "alerts"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("vendor"))
    shutil.copy(ROOT / "jsonnetfile.lock.json", tmp_path)
    queries = tmp_path / "dashboards" / "queries" / "node.libsonnet"
    queries.write_text(queries.read_text() + "// edited\n")
    edited = tmp_path / "dashboards" / "out" / "plumbline-node.json"
    edited.write_text(edited.read_text().replace("Plumbline / Node", "Plumbline / node"))
    done = subprocess.run(
        [sys.executable, tmp_path / "dashboards" / "render.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "dashboards/queries/node.libsonnet changed" in done.stderr
    assert "dashboards/out/plumbline-node.json changed" in done.stderr


def test_grafanas_own_schema_takes_every_field(dashboard):
    """Through the official SDK and back: a field that its schema does not know does not come back."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    back = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    lost = [path for path in _lost(dashboard, back) if path.rsplit(".", 1)[-1] not in ANNOTATION_FIELDS]
    assert lost == []


def test_the_schema_check_notices_a_wrong_field():
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    broken = {**load(DASHBOARDS[0]), "refreshh": "1m"}
    back = json.loads(JSONEncoder().encode(Dashboard.from_json(broken)))
    assert list(_lost(broken, back))[-1:] == [".refreshh"] or ".refreshh" in list(_lost(broken, back))


def _lost(before, after, path=""):
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield f"{path}.{key}"
            else:
                yield from _lost(value, after[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _lost(one, other, f"{path}[{index}]")
    elif before != after:
        yield path


def test_every_panel_explains_itself(dashboard):
    for panel in data_panels(dashboard):
        title = panel["title"]
        assert len(panel["description"]) > 60, title
        assert "ad looks like" in panel["description"] or "othing is drawn where" in panel["description"], title
        assert panel["fieldConfig"]["defaults"]["unit"] in BASE_UNITS, title
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, title
        assert panel["targets"], title
        assert all(target["expr"] for target in panel["targets"]), title


def test_titles_and_ids_are_unique_and_panels_do_not_overlap(dashboard):
    panels = list(data_panels(dashboard))
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    taken = {}
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[(x, y)]}"
                taken[(x, y)] = panel["title"]


def test_the_dashboard_can_be_linked_and_is_not_edited_in_place(dashboard):
    assert re.fullmatch(r"plumbline-[a-z]+", dashboard["uid"])
    assert dashboard["editable"] is False
    assert "plumbline" in dashboard["tags"]
    assert dashboard["templating"]["list"][0]["name"] == "datasource"
    assert all(link["keepTime"] and link["includeVars"] for link in dashboard["links"])


def test_rates_follow_the_zoom(dashboard):
    for where, expr in expressions(dashboard):
        for window in re.findall(r"\b(?:rate|irate|increase)\([^[]*\[([^\]]+)\]", expr):
            assert window == "$__rate_interval", where


def test_every_query_parses_and_names_only_what_exists(dashboard, tmp_path):
    """promtool parses each query as a rule; each metric is one of ours, of our rules, or Prometheus' own."""
    rules = [
        {"record": f"panel:query:{n}", "expr": substitute(expr)} for n, (_, expr) in enumerate(expressions(dashboard))
    ]
    assert len(rules) > 20
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    known = known_metrics() | set(FOREIGN)
    for where, expr in expressions(dashboard):
        # without texts, matchers and lists of labels, where a label may be called like a metric
        bare = re.sub(
            r"\b(?:by|on|without|ignoring|group_left|group_right) ?\([^)]*\)", "", re.sub(r'"[^"]*"', "", expr)
        )
        bare = re.sub(r"\{[^}]*\}", "", bare)
        named = set(re.findall(r"\b(plumbline[:_][a-z0-9_:]+|process_[a-z_]+|ceph_[a-z_]+|node_[a-z_]+)\b", bare))
        assert named <= known, f"{where}: unknown {sorted(named - known)}"
