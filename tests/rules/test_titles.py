"""The title of a notification names whom it is about and where: it is all that a pager shows first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.golden import check_golden
from support.offenders import for_every
from support.rules import ALERTS, rules_of
from support.titles import TABLE, Title, rendered, table, written

RULES = [rule for rule in rules_of(ALERTS) if "alert" in rule]
NOBODY = {"PlumblineWatchdog": "always fires, and is about Prometheus itself"}
NAMING = (
    "ceph_daemon", "check", "collector", "device", "device_class", "gateway", "instance", "integration", "job",
    "limit", "mountpoint", "name", "pci_address", "pool", "probe", "role", "slave", "target", "thread",
)  # fmt: skip
"""Labels that name a thing."""
SMALLER = {
    "device": ("target",), "device_class": ("probe", "instance", "layer"), "job": ("instance",), "probe": ("target",),
}  # fmt: skip
"""Labels that are not named beside one of these."""
TITLE = re.compile(r"(?P<what>[A-Z][^:]+?)(: (?P<who>.+?))?(; suspected: (?P<suspect>.+))?\.")


@for_every("rule", RULES, ids=lambda rule: f"{rule['alert']} ({rule['labels']['severity']})")
def test_a_title_has_a_value(rule: dict[str, dict[str, str]]) -> None:
    assert ("{{" in rule["annotations"]["summary"]) == (rule["alert"] not in NOBODY)


@for_every("title", written(), ids=lambda title: f"{title.labels['alertname']} ({title.labels['severity']})")
def test_it_names_whom_and_where(title: Title) -> None:
    parts = TITLE.fullmatch(title.text)
    assert parts
    assert ". " not in parts["what"]
    assert (parts["who"] is None) == (title.labels["alertname"] in NOBODY)
    for label in NAMING:
        value = title.labels.get(label, "")
        if not any(smaller in title.labels for smaller in SMALLER.get(label, ())):
            assert re.sub(r":10047$", "", value) in title.text, label
    assert "<no value>" not in title.text
    assert "  " not in title.text


def test_it_fits_a_pager() -> None:
    """Opsgenie cuts at 130; "rados in cluster north: " comes before it."""
    assert [title.text for title in written() if len(title.text) > 130] == []


def test_a_host_that_is_gone_is_called_gone() -> None:
    texts = {title.text for title in written() if title.labels["alertname"] == "PlumblineDown"}
    assert any(text.startswith("A host is gone with ") for text in texts)


def test_titles_rank_what_is_lost_before_what_is_slow() -> None:
    ranks = {(rule["alert"], rule["labels"]["severity"]): rule["annotations"]["rank"] for rule in RULES}
    order = [
        ("PlumblineCephFull", "critical"), ("PlumblineCephDataDamaged", "critical"),
        ("PlumblineFleetLatencyHigh", "critical"), ("PlumblineCanaryLatencyExtreme", "critical"),
        ("PlumblineCephDataDamaged", "warning"), ("PlumblineCanaryLatencyHigh", "warning"),
    ]  # fmt: skip
    assert [ranks[each] for each in order] == sorted({ranks[each] for each in order})


@pytest.mark.timeout(1800)
def test_prometheus_renders_these_titles(tmp_path: Path) -> None:
    check_golden(TABLE, table(rendered(tmp_path)).encode())
