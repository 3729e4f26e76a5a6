"""Every alert's text answers in one order: what is wrong, for whom, since when, what is suspected, what to do first."""

from __future__ import annotations

import json
import re
from typing import Any

import rjsonnet

from plumbline import cli
from support.offenders import for_every
from support.rules import ALERTS, ROOT, rules_of
from support.runbooks import RUNBOOKS, code_blocks, commands, script_of, whole
from support.titles import written

RULES = [rule for rule in rules_of(ALERTS) if "alert" in rule]
WHO = re.compile(r"\$(external)?[lL]abels\.(instance|cluster|ceph_daemon|job|role)")
SPAN = re.compile(r"\b\d+(\.\d+)?(s|m|h|d)\b|canary_slow:info")
NO_SPAN = {"PlumblineWatchdog", "PlumblineCanaryReplicaSlow", "PlumblineLatencyExplained", "PlumblineLayerSettling",
           "PlumblineProbeTargetDown", "PlumblineMaintenance"}  # fmt: skip
"""They hold for as long as something else does, and wake nobody."""
TICKETS_THAT_SUSPECT = {"PlumblineOsdOutlier", "PlumblineOsdOperationsBlocked", "PlumblineCephMonitorDown"}
SUSPECTS = {
    "PlumblineCanaryBudgetBurn", "PlumblineCanaryLatencyExtreme", "PlumblineCephDataDamaged",
    "PlumblineCephFilesystemDown", "PlumblineCephPgUnavailable", "PlumblineFleetLatencyHigh", "PlumblineMountDead",
    "PlumblineProbeStuck",
}  # fmt: skip
"""Pages about what clients feel. What fires below a layer cannot be suspected of itself."""
PACKAGE = {"$PLUMBLINE_LOG": "journalctl -u plumbline", "$PLUMBLINE_STATUS": "systemctl status plumbline"}
"""What these are where Plumbline is a package."""
PARTS = re.compile(
    r"(?P<what>[^\n]+)(\nHosts that agree[^\n]+)?(\nThis has lasted for at least (?P<since>\w+)\.)?"
    r"(\nSuspected: (?P<suspected>[^\n]+))?\nFirst: (?P<first>[^\n]+[.?])"
)


def parts(rule: dict[str, Any]) -> re.Match[str]:
    found = PARTS.fullmatch(rule["annotations"]["description"])
    assert found, rule["annotations"]["description"]
    return found


@for_every("rule", RULES, ids=lambda rule: f"{rule['alert']} ({rule['labels']['severity']})")
def test_the_order(rule: dict[str, Any]) -> None:
    found = parts(rule)
    assert WHO.search(found["what"]) or rule["alert"] == "PlumblineTargetsAbsent"
    assert found["since"] == rule.get("for")
    assert found["since"] or SPAN.search(found["what"]) or rule["alert"] in NO_SPAN
    page = rule["labels"]["severity"] == "critical"
    assert (found["suspected"] is not None) == (
        (page and rule["alert"] in SUSPECTS) or rule["alert"] in TICKETS_THAT_SUSPECT
    )
    assert "Suspected" not in found["what"]


def test_every_alert_has_a_title_in_the_table() -> None:
    """Known at once; test_titles.py renders them in half a minute."""
    differing = {(rule["alert"], rule["labels"]["severity"]) for rule in RULES}
    differing ^= {(title.labels["alertname"], title.labels["severity"]) for title in written()}
    assert not differing, f"run make golden ARGS=tests/rules/test_titles.py, and read its change: {sorted(differing)}"


def test_there_is_a_first_step_for_each_alert_and_no_other() -> None:
    parts = " + ".join(f"(import {json.dumps(str(path))})" for path in sorted((ROOT / "alerts/alerts").iterdir()))
    steps = json.loads(rjsonnet.evaluate_snippet("steps", f"({parts})._firstSteps"))
    assert steps.keys() == {rule["alert"] for rule in RULES}


@for_every("name", sorted({rule["alert"] for rule in RULES}))
def test_the_first_command_exists_and_its_runbook_has_it(name: str) -> None:
    """The runbook may call it on the node, with flags: the program is the same, and a subcommand of ours or Ceph's."""
    first = parts(next(rule for rule in RULES if rule["alert"] == name))["first"]
    text = script_of("\n".join(code_blocks(whole(RUNBOOKS / f"{name}.md"))))
    for variable, meant in PACKAGE.items():
        text = text.replace(variable, meant)
    text = re.sub(r"\btimeout \d+ ", "", text)
    there = {tuple(words[:2]) for words in commands(text) if words} | {(words[0],) for words in commands(text) if words}
    for command in re.findall(r"`([^`]+)`", first):
        if command.startswith("plumbline:"):
            assert command in whole(RUNBOOKS / f"{name}.md")
            continue
        words = re.sub(r"\{\{.*?\}\}", "word", re.sub(r"^time(out \d+)? ", "", command)).split()
        ours = words[0] in ("plumbline", "ceph")
        assert tuple(words[: 2 if ours else 1]) in there, command
        if words[0] == "plumbline":
            cli._parser().parse_args(words[1:])
