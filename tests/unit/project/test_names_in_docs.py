"""Every metric, recording rule, alert, command and make target that a page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from plumbline.cli import main
from plumbline.collectors.registry import every_spec

ROOT = Path(__file__).parents[3]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "alerts/README.md",
    ROOT / "dashboards/README.md",
)
"""Runbooks have tests of their own."""

_METRIC = re.compile(r"(?<![\w./])plumbline_[a-z0-9_]+[a-z0-9](?![\w*…{]*[*…])")
_RECORD = re.compile(r"(?<![\w.])plumbline:[a-z0-9_]+:[a-z0-9_]+[a-z0-9](?![\w*…]*[*…])")
_ALERT = re.compile(r"\bPlumbline[A-Z][A-Za-z]+\b(?!\.\+|[*…])")
_MAKE = re.compile(r"`make ([a-z-]+)[` ]")
_COMMAND = re.compile(r"`plumbline ([a-z]+)[` ]")


def rules(kind: str, key: str) -> set[str]:
    groups = yaml.safe_load((ROOT / f"alerts/out/plumbline-{kind}.yaml").read_text("utf-8"))["groups"]
    return {rule[key] for group in groups for rule in group["rules"]}


def unknown(pattern: re.Pattern[str], known: Iterable[str]) -> dict[str, set[str]]:
    names = set(known)
    found = {page.name: set(pattern.findall(page.read_text("utf-8"))) - names for page in PAGES}
    return {page: missing for page, missing in found.items() if missing}


def test_metrics() -> None:
    specs = {spec.name for spec in every_spec()}
    samples = {f"{name}_{suffix}" for name in specs for suffix in ("bucket", "sum", "count")}
    assert unknown(_METRIC, specs | samples) == {}


def test_recording_rules() -> None:
    assert unknown(_RECORD, rules("rules", "record")) == {}


def test_alerts() -> None:
    assert unknown(_ALERT, rules("alerts", "alert")) == {}


def test_make_targets() -> None:
    targets = re.findall(r"^(?:MODULE_)?([a-z-]+) ?:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert unknown(_MAKE, targets) == {}


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z]+)\b", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) > 5
    assert unknown(_COMMAND, commands) == {}


@pytest.mark.parametrize("name", ["plumbline_nic_dropz_total", "plumbline_nic_drops_total"])
def test_a_name_that_is_none_is_found(name: str) -> None:
    known = {spec.name for spec in every_spec()}
    assert (set(_METRIC.findall(f"`{name}{{cause}}`")) <= known) is (name == "plumbline_nic_drops_total")
