"""Names that somebody else chose, in what people get: nothing that a service would take for markup.

Each name stands in labels and in texts, goes through a real Alertmanager with the shipped receivers, and is then read
as the service reads it:

- Slack: https://docs.slack.dev/messaging/formatting-message-text/ (``<…>`` and ``&``; formatting only in ``mrkdwn_in``)
- Jira: https://jira.atlassian.com/secure/WikiRendererHelpAction.jspa?section=all
- PagerDuty, Opsgenie: text, in which web pages make links and some HTML
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from support.daemon import eventually
from support.notifications import SERVICES, Inbox, notified

pytestmark = [pytest.mark.integration]
NAMES = (
    "<!channel>", "<!here>", "<!everyone>", "<@U012AB3CD>", "<#C123ABC456>", "<!subteam^S1>",
    "<!date^1^x^http://a|b>", "<http://evil.example|here>", "<https://evil.example>", "http://evil.example/",
    "https://evil.example/?a=b&c=d", "HTTPS://EVIL.EXAMPLE", "ftp://evil.example", "slack://channel?team=T1",
    "<mailto:a@b.example|mail>", "&lt;!channel&gt;", "&amp;lt;", "&", "<", ">", "a|b", "*bold*", "_italic_",
    "~struck~", "`code`", "```code```", "> quote", "&gt; quote", "[text](http://evil.example)",
    "[text](javascript:alert(1))", "[text][1]", "![x](http://evil.example/x.png)", "**bold**",
    "[here|http://evil.example]", "[~admin]", "[^file.exe]", "!http://evil.example/x.png!", "{color:red}x{color}",
    "{code}", "{noformat}", "{html}<b>x</b>{html}", "{{mono}}", "||head||", "|cell|", "----", "h1.", "bq.", "* item",
    "# item", "-deleted-", "+inserted+", "^up^", "??cite??", "(!)", ":)", "\\\\", "\\{code}", "<b>bold</b>",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<a href='http://evil.example'>x</a>",
    "\"><svg onload=alert(1)>", "'", "\"", "carriage\rreturn", "tab\tbed", "\x1b[2J\x1b]0;title\x07", "\u202egnp.exe",
    "\u2066isolated", "zero\u200bwidth", "line\u2028separator", "{{ .Labels }}",
    "{{ template \"slack.default.text\" . }}", "${jndi:ldap://evil.example/a}", "=cmd|' /C calc'!A0", "@here",
    "@channel", "%0aSubject: x", "key: value", "- item", "? key", "--- x", "...", "&a *a", "!!binary x", "{a: b}",
    "a, b", "eth0", "nvme0n1", "dm_crypt_1",
)  # fmt: skip
NODE = "http://stor01.example:10047"
RUNBOOK = f"{NODE}/runbooks/PlumblineNicErrors?device=x&instance=y"
DASHBOARD = "https://grafana.example.org/d/plumbline-nic?from=1&to=now"
UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200c-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inbox]:
    with notified(tmp_path_factory.mktemp("hostile"), everybody=True) as (manager, inbox):
        for name in NAMES:
            labels = {
                "alertname": "PlumblineNicErrors", "severity": "critical", "signal": "error",
                **dict.fromkeys(("cluster", "layer", "instance", "device"), name),
            }  # fmt: skip
            description = f"{name} of host {name} has errors.\nSuspected: {name}.\nFirst: `ip -s link show dev {name}`"
            texts = {"summary": f"{name} has errors.", "description": description}
            manager.post([labels], annotations=texts | {"runbook_url": RUNBOOK, "dashboard_url": DASHBOARD})
        eventually(lambda: all(len(inbox.received[name]) >= len(NAMES) for name in SERVICES), within_s=240)
        yield inbox


def readable(text: str) -> str:
    """Without what is only there to keep a service from interpreting it."""
    return text.replace("\u200b", "")


def test_there_are_enough_names() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 64


def test_slack(inbox: Inbox) -> None:
    own = {f"<{html.escape(RUNBOOK, quote=False)}|Runbook>", f"<{html.escape(DASHBOARD, quote=False)}|Dashboard>"}
    for message in inbox.received["slack"]:
        assert not message.get("text")
        (attachment,) = message["attachments"]
        assert attachment["mrkdwn_in"] == ["pretext"]
        assert not attachment.get("pretext")
        for field in ("title", "fallback", "text"):
            text = attachment[field]
            tokens = re.findall(r"<[^>]*>", text)
            assert set(tokens) == (own if field == "text" else set()), text
            rest = re.sub(r"<[^>]*>", "", text)
            assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)|://", rest), text
            assert not UNSEEN.search(rest), text
            assert field == "text" or "\n" not in text


def of_plain(service: str, message: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The lines of its text, and its short fields."""
    if service == "pagerduty":
        payload = message["payload"]
        details = payload["custom_details"]
        assert set(details) == {"alerts", "firing", "resolved", "num_firing", "num_resolved"}
        assert {each["href"] for each in message["links"]} == {RUNBOOK, DASHBOARD}
        assert {each["text"] for each in message["links"]} == {"Runbook", "Dashboard"}
        return details["alerts"].split("\n"), [payload["summary"], payload["component"], payload["group"]]
    assert len(message["tags"]) == 3
    assert (message["details"]["runbook"], message["details"]["dashboard"]) == (RUNBOOK, DASHBOARD)
    return message["description"].split("\n"), [message["message"], message["entity"], *message["tags"]]


@pytest.mark.parametrize("service", ["pagerduty", "opsgenie"])
def test_plain_text(inbox: Inbox, service: str) -> None:
    for message in inbox.received[service]:
        lines, fields = of_plain(service, message)
        for line in (*lines, *fields):
            text = line.replace(f"Runbook: {RUNBOOK}", "").replace(f" Dashboard: {DASHBOARD}", "")
            assert not re.search(r"[<>]|\]\(|\]\[|://|\n", text), line
            assert not UNSEEN.search(text), line


def test_jira(inbox: Inbox) -> None:
    for message in inbox.received["jira"]:
        summary, description = message["fields"]["summary"], message["fields"]["description"]
        assert not re.search(r"[<>]|\]\(|://|\n", summary), summary
        text = description.replace(f"[Runbook|{RUNBOOK}]", "").replace(f"[Dashboard|{DASHBOARD}]", "")
        first, *lines = text.split("\n")
        assert re.fullmatch(r"\*.*\* \(firing\)", first), first
        for line in (first[1 : -len("* (firing)")], *lines):
            text = re.sub(r"(?<=\d)-(?=\d)", "", line) if line.startswith("Since ") else line
            assert not re.search(r"(?<!\\)[!#*+\-?@\[\]^_{|}~()]|://|\\\\", text), line
            assert not re.match(r"(h[1-6]|bq)\.", line), line
            assert not UNSEEN.search(line), line


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str | None] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value for name, value in attrs if name == "href"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_email(inbox: Inbox) -> None:
    for message in inbox.received["email"]:
        page = Tags(message["html"])
        assert page.tags == {"body", "p", "a"}  # each is about one alert: its summary is the subject alone
        assert page.attributes == {"style", "href"}
        assert page.links == {RUNBOOK, DASHBOARD}
        assert "://" not in page.text
        assert not UNSEEN.search(page.text.replace("\r\n", "\n")), page.text
        assert not re.search(r"://|[\r\n]", message["subject"]), message["subject"]


def test_the_names_are_still_there(inbox: Inbox) -> None:
    """Escaped, not removed: whoever reads it sees which device it is."""
    texts = {service: readable("\n".join(inbox.text(service))) for service in SERVICES}
    for name in ("eth0", "nvme0n1", "dm_crypt_1", "*bold*", "http://evil.example/", "[~admin]"):
        for service, text in texts.items():
            shown = re.sub(r"\\(.)", r"\1", text) if service == "jira" else html.unescape(text)
            assert name in shown, (service, name)


def test_every_value_goes_through_the_escape_of_its_service() -> None:
    """Read from the files: an action that prints anything else fails."""
    allowed = re.compile(
        r'template "(title|text|link)" .+|\.StartsAt\.Format "[^"]+"|\.Alerts\.(Firing|Resolved) \| len|\. \| len'
        r"|\.Status|\$\.ExternalURL|\.Name|\$\w+ :?= .+|(if|with|range|else|else if|define|end)\b.*"
    )
    escape = re.compile(r'\{\{ define "(title|text|link)" \}\}(\{\{ \. \| reReplaceAll .+? \}\})\{\{ end -?\}\}')
    files = sorted((Path(__file__).parents[2] / "alerts" / "alertmanager").glob("*.yaml"))
    checked = 0
    for file in files:
        defined: dict[str, set[str]] = {}
        text = file.read_text("utf-8")
        for name, body in escape.findall(text):
            defined.setdefault(name, set()).add(body.replace('reReplaceAll `,` " " | ', ""))
        assert all(len(bodies) == 1 for bodies in defined.values()), (file, defined)
        for action in re.findall(r"\{\{-? ?(.*?) ?-?\}\}", escape.sub("", text)):
            assert allowed.fullmatch(action), f"{file.name}: {{{{ {action} }}}}"
            checked += 1
    assert checked > 60
