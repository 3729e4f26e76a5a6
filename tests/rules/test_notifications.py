"""Every alert as people get it: rendered by a real Prometheus, sent by a real Alertmanager by the shipped receivers."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from support.daemon import eventually
from support.notifications import SERVICES, Inbox, notified
from support.programs import need
from support.prometheus import CLUSTER, prometheus
from support.rulefiles import always_firing
from support.rules import ALERTS, rules_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
WITHIN_S = 300.0


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory, firing: dict[str, list[dict[str, str]]]) -> Iterator[Inbox]:
    """What each service was sent of one alert of each name, at its worst severity."""
    need("prometheus")
    folder = tmp_path_factory.mktemp("notifications")
    worst_last = sorted(RULES, key=lambda rule: ("info", "warning", "critical").index(rule["labels"]["severity"]))
    shipped = {rule["alert"]: rule for rule in worst_last}
    with notified(folder, everybody=True) as (manager, received):
        node = {"instance": "stor01.example:10047", "cluster": CLUSTER}
        rules: list[dict[str, Any]] = [{"record": "plumbline_build_info", "expr": "vector(1)", "labels": node}]
        for name, sets in firing.items():
            labels = {key: value for key, value in sets[0].items() if key not in ("alertname", "severity")}
            labels |= {"cluster": CLUSTER} if "cluster" in labels else {}
            rule = always_firing(name, labels, shipped[name]["annotations"])
            rules.append(rule | {"labels": {"severity": shipped[name]["labels"]["severity"]}})
        (folder / "rules").mkdir()
        (folder / "rules" / "all.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
        with prometheus(folder, alertmanager=urlsplit(manager.url).netloc, rules=folder / "rules"):
            eventually(lambda: all(named(received, service) == NAMES for service in SERVICES), within_s=WITHIN_S)
        yield received


RULES: list[dict[str, Any]] = [rule for rule in rules_of(ALERTS) if "alert" in rule]
NAMES = {rule["alert"] for rule in RULES}
SUMMARIES = {rule["annotations"]["summary"] for rule in RULES}


def named(inbox: Inbox, service: str) -> set[str]:
    """The alerts whose runbook is linked."""
    return {name for text in inbox.text(service) for name in re.findall(r"/runbooks/(Plumbline\w+)", text)}


@pytest.mark.parametrize("service", SERVICES)
def test_every_alert_can_be_acted_on_from_its_notification_alone(inbox: Inbox, service: str) -> None:
    for sent in inbox.text(service):
        text = html.unescape(sent)
        assert any(summary in text for summary in SUMMARIES), text
        assert re.search(r"^First: \S.*[.?]", text, re.MULTILINE), text
        assert re.search(r"Since \d{4}-\d\d-\d\d \d\d:\d\d", text), text
        assert not re.search(r"<no value>|\{\{|\}\}|%!|\[BAD|alerts/runbooks/", text), text


TITLE: dict[str, Callable[[Any], str]] = {
    "email": lambda mail: mail["subject"],
    "slack": lambda sent: sent["attachments"][0]["title"],
    "pagerduty": lambda sent: sent["payload"]["summary"],
    "opsgenie": lambda sent: sent["message"],
}


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_read_first_says_what_is_wrong_and_of_which_cluster(inbox: Inbox, service: str) -> None:
    for sent in inbox.received[service]:
        title = TITLE[service](sent)
        # a phone shows about this much; Opsgenie cuts at 130
        assert len(title) < 130, title
        assert title[0] != ":", title
        assert "  " not in title, title


def test_links_are_links_where_a_service_has_them(inbox: Inbox) -> None:
    assert all(re.search(r'<a href="http://[^"]+">Runbook</a>', mail) for mail in inbox.text("email"))
    assert all(re.search(r"<http://[^|>]+\|Runbook>", text) for text in inbox.text("slack"))
    for sent in inbox.received["pagerduty"]:
        assert all(re.match(r"http://\S+$", link["href"]) for link in sent["links"])
    assert all(re.match(r"http://\S+$", sent["details"]["runbook"]) for sent in inbox.received["opsgenie"])
