"""The label sets that promtool has proven: what Alertmanager will really see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .inhibition import InhibitRule, Labels
from .rulefiles import load
from .rules import TEST_FILES

LAYERED = (
    "PlumblineCanaryLatencyExtreme", "PlumblineCanaryLatencyHigh", "PlumblineProbeLatencyHigh", "PlumblineProbeStuck",
)  # fmt: skip
"""Alerts of every layer that is probed: the layer is a label of their series."""
CLIENTS = ("rados", "rbd", "filesystem", "object", "client")
ABOVE_DISK = ("osd", *CLIENTS)


def unit_tests() -> list[dict[str, Any]]:
    """Every test of every promtool file."""
    return [test for file in TEST_FILES for test in load(file)["tests"]]


def proven(tests: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, str]]]:
    """Alert → its label sets."""
    found: dict[str, list[dict[str, str]]] = {}
    for test in tests:
        for case in test.get("alert_rule_test", []):
            for alert in case["exp_alerts"]:
                labels = {"alertname": case["alertname"], **alert["exp_labels"]}
                known = found.setdefault(case["alertname"], [])
                if labels not in known:
                    known.append(labels)
    return found


def everything(found: dict[str, list[dict[str, str]]]) -> list[dict[str, str]]:
    """All of them, the layered alerts in each layer above the disk, and what waits for a replica."""
    sets = [labels for each in found.values() for labels in each]
    for name in LAYERED:
        for severity in sorted({labels["severity"] for labels in found[name]}):
            one = next(labels for labels in found[name] if labels["severity"] == severity and "cluster" in labels)
            above: tuple[str, ...] = ABOVE_DISK
            if name in ("PlumblineCanaryLatencyExtreme", "PlumblineProbeStuck"):  # a page for what clients use alone
                above = CLIENTS if severity == "critical" else ("osd",)
            sets += [{**one, "layer": layer, "probe": layer, "instance": "stor01.example:10047"} for layer in above]
    # the ticket of a canary whose write waits for a replica
    ticket = next(labels for labels in found["PlumblineCanaryLatencyHigh"] if labels["severity"] == "warning")
    for waits in found["PlumblineCanaryReplicaSlow"]:
        there = {label: waits[label] for label in ("cluster", "instance", "probe") if label in waits}
        sets.append(ticket | there | {"layer": "rados", "operation": "write"})
    return sets


def distinct(sets: Iterable[Labels], rules: Sequence[InhibitRule]) -> list[Labels]:
    """One of each that the rules can tell apart."""
    asked = {matcher.label for rule in rules for matcher in (*rule.source, *rule.target)}
    asked |= {label for rule in rules for label in rule.equal}
    known = {tuple((label, labels.get(label)) for label in sorted(asked)): labels for labels in sets}
    return list(known.values())
