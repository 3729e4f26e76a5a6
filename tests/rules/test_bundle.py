"""``make bundle``: from its unpacked files alone go-jsonnet renders what ``render.py --site`` renders."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from deploy.release.bundle import VENDOR, files

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not VENDOR.is_dir(), reason="no Grafonnet: make grafonnet")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "render-site").chmod(0o755)
    return folder


@pytest.fixture
def jsonnet() -> str:
    """go-jsonnet's command, which Debian has no package of; what the shell finds as jsonnet may be the C++ one."""
    found = os.environ.get("JSONNET")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False) if found else None
    if found is None or version is None or "Go" not in version.stdout:
        pytest.skip("no go-jsonnet: JSONNET=/path/to/it")
    return found


def render_site(folder: Path, site: Path, out: Path, jsonnet: str) -> subprocess.CompletedProcess[str]:
    argv = [str(folder / "render-site"), str(site), str(out)]
    environment = {"PATH": os.environ["PATH"], "JSONNET": jsonnet}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, timeout=300)


def test_it_renders_what_the_repository_renders(unpacked: Path, jsonnet: str, tmp_path: Path) -> None:
    site, out = tmp_path / "site.libsonnet", tmp_path / "out"
    site.write_text("{ _config+:: { dashboardBaseUrl: 'https://grafana.example.org', minimumTolerance: 1.5 } }")
    done = render_site(unpacked, site, out, jsonnet)
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location("render", ROOT / "render.py")
    assert spec is not None
    assert spec.loader is not None
    render = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(render)
    for name, text in render.render("rules", site).items():
        assert json.loads((out / name).read_text("utf-8")) == yaml.load(text, yaml.CSafeLoader), name
    pages = render.render("dashboards", site)
    assert {path.name for path in (out / "dashboards").iterdir()} == set(pages)
    for name, text in pages.items():
        assert json.loads((out / "dashboards" / name).read_text("utf-8")) == json.loads(text), name


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("{ _config+:: { dashboardBaseUrll: 'x' } }", "there is no setting dashboardBaseUrll"),
        ("{ _config+:: { alerts+: { PlumblineDwon+: {} } } }", "there is no alert PlumblineDwon"),
        (None, "no such file"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    unpacked: Path, jsonnet: str, tmp_path: Path, text: str | None, answer: str
) -> None:
    site = tmp_path / "site.libsonnet"
    if text is not None:
        site.write_text(text)
    done = render_site(unpacked, site, tmp_path / "out", jsonnet)
    assert done.returncode != 0
    assert done.stderr.startswith(f"render-site: {site}: ")
    assert answer in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_it_has_the_rendered_defaults_and_the_routes(unpacked: Path) -> None:
    for name in ("alerts/out/plumbline-alerts.yaml", "alerts/runbooks/PlumblineDown.md", "LICENSE",
                 "alerts/alertmanager/alertmanager.yaml", "dashboards/out/plumbline-node.json"):  # fmt: skip
        assert (unpacked / name).is_file(), name
