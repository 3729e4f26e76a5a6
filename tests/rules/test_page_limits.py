"""The status page calls a loss out of line from where its alert fires on: the same figures, the same causes."""

from __future__ import annotations

import re

import pytest

from plumbline.status.limits import BACKLOG_DROPS, LOSSES, PEERS, Limit, Peers
from support.rules import ALERTS, RULES, rules_of

EXPRESSIONS = {rule["alert"]: rule["expr"] for rule in rules_of(ALERTS) if "alert" in rule}


def limit_of(name: str) -> tuple[int, float, frozenset[str]]:
    """Minimum, share and causes in the rendered expression of an alert."""
    expression = EXPRESSIONS[name]
    minimum, share = re.search(r">= (\d+)", expression), re.search(r"> ([\d.e-]+)$", expression, re.MULTILINE)
    assert minimum
    assert share
    return int(minimum[1]), float(share[1]), frozenset(re.findall(r'cause="(\w+)"', expression))


@pytest.mark.parametrize(
    ("what", "names"),
    [("drops", ["PlumblineNicRingDrops", "PlumblineNicFifoDrops"]), ("errors", ["PlumblineNicErrors"])],
)
def test_a_loss_is_out_of_line_where_its_alert_fires(what: str, names: list[str]) -> None:
    limits = [limit_of(name) for name in names]
    causes = frozenset().union(*(limit[2] for limit in limits))
    (figures,) = {limit[:2] for limit in limits}
    assert LOSSES[what] == Limit(*figures, causes or None)


def test_no_other_alert_looks_at_a_cause_of_drops() -> None:
    looked_at = {
        cause for each in EXPRESSIONS.values() for cause in re.findall(r'nic_drops_total\{cause="(\w+)"', each)
    }
    assert looked_at == LOSSES["drops"].causes


def test_the_backlog_too() -> None:
    found = re.search(r">= (\d+)", EXPRESSIONS["PlumblineSoftnetBacklogOverflow"])
    assert found
    assert int(found[1]) == BACKLOG_DROPS


def test_a_disk_is_beside_its_peers_as_its_alert_has_it() -> None:
    recorded = {rule["record"]: rule["expr"] for rule in rules_of(RULES)}
    alert = EXPRESSIONS["PlumblineDiskLatencyOutlier"]

    def figure(expression: str, pattern: str) -> float:
        found = re.search(pattern, expression)
        assert found, (pattern, expression)
        return float(found[1])

    compared = recorded["plumbline:disk_compared:figure"]
    operations = re.search(r'p99_seconds\{operation=~"([^"]+)"', compared)
    assert operations
    assert (
        Peers(
            frozenset(operations[1].split("|")),
            int(figure(recorded["plumbline:disk_peers:figure"], r">= (\d+)")),
            figure(recorded["plumbline:disk_latency:p99_seconds"], r">= ([\d.]+)"),
            figure(recorded["plumbline:disk_latency_peers:ratio"], r"([\d.]+) \* plumbline:disk_peers:figure"),
            figure(alert, r"disk_latency_peers:ratio >= ([\d.]+)"),
            figure(alert, r"p99_seconds >= ([\d.e-]+)"),
        )
        == PEERS
    )
