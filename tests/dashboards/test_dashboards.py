"""The rendered dashboards are fresh, complete for a reader, and laid out without gaps or overlaps."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.dashboards import DASHBOARDS, data_panels, load

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=DASHBOARDS, ids=lambda path: path.stem)
def dashboard(request):
    return load(request.param)


def test_there_is_a_dashboard_for_every_source():
    sources = sorted(path.name for path in (ROOT / "dashboards" / "pages").glob("*.libsonnet"))
    assert sources
    assert len(sources) == len(DASHBOARDS)


def test_the_committed_json_is_what_the_sources_render_to():
    done = subprocess.run(
        [sys.executable, ROOT / "render.py", "--only", "dashboards", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_mixin_has_them_for_who_takes_it_with_jsonnet():
    """As mixtool and ``jb`` users do: Grafonnet on the path, one field for each kind."""
    import _gojsonnet

    vendor = ROOT / "dashboards" / "vendor"
    if not vendor.is_dir():
        pytest.skip("no Grafonnet below dashboards/vendor")
    source = f"""
      local mixin = import '{ROOT / "mixin.libsonnet"}';
      {{
        dashboards: mixin.grafanaDashboards,
        groups: [std.length(mixin.prometheusRules.groups), std.length(mixin.prometheusAlerts.groups)],
        site: (mixin {{ _config+:: {{ minimumTolerance: 1.5 }} }}).grafanaDashboards['plumbline-overview.json'].panels,
      }}
    """
    mixin = json.loads(_gojsonnet.evaluate_snippet("test", source, jpathdir=[str(vendor)]))
    assert all(mixin["groups"])
    assert mixin["dashboards"] == {path.name: load(path) for path in DASHBOARDS}
    assert mixin["site"] != mixin["dashboards"]["plumbline-overview.json"]["panels"]


@pytest.fixture
def without_grafonnet(tmp_path):
    """The mixin and its renderer, without dashboards/vendor."""
    for part in ("dashboards", "alerts"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("vendor"))
    for file in ("jsonnetfile.lock.json", "mixin.libsonnet", "render.py"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def test_a_changed_input_is_noticed_without_grafonnet(without_grafonnet):
    queries = without_grafonnet / "dashboards" / "queries" / "node.libsonnet"
    queries.write_text(queries.read_text() + "// edited\n")
    edited = without_grafonnet / "dashboards" / "out" / "plumbline-node.json"
    edited.write_text(edited.read_text().replace("Plumbline / Node", "Plumbline / node"))
    done = subprocess.run(
        [sys.executable, without_grafonnet / "render.py", "--only", "dashboards", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == (
        "stale pages: plumbline-node.json (changed: dashboards/queries/node.libsonnet,"
        " dashboards/out/plumbline-node.json itself): dashboards are not rendered without Grafonnet:"
        " run `make grafonnet`\n"
    )


def test_without_grafonnet_a_site_gets_its_rules_and_is_told(without_grafonnet):
    (without_grafonnet / "site.libsonnet").write_text("{ _config+:: { minimumTolerance: 1.5 } }")
    done = subprocess.run(
        [sys.executable, "render.py", "--site", "site.libsonnet", "--out", "site"],
        cwd=without_grafonnet,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "dashboards are not rendered" in done.stderr
    assert (without_grafonnet / "site" / "plumbline-alerts.yaml").exists()
    assert not (without_grafonnet / "site" / "dashboards").exists()


def test_every_panel_explains_itself(dashboard):
    for panel in data_panels(dashboard):
        title = panel["title"]
        assert len(panel["description"]) > 60, title
        assert "ad looks like" in panel["description"] or "othing is drawn where" in panel["description"], title
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


DASHED = {"baseline", "documented", "limit"}


def test_lines_that_are_dashed_are_so_where_a_legend_begins_with_their_word(dashboard):
    """And only there: an override that no line bears reads as if one were missing."""
    for panel in data_panels(dashboard):
        if panel["type"] != "timeseries":
            continue
        legends = [target["legendFormat"] for target in panel["targets"]]
        begun = {word for word in DASHED if any(legend.startswith(word) for legend in legends)}
        overrides = {each["matcher"]["options"] for each in panel["fieldConfig"].get("overrides", [])}
        assert {word for word in DASHED if f"/^{word}/" in overrides} == begun, panel["title"]


def test_a_tile_that_knows_nothing_has_no_colour_of_a_step(dashboard):
    """Grafana would give it that of the lowest one, often green; make test-grafana asks Grafana's own code."""
    tiles = [panel for panel in data_panels(dashboard) if panel["type"] in ("stat", "bargauge")]
    neutral = [
        panel["title"]
        for panel in tiles
        for mapping in panel["fieldConfig"]["defaults"].get("mappings", [])
        if mapping["type"] == "special" and mapping["options"]["match"] == "null+nan"
    ]
    assert neutral == [panel["title"] for panel in tiles]
