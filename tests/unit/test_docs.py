"""The generated references are what the code says, and the example configuration is one."""

import subprocess
import sys
from pathlib import Path

from plumbline.config import load
from plumbline.workloads import load_catalogue

ROOT = Path(__file__).parents[2]


def test_the_references_are_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "render.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_example_configurations_are_good():
    for name in ("deploy/plumbline.yaml", "deploy/demo/plumbline.yaml"):
        assert load(ROOT / name, load_catalogue()).probes, name


def test_every_key_of_the_references_has_a_meaning():
    rows = [line for line in (ROOT / "docs" / "configuration.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 25
    assert [row for row in rows if row.endswith("|  |")] == []
