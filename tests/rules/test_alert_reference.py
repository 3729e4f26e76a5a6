"""docs/alerts.md says of inhibition what the evaluator says that the other tests use."""

from __future__ import annotations

from typing import Any

import yaml
from docs.render_alerts import UNKNOWN, alert_labels, alerts_reference, inhibitions

from support.inhibition import InhibitRule
from support.rules import ROOT


def test_who_may_hold_back_whom_is_what_the_evaluator_says(alerts: list[dict[str, Any]]) -> None:
    """For alerts whose layer stands in the rule, with the same values of all other labels on both sides."""
    text = (ROOT / "alerts/alertmanager/alertmanager.yaml").read_text("utf-8")
    rules = [InhibitRule.of(entry) for entry in yaml.safe_load(text)["inhibit_rules"]]
    known = [labels for rule in alerts if (labels := alert_labels(rule))["layer"] is not UNKNOWN]
    assert len(known) > 80
    said = inhibitions()
    assert len(said) == len(rules)
    pairs = 0
    for ours, theirs in zip(said, rules, strict=True):
        shared = {label: "same" for label in theirs.equal if label not in ("alertname", "layer")}
        firing = [shared | {key: str(value) for key, value in each.items() if value is not UNKNOWN} for each in known]
        sources = [index for index, labels in enumerate(firing) if theirs.is_source(labels)]
        targets = [index for index, labels in enumerate(firing) if theirs.is_target(labels)]
        assert [index for index, labels in enumerate(known) if ours.speaks(labels)] == sources
        assert [index for index, labels in enumerate(known) if ours.silences(labels)] == targets
        for source in sources:
            for target in targets:
                if source != target and not {source, target} <= set(sources) & set(targets):
                    expected = theirs.mutes(firing[target], [firing[source]])
                    assert ours.joins(known[source], known[target]) is expected, (ours.number, source, target)
                    pairs += expected
    assert pairs > 200


def test_a_row_names_severity_runbook_and_both_directions() -> None:
    _, row = (line for line in alerts_reference().splitlines() if line.startswith("| [PlumblineNicRingDrops]"))
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert cells[1] == "warning"
    assert "../alerts/runbooks/PlumblineNicRingDrops.md" in cells[0]
    small = next(each.number for each in inhibitions() if ("alertname", "=", "PlumblineNicRingSmall") in each.source)
    assert str(small) in cells[-2].split(", ")


def test_the_page_begins_with_what_each_alert_means_and_what_to_do_first(alerts: list[dict[str, Any]]) -> None:
    below = alerts_reference().partition("## What it means")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in below.splitlines() if "](../" in line]
    assert sorted(row[0].partition("]")[0].strip("[") for row in rows) == sorted({rule["alert"] for rule in alerts})
    pages = below.partition("### Pages")[2].partition("###")[0]
    woken = {rule["alert"] for rule in alerts if rule["labels"]["severity"] == "critical"}
    assert {line.partition("]")[0].strip("| [") for line in pages.splitlines() if "](../" in line} == woken
    assert all(len(row) == 3 and row[1].endswith(".") and "{" not in row[2] for row in rows)
    drops = next(row for row in rows if "NicRingDrops" in row[0])
    assert drops[1:] == [
        "A network interface drops packets for lack of receive descriptors.",
        "`plumbline nic DEVICE` on INSTANCE: ring, interrupts, pause frames.",
    ]
