"""Ceph's recording rules under promtool, over series of :mod:`support.ceph_pages`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .promtool import run_tests
from .rulefiles import load
from .rules import RULES


def near(expr: str, value: float, at_s: int) -> dict[str, Any]:
    """One series, of this value. Floating point: the series are sums of steps."""
    return asked(f"count(abs({expr} - {value!r}) < {abs(value) * 1e-6 + 1e-12!r})", 1, at_s)


def asked(expr: str, value: float, at_s: int, labels: str = "{}") -> dict[str, Any]:
    return {"expr": expr, "eval_time": f"{at_s}s", "exp_samples": [{"labels": labels, "value": value}]}


def group(name: str, interval_s: int, series: Iterable[dict[str, str]], cases: Sequence[dict[str, Any]]) -> Any:
    return {
        "name": name, "interval": f"{interval_s}s", "input_series": list(series), "promql_expr_test": list(cases)
    }  # fmt: skip


def promtool(folder: Path, tests: Sequence[Any]) -> None:
    """Only Ceph's rules: the others have nothing to read here."""
    rules = load(RULES)
    rules["groups"] = [each for each in rules["groups"] if each["name"].startswith(("plumbline-osd", "plumbline-ceph"))]
    assert len(rules["groups"]) >= 3
    (folder / "rules.yaml").write_text(json.dumps(rules), "utf-8")
    file = folder / "test.yaml"
    file.write_text(
        json.dumps({"rule_files": ["rules.yaml"], "evaluation_interval": "60s", "tests": list(tests)}), "utf-8"
    )
    assert run_tests(file)[:6000] == ""
