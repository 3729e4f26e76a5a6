"""CONTRIBUTING's table of what the most common changes touch: some are made in a copy, and the files counted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (?P<change>[^|]+) \| (?P<count>\d+) \| (?P<files>[^|]+) \|$", re.MULTILINE)
ROWS = ROW.finditer((ROOT / "CONTRIBUTING.md").read_text())
TABLE = {row["change"]: (int(row["count"]), row["files"]) for row in ROWS}
NEEDED_FOR_RENDERING = ("mixin.libsonnet", "render.py", "jsonnetfile.lock.json")


class Copy:
    """A copy of some folders, and which of its files a change has touched."""

    def __init__(self, root: Path, *names: str) -> None:
        self.root, self.touched = root, set[str]()
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("vendor", "__pycache__"))
            else:
                shutil.copy(ROOT / name, root / name)

    def write(self, name: str, text: str) -> None:
        """A new file."""
        path = self.root / name
        assert not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.touched.add(name)

    def insert(self, name: str, at: str, new: str) -> None:
        """Add to a file, before the only place where it has this text."""
        path = self.root / name
        text = path.read_text()
        assert text.count(at) == 1, f"{name} has {at!r} {text.count(at)} times"
        path.write_text(text.replace(at, new + at))
        self.touched.add(name)

    def python(self, *argv: str) -> str:
        """What Python prints in the copy."""
        environment = os.environ | {"PYTHONPATH": str(self.root / "exporter")}
        done = subprocess.run(
            [sys.executable, *argv], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_every_row_counts_what_it_lists() -> None:
    assert len(TABLE) == 11
    for change, (count, files) in TABLE.items():
        assert count == len(re.sub(r" or `[^`]+`| \(.*?\)|;.*", "", files).split(", ")), change


def test_a_collector_and_its_check(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "exporter")
    copy.write("exporter/plumbline/sources/kernel/noise.py", "def read_noise() -> int:\n    return 7\n")
    copy.write(
        "exporter/plumbline/collectors/noise.py",
        "from plumbline.metrics.guard import Collector\n"
        "from plumbline.metrics.spec import declared, gauge\n"
        "from plumbline.sources.kernel.noise import read_noise\n"
        'NOISE = gauge("plumbline_noise_level", "Noise.", ())\n'
        'COLLECTOR = Collector("noise", declared(globals()), lambda host, skip: read_noise(),\n'
        '    lambda level: [(NOISE, (), level)], origin="nowhere", sized_by=("node",))\n',
    )
    registry = "exporter/plumbline/collectors/registry.py"
    copy.insert(registry, "\n    osd,", "\n    noise,")
    copy.insert(registry, "\n    osd.COLLECTOR,", "\n    noise.COLLECTOR,")
    copy.write("tests/fixtures/hosts/noise", "7\n")
    copy.write("tests/unit/collectors/test_collectors_noise.py", "")
    program = (
        "from plumbline.collectors.registry import NAMES, every_spec\n"
        "print(*NAMES, *(spec.name for spec in every_spec()))"
    )
    assert {"noise", "plumbline_noise_level"} <= set(copy.python("-c", program).split())
    assert len(copy.touched) == TABLE["a collector"][0]
    judged = (
        'noise = check("host.noise", "Be quiet.", "", "", "", Severity.INFO, "")(\n'
        "    lambda host: iter([Verdict('noise', 'loud', 'quiet')])\n)\n"
    )
    copy.insert("exporter/plumbline/checks/host.py", "\nCHECKS = (", judged)
    copy.insert("exporter/plumbline/checks/host.py", "cpu_governor, cpu_idle_states, ", "noise, ")
    program = "from plumbline.checks.run import CHECKS; print(*(check.id for check in CHECKS))"
    assert "host.noise" in copy.python("-c", program).split()
    assert len(copy.touched) == TABLE["a collector whose reading is judged"][0]


def test_an_alert(tmp_path: Path) -> None:
    pytest.importorskip("_gojsonnet", reason="gojsonnet is not installed; make test installs it")
    copy = Copy(tmp_path, "alerts", "dashboards", *NEEDED_FOR_RENDERING)
    alert = "alert.new(config, 'PlumblineDiskNoisy', 'vector(1)', { signal: 'health' }, 'Noisy.', 'Noisy.'),"
    first = "alert.new(\n          config,\n          'PlumblineDiskMediaErrors',"
    copy.insert("alerts/config/disk.libsonnet", "PlumblineDiskHot: {", "PlumblineDiskNoisy: { severity: 'info' },")
    copy.insert("alerts/alerts/health.libsonnet", first, alert)
    copy.insert("alerts/alerts/health.libsonnet", "PlumblineDiskHot:", "PlumblineDiskNoisy: first.disk,")
    copy.write("alerts/runbooks/PlumblineDiskNoisy.md", "# PlumblineDiskNoisy\n")
    copy.write("tests/rules/noisy_alerts.yaml", "")
    copy.python("render.py", "--only", "rules")
    assert "PlumblineDiskNoisy" in (tmp_path / "alerts/out/plumbline-alerts.yaml").read_text()
    assert copy.python("render.py", "--check", "--only", "dashboards") == "", "no page is stale"
    assert len(copy.touched) == TABLE["an alert"][0]
