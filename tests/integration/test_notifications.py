"""An alert as people get it: through a real Alertmanager by each shipped example of receivers."""

from __future__ import annotations

import html
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.alertmanager import speaks_jira
from support.daemon import eventually
from support.notifications import SERVICES, Inbox, notified
from support.titles import Title, written

pytestmark = [pytest.mark.integration]
LABELS = {
    "alertname": "PlumblineCephPgUnavailable", "cluster": "north", "layer": "rados", "pool_id": "2",
    "severity": "critical", "signal": "error",
}  # fmt: skip
TEXT = (
    "Pool vms of cluster north: 1 placement group not active, or not reported by any OSD. Clients that need data there"
    " hang.",
    "This has lasted for at least 2m.",
    "Suspected: osd.7 on stor03.example:10047 (disk sdc; PlumblineOsdSlowDisk).",
    "First: `ceph health detail`, then `ceph pg PG query`: which OSDs do they wait for?",
)
TEXTS = {"summary": "Placement groups are unavailable.", "description": "\n".join(TEXT)}
RUNBOOK = "http://stor01.example:10047/runbooks/PlumblineCephPgUnavailable?cluster=north&pool_id=2"
DASHBOARD = "https://grafana.example.org/d/plumbline-pools?from=1&to=now&var-cluster=north"
LINKED = TEXTS | {"runbook_url": RUNBOOK, "dashboard_url": DASHBOARD}
UNLINKED = TEXTS | {"runbook_url": "alerts/runbooks/PlumblineCephPgUnavailable.md"}
"""Of a Prometheus that scrapes no daemon and a site without Grafana."""
TITLE: dict[str, Callable[[dict[str, Any]], str]] = {
    "email": lambda mail: str(mail["subject"]),
    "slack": lambda sent: str(sent["attachments"][0]["title"]),
    "pagerduty": lambda sent: str(sent["payload"]["summary"]),
    "opsgenie": lambda sent: str(sent["message"]),
    "jira": lambda sent: str(sent["fields"]["summary"]),
}


@dataclass(frozen=True)
class Sent:
    """What the services were sent of an alert whose links resolve, and of one of another cluster whose links do not."""

    linked: Inbox
    unlinked: Inbox


def _delivered(folder: Path, annotations: dict[str, str]) -> Iterator[Inbox]:
    with notified(folder, everybody=True) as (manager, inbox):
        manager.post([LABELS], annotations=annotations)
        expected = [name for name in SERVICES if name != "jira" or speaks_jira()]
        eventually(lambda: all(inbox.received[name] for name in expected), within_s=120)
        yield inbox


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    (linked,) = _delivered(tmp_path_factory.mktemp("linked"), LINKED)
    (unlinked,) = _delivered(tmp_path_factory.mktemp("unlinked"), UNLINKED)
    return Sent(linked, unlinked)


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    if request.param == "jira" and not speaks_jira():
        pytest.skip("this Alertmanager is built without Jira (make test-prometheus3 has one that is not)")
    return str(request.param)


def test_the_text_arrives_whole_and_in_its_order(sent: Sent, service: str) -> None:
    for inbox in (sent.linked, sent.unlinked):
        (text,) = inbox.text(service)
        if service == "jira":  # whose markup is taken from what others wrote
            text = re.sub(r"\\([^\w\s])", r"\1", text)
        assert "\n".join(TEXT) in html.unescape(text).replace("\r\n", "\n")
        # the title has it: a mail's is its subject, a ticket in Jira repeats it with its state
        assert text.count(TEXTS["summary"]) == {"email": 0, "jira": 2}.get(service, 1)
        assert service == "servicenow" or re.search(r"Since \d{4}-\d\d-\d\d \d\d:\d\d", text)
        assert not re.search(r"<no value>|\{\{|\}\}|%!", text)


def test_the_title_says_of_which_layer_and_cluster(sent: Sent, service: str) -> None:
    if service == "servicenow":
        (message,) = sent.linked.received[service]
        assert message["commonLabels"] == LABELS
        assert message["alerts"][0]["annotations"] == LINKED
        return
    title = TITLE[service](sent.linked.received[service][0])
    assert "rados in cluster north: " in title
    assert len(title) < 130  # Opsgenie cuts there, a phone before


# --- the title alone --------------------------------------------------------------------------------------------------

WHERE = re.compile(r"(?P<layer>\w+)( in cluster (?P<cluster>\w+))?: (?P<what>[A-Z][^:]+): .+")
GROUP = {"cluster": "east", "layer": "rados", "severity": "critical"}
ONE_PAGE = [
    ("PlumblineCanaryLatencyExtreme", "022", "A canary is slow: write of a.", {"probe": "a", "signal": "latency"}),
    ("PlumblineCanaryLatencyExtreme", "022", "A canary is slow: read of a.", {"probe": "a", "signal": "latency"}),
    ("PlumblineCephFull", "000", "Ceph is full and refuses writes: POOL_FULL.", {"signal": "error"}),
    ("PlumblineFleetLatencyHigh", "020", "Most hosts see slow storage: write in layer rados.", {"signal": "latency"}),
]  # fmt: skip


def _of_all_layers(count: int) -> list[Title]:
    """Rendered titles that name somebody, of each layer in turn; no two of one group."""
    rest = [title for title in written() if ": " in title.text]
    chosen: list[Title] = []
    while len(chosen) < count:
        for layer in dict.fromkeys(title.labels["layer"] for title in rest):
            chosen.append(next(title for title in rest if title.labels["layer"] == layer))
            known = {(title.labels["alertname"], title.labels["severity"]) for title in chosen}
            texts = {title.text for title in chosen}  # a page and a ticket may say the same
            rest = [
                title
                for title in rest
                if (title.labels["alertname"], title.labels["severity"]) not in known and title.text not in texts
            ]
    return chosen[:count]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Title], Inbox]:
    titles = _of_all_layers(22)
    with notified(tmp_path_factory.mktemp("many"), everybody=True) as (manager, inbox):
        for text, labels in titles:
            manager.post([labels], annotations={**LINKED, "summary": text})
        expected = [name for name in TITLE if name != "jira" or speaks_jira()]
        eventually(lambda: all(len(inbox.received[name]) >= len(titles) for name in expected), within_s=240)
        return titles, inbox


def test_who_what_and_where_are_in_the_title(many: tuple[list[Title], Inbox], service: str) -> None:
    titles, inbox = many
    if service == "servicenow":  # gets no title
        return
    shown = {TITLE[service](message).removeprefix("[plumbline] ") for message in inbox.received[service]}
    assert len(shown) == len(titles)
    for text, labels in titles:
        seen = text[:100] if service == "opsgenie" else text  # which cuts at 130
        (parts,) = (parts for title in shown if (parts := WHERE.match(title)) and seen in html.unescape(title))
        assert parts["layer"] == labels["layer"]
        assert (parts["cluster"] or "") == labels.get("cluster", "")
        assert text.startswith(f"{parts['what']}: ")


def test_a_page_is_titled_by_its_worst_alert_and_says_each_text_once(tmp_path: Path) -> None:
    with notified(tmp_path) as (manager, inbox):
        for number, (name, rank, summary, labels) in enumerate(ONE_PAGE):
            texts = {**LINKED, "summary": summary, "rank": rank, "description": f"The text of {name}."}
            manager.post([{**GROUP, **labels, "alertname": name, "operation": str(number)}], annotations=texts)
        pages = inbox.received["pagerduty"]
        eventually(lambda: any(str(page["payload"]["custom_details"]["firing"]) == "4" for page in pages), within_s=120)
        message = pages[-1]
    title = message["payload"]["summary"]
    assert title == "rados in cluster east: Ceph is full and refuses writes: POOL_FULL. (4 alerts)"
    text = message["payload"]["custom_details"]["alerts"]
    assert [text.count(f"The text of {name}.") for name, *_ in ONE_PAGE] == [1, 1, 1, 1]
    assert all(summary in text for _, _, summary, _ in ONE_PAGE)


def test_links_are_links(sent: Sent, service: str) -> None:
    (text,) = sent.linked.text(service)
    expected = {
        "email": [f'<a href="{RUNBOOK}">Runbook</a>', f'<a href="{DASHBOARD}">Dashboard</a>'],
        "slack": [f"<{RUNBOOK}|Runbook>", f"<{DASHBOARD}|Dashboard>"],
        "pagerduty": [f"Runbook: {RUNBOOK}"],
        "opsgenie": [f"Runbook: {RUNBOOK}", f"Dashboard: {DASHBOARD}"],
        "servicenow": [RUNBOOK, DASHBOARD],
        "jira": [f"[Runbook|{RUNBOOK}]", f"[Dashboard|{DASHBOARD}]"],
    }
    assert all(each in html.unescape(text) for each in expected[service]), text


def test_without_a_daemon_that_answers_words_say_where_the_runbook_is(sent: Sent, service: str) -> None:
    (text,) = sent.unlinked.text(service)
    if service != "servicenow":  # which gets the annotations as they are
        assert "No daemon answers that could show the runbook" in text
        assert "Dashboard" not in text
    assert UNLINKED["runbook_url"] in text
    assert not re.search(r'href="alerts|<alerts/|\|alerts/', text)


def test_pagerduty_gets_addresses_as_links(sent: Sent) -> None:
    (message,) = sent.linked.received["pagerduty"]
    assert message["links"] == [{"href": RUNBOOK, "text": "Runbook"}, {"href": DASHBOARD, "text": "Dashboard"}]
    (message,) = sent.unlinked.received["pagerduty"]
    assert {each["text"] for each in message["links"]} == {"Alertmanager"}
    assert all(each["href"].startswith("http://") for each in message["links"])


def test_who_asks_for_a_password_is_shown_the_one_of_the_file(sent: Sent, service: str) -> None:
    shown = sent.linked.authorized.get(service, "")
    if service in ("servicenow", "jira"):
        user, _, password = b64decode(shown.removeprefix("Basic ")).decode().partition(":")
        assert user.startswith("alertmanager")
        assert password == "0" * 32
    else:
        assert not shown.startswith("Basic")
