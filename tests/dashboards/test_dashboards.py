"""The rendered dashboards are fresh, complete for a reader, and laid out without gaps or overlaps."""

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
