"""``render.py``: committed files are what it writes, mistakes are one line, and a clone without Grafonnet lacks pages
only (that a new alert makes none stale: tests/unit/project/test_changes.py)."""

import importlib.util
import json
import shutil
import subprocess
import sys

import _gojsonnet
import pytest

from support.programs import need
from support.rules import ROOT


def render(*arguments, root=ROOT, part="rules"):
    argv = [sys.executable, root / "render.py", "--only", part, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture
def copy_of_the_mixin(tmp_path):
    """A fresh clone's: without Grafonnet."""
    for folder in ("alerts", "dashboards"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("vendor"))
    for file in ("mixin.libsonnet", "render.py", "jsonnetfile.lock.json"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def test_the_committed_rules_are_fresh():
    done = render("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_tunable_is_noticed_and_rendering_mends_it(copy_of_the_mixin):
    config = copy_of_the_mixin / "alerts" / "config" / "probe.libsonnet"
    text = config.read_text("utf-8")
    assert "minimumTolerance: 1.25" in text
    config.write_text(text.replace("minimumTolerance: 1.25", "minimumTolerance: 1.35"))
    stale = render("--check", root=copy_of_the_mixin)
    assert stale.returncode == 1
    assert "1.35" in stale.stdout
    assert "make render" in stale.stderr
    assert render(root=copy_of_the_mixin).returncode == 0
    assert render("--check", root=copy_of_the_mixin).returncode == 0


def test_a_foreign_file_among_the_rendered_is_noticed(copy_of_the_mixin):
    (copy_of_the_mixin / "alerts" / "out" / "old.yaml").write_text("groups: []\n")
    assert render("--check", root=copy_of_the_mixin).returncode == 1


def test_a_mistake_in_the_jsonnet_is_one_message(copy_of_the_mixin):
    config = copy_of_the_mixin / "alerts" / "config" / "probe.libsonnet"
    config.write_text(config.read_text("utf-8").replace("minimumTolerance", "minimumTolerence", 1))
    done = render("--check", root=copy_of_the_mixin)
    assert done.returncode == 2
    assert "minimumTolerance" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_site_renders_its_own_copy(tmp_path):
    site = tmp_path / "site.libsonnet"
    site.write_text(
        "{ _config+:: { dashboardBaseUrl: 'https://grafana.example.org', plumblineSelector: 'job=\"storage\"',"
        " alerts+: { PlumblineDown+: { 'for': '2m' } } } }"
    )
    assert render("--site", site).returncode == 2, "the defaults are not overwritten"
    done = render("--site", site, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "plumbline-alerts.yaml").read_text("utf-8")
    assert (
        'up{job="storage"} == 0\n      unless on (cluster, instance)\n      plumbline:node_storage_up:info\n'
        "      unless on (cluster, instance)\n      plumbline:maintenance_node:info\n    for: 2m" in text
    )
    assert "https://grafana.example.org/d/plumbline-node" in text
    assert subprocess.run([need("promtool"), "check", "rules", tmp_path / "out" / "plumbline-alerts.yaml"],
                          capture_output=True, check=False).returncode == 0  # fmt: skip


def renderer():
    spec = importlib.util.spec_from_file_location("render", ROOT / "render.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_input_gives_the_same_bytes():
    """Those of another process, which are committed."""
    module = renderer()
    committed = {path.name: path.read_text("utf-8") for path in module.OUT["rules"].iterdir()}
    assert module.render("rules") == committed


def test_jsonnet_in_go_gives_the_same_rules():
    """Sites that build the mixin themselves have that one."""
    module = renderer()
    snippet = f"local mixin = (import {json.dumps(str(ROOT / 'mixin.libsonnet'))}); {module.FIELDS['rules']}"
    assert json.loads(_gojsonnet.evaluate_snippet("go", snippet)) == module.evaluate_rules(snippet)


# --- without Grafonnet ----------------------------------------------------------------------------------------------

NAME = "PlumblineDiskNoisy"
ALERT = f"""+ {{ prometheusAlerts+:: {{ groups+: [{{ name: 'plumbline-new', rules: [
  (import 'alerts/lib/alert.libsonnet').new(
    $._config, '{NAME}', 'vector(1)', {{ signal: 'health' }}, 'Noisy.', 'Noisy.'
  ),
] }}] }} }}
"""


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def before(path, line, new):
    edit(path, line, f"{new}\n{line}")


def add_an_alert(root, tunables=True, first_step=True, runbook=True, signal=True):
    alert = ALERT if signal else ALERT.replace("signal: 'health'", "")
    before(root / "mixin.libsonnet", "+ (import 'alerts/lib/site.libsonnet')", alert)
    if tunables:
        before(root / "alerts/config/disk.libsonnet", "      PlumblineDiskHot: {", f"{NAME}: {{ severity: 'info' }},")
    if first_step:
        before(root / "alerts/alerts/health.libsonnet", "    PlumblineDiskHot:", f"{NAME}: first.disk,")
    if runbook:
        (root / f"alerts/runbooks/{NAME}.md").write_text(f"# {NAME}\n")


def test_a_threshold_that_pages_draw_makes_these_stale_and_no_other(copy_of_the_mixin):
    edit(copy_of_the_mixin / "alerts/config/disk.libsonnet", "wearWindow: '14d'", "wearWindow: '21d'")
    line = (
        'stale pages: plumbline-capacity.json (changed: disk.wearWindow: "14d" is now "21d"): dashboards are not'
        " rendered without Grafonnet: run `make grafonnet`\n"
    )
    fresh = render("--check", root=copy_of_the_mixin, part="dashboards")
    assert (fresh.returncode, fresh.stdout) == (1, line)
    rendered = render(root=copy_of_the_mixin, part="dashboards")
    assert (rendered.returncode, rendered.stderr) == (0, f"render.py: {line}")


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ("tunables", "PlumblineDiskNoisy has no severity: add it to the alerts of alerts/config/<room>.libsonnet"),
        ("first_step", "PlumblineDiskNoisy has no first step: add one to _firstSteps beside the alert"),
        ("signal", "PlumblineDiskNoisy has no signal: add one to its labels"),
        ("runbook", "PlumblineDiskNoisy has no runbook: write alerts/runbooks/PlumblineDiskNoisy.md"),
    ],
)
def test_what_a_new_alert_lacks_is_one_line(copy_of_the_mixin, missing, line):
    add_an_alert(copy_of_the_mixin, **{missing: False})
    done = render(root=copy_of_the_mixin)
    assert (done.returncode, done.stderr) == (2, f"render.py: {line}\n")


def test_an_alert_that_opens_no_page_is_one_line(copy_of_the_mixin):
    add_an_alert(copy_of_the_mixin)
    links = copy_of_the_mixin / "alerts/config/links.libsonnet"
    edit(links, "PlumblineDisk: 'disk',", "")
    edit(links, "Plumbline: 'node',", "")
    site = copy_of_the_mixin / "site.libsonnet"
    site.write_text("{ _config+:: { dashboardBaseUrl: 'https://grafana.example.org' } }")
    done = render("--site", site, "--out", copy_of_the_mixin / "site", root=copy_of_the_mixin)
    assert done.returncode == 2
    assert done.stderr.endswith("or how it begins, to dashboardPages in alerts/config/links.libsonnet\n")
    assert done.stderr.count("\n") == 1
