"""``plumbline why``: what the running daemon says is out of line, and which alerts Prometheus has about it.

Exit codes: 0 nothing is out of line, 1 something is, 2 nobody could tell.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from plumbline.commands import shared
from plumbline.commands.doctor_daemon import RELOADED_AT, address_of, samples_of
from plumbline.commands.doctor_prometheus import Server
from plumbline.commands.node import this_node
from plumbline.commands.shared import complain, positive_duration, show
from plumbline.core.console import line, table
from plumbline.core.foreign import decode_json
from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.http import Page, read_page
from plumbline.sources.prometheus.access import OPEN, Access, load_access
from plumbline.sources.prometheus.api import ActiveAlert, read_rules
from plumbline.status.model import Level
from plumbline.status.why import Explanation, Fact

_STYLE = {Level.BAD: "bold red", Level.NOTE: "yellow", Level.GOOD: "green", Level.NEUTRAL: "dim"}
_SEVERITIES = ("critical", "warning")
_CANNOT_TELL = 2


class Alert(Struct, frozen=True):
    """One that fires about this node or its cluster, as a person is told of it."""

    severity: str
    title: str
    runbook: str


class Answer(Struct, frozen=True):
    """``alerts``: ``None`` if no Prometheus was asked."""

    explanation: Explanation
    alerts: tuple[Alert, ...] | None = None


def run(options: argparse.Namespace) -> int:
    try:
        timeout_s = positive_duration(options.timeout, "--timeout")
        access = shared.access(options)
        own = options.daemon_http_config_file
        url = (options.daemon or address_of(this_node(options).config)).rstrip("/")
        daemon = _Daemon(url, timeout_s, OPEN if own is None else load_access(own))
        explanation = daemon.explanation(options.what)
        alerts = None
        if options.prometheus is not None:
            server = Server(options.prometheus, timeout_s, access, url)
            alerts = tuple(_alerts(server, daemon.reloaded_at(), options.what))
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return _CANNOT_TELL
    show(options, Answer(explanation, alerts), lambda console: _print(console, url, explanation, alerts))
    return 1 if explanation.level is Level.BAD or alerts else 0


class _Daemon(Struct, frozen=True):
    url: str
    timeout_s: float
    access: Access

    def explanation(self, what: str) -> Explanation:
        page = self._page(f"/why?of={quote(what)}" if what else "/why")
        if page.status == 404 and what:
            raise Unavailable(f"{self.url} knows no layer, probe, OSD, disk or port {what!r}; plumbline why shows all")
        if page.status != 200:
            raise Unavailable(f"{self.url}/why: {page.status} {page.text.strip()[:160]}")
        return decode_json(page.text, Explanation, source=f"{self.url}/why")

    def reloaded_at(self) -> float | None:
        """What tells this daemon's series from others in Prometheus."""
        samples = samples_of(self._page(f"/metrics?name[]={RELOADED_AT}").text).get(RELOADED_AT)
        return samples[0].value if samples else None

    def _page(self, path: str) -> Page:
        try:
            return read_page(f"{self.url}{path}", timeout_s=self.timeout_s, access=self.access, proxies=False)
        except Unavailable as error:
            raise Unavailable(f"{error}; is the daemon up? systemctl status plumbline; or --daemon URL") from error


def _alerts(server: Server, reloaded_at: float | None, what: str) -> Iterator[Alert]:
    """The pages, then the tickets that fire about this node, its cluster, or what is asked about."""
    series = server.query(f"{RELOADED_AT} == {reloaded_at!r}") if reloaded_at is not None else ()
    own = series[0].labels if series else {}
    rules = read_rules(server.url, timeout_s=server.timeout_s, access=server.access)
    firing = [alert for rule in rules for alert in rule.alerts if alert.state == "firing"]
    for severity in _SEVERITIES:
        for alert in firing:
            if alert.labels.get("severity") == severity and _concerns(alert, own, what):
                annotations = alert.annotations
                title = annotations.get("summary", alert.labels.get("alertname", ""))
                yield Alert(severity, title, annotations.get("runbook_url", ""))


def _concerns(alert: ActiveAlert, own: Mapping[str, str], what: str) -> bool:
    labels = alert.labels
    if labels.get("cluster", "") != own.get("cluster", ""):
        return False
    if what:
        return what in labels.values() or f"osd.{what}" in labels.values() or what in labels.get("probe", "").split("/")
    return labels.get("instance") in (None, own.get("instance"))


def _print(console: Console, url: str, explanation: Explanation, alerts: tuple[Alert, ...] | None) -> None:
    line(console, f"{explanation.host}: {explanation.headline}", _STYLE[explanation.level])
    for title, facts in (
        ("For it", explanation.facts_for),
        ("Against it", explanation.against),
        ("Not judged", explanation.unknown),
    ):
        _print_facts(console, title, facts, url)
    for note in explanation.notes:
        line(console, f"● {note}")
    if alerts is None:
        line(console, "What Prometheus knows beyond this node: --prometheus http://HOST:9090", "dim")
    elif not alerts:
        line(console, "Prometheus has no page and no ticket about it.")
    else:
        table(
            console,
            ("Alert", "Title", "Runbook"),
            [(Text(alert.severity, _STYLE[Level.BAD]), alert.title, alert.runbook) for alert in alerts],
        )


def _print_facts(console: Console, title: str, facts: Sequence[Fact], url: str) -> None:
    if not facts:
        return
    line(console, "")
    known = [(Text(fact.about, _STYLE[fact.level]), fact.text) for fact in facts]
    if any(fact.command for fact in facts):
        rows = [(*cells, fact.command) for cells, fact in zip(known, facts, strict=True)]
        table(console, (title, "", "First"), rows, wraps={"": 0, "First": 0})
    else:
        table(console, (title, ""), known, wraps={"": 0})
    for runbook in dict.fromkeys(fact.runbook for fact in facts if fact.runbook):
        line(console, f"runbook: {url}{runbook}", "dim")
