"""Where the rules and their promtool tests stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .rulefiles import load

ROOT = Path(__file__).parents[2]
RULES = ROOT / "alerts" / "out" / "plumbline-rules.yaml"
ALERTS = ROOT / "alerts" / "out" / "plumbline-alerts.yaml"
NATIVE = tuple(ROOT / "alerts" / "out-native" / path.name for path in (RULES, ALERTS))
"""The same for native histograms."""
TEST_FILES = sorted((ROOT / "tests" / "rules").glob("*.yaml"))


def rules_of(path: Path) -> list[dict[str, Any]]:
    """Every rule of a rendered file, in order."""
    return [rule for group in load(path)["groups"] for rule in group["rules"]]
