"""Where the rules and their promtool tests stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from .rulefiles import load

ROOT = Path(__file__).parents[2]
RULES = ROOT / "alerts" / "out" / "plumbline-rules.yaml"
ALERTS = ROOT / "alerts" / "out" / "plumbline-alerts.yaml"
NATIVE = tuple(ROOT / "alerts" / "out-native" / path.name for path in (RULES, ALERTS))
"""The same for native histograms."""
TEST_FILES = sorted((ROOT / "tests" / "rules").glob("*.yaml"))


def rendered(folder: Path, site: str) -> Path:
    """The folder, below ``folder``, of the rules with a site's own numbers; ``site``: Jsonnet."""
    file, out = folder / "site.libsonnet", folder / "rules"
    file.write_text(site)
    subprocess.run([sys.executable, ROOT / "render.py", "--only", "rules", "--site", file, "--out", out], check=True)
    return out


def rules_of(path: Path) -> list[dict[str, Any]]:
    """Every rule of a rendered file, in order."""
    return [rule for group in load(path)["groups"] for rule in group["rules"]]
