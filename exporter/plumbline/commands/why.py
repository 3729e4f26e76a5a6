"""``plumbline why``: what the running daemon says is out of line, and which alerts Prometheus has about it.

Exit codes: 0 nothing is out of line, 1 something is, 2 nobody could tell.
"""

import argparse
import os
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
from plumbline.errors import PlumblineError, Unavailable, UnknownName
from plumbline.sources.http import Page, read_page
from plumbline.sources.kernel.installation import Need, read_installation
from plumbline.sources.prometheus.access import Access
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


def run(options: argparse.Namespace) -> int:
    try:
        timeout_s = positive_duration(options.timeout, "--timeout")
        access = shared.access(options)
        node = this_node(options)
        url = (options.daemon or address_of(node.config)).rstrip("/")
        log = read_installation(node.roots, environment=os.environ).step(Need.LOG)
        daemon = _Daemon(url, timeout_s, shared.daemon_access(options), log)
        explanation = daemon.explanation(options.what)
        alerts = None
        if options.prometheus is not None:
            server = Server(options.prometheus, timeout_s, access, url)
            alerts = tuple(_alerts(server, daemon.reloaded_at(), options.what))
    except UnknownName:
        raise
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return _CANNOT_TELL
    answer = {"explanation": explanation, "alerts": alerts}  # no alerts: Prometheus was not asked
    show(options, answer, lambda console: _print(console, url, explanation, alerts))
    return 1 if explanation.level is Level.BAD or alerts else 0


class _Daemon(Struct, frozen=True):
    url: str
    timeout_s: float
    access: Access
    log: str  # the command that shows why it does not answer

    def explanation(self, what: str) -> Explanation:
        page = self._page(f"/why?of={quote(what)}" if what else "/why")
        if page.status == 404 and what:
            raise UnknownName(f"{self.url} knows no layer, probe, OSD, disk or port {what!r}; plumbline why shows all")
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
            raise Unavailable(f"{error}; is the daemon up? {self.log}; or --daemon URL") from error


def _alerts(server: Server, reloaded_at: float | None, what: str) -> Iterator[Alert]:
    """The pages, then the tickets that fire about this node, its cluster, or what is asked about."""
    series = server.series_of(reloaded_at) if reloaded_at is not None else ()
    own = series[0].labels if series else {}
    rules = read_rules(server.url, timeout_s=server.timeout_s, access=server.access)
    firing = [alert for rule in rules for alert in rule.alerts if alert.state == "firing"]
    for severity in _SEVERITIES:
        for alert in firing:
            if alert.labels.get("severity") == severity and _concerns(alert, own, what):
                title = alert.annotations.get("summary", alert.labels.get("alertname", ""))
                yield Alert(severity, title, alert.annotations.get("runbook_url", ""))


def _concerns(alert: ActiveAlert, own: Mapping[str, str], what: str) -> bool:
    labels = alert.labels
    if labels.get("cluster", "") != own.get("cluster", ""):
        return False
    if what:
        return what in labels.values() or f"osd.{what}" in labels.values() or what in labels.get("probe", "").split("/")
    return labels.get("instance") in (None, own.get("instance"))


def _print(console: Console, url: str, explanation: Explanation, alerts: tuple[Alert, ...] | None) -> None:
    line(console, f"{explanation.host}: {explanation.headline}", _STYLE[explanation.level])
    _print_facts(console, "For it", explanation.facts_for, url)
    _print_facts(console, "Against it", explanation.against, url)
    _print_facts(console, "Not judged", explanation.unknown, url)
    for note in explanation.notes:
        line(console, f"● {note}")
    if alerts is None:
        line(console, "What Prometheus knows beyond this node: --prometheus http://HOST:9090", "dim")
    elif not alerts:
        line(console, "Prometheus has no page and no ticket about it.")
    else:
        rows = [(Text(alert.severity, _STYLE[Level.BAD]), alert.title, alert.runbook) for alert in alerts]
        table(console, ("Alert", "Title", "Runbook"), rows)


def _print_facts(console: Console, title: str, facts: Sequence[Fact], url: str) -> None:
    if not facts:
        return
    line(console, "")
    shown = 3 if any(fact.command for fact in facts) else 2
    rows = [(Text(fact.about, _STYLE[fact.level]), fact.text, fact.command)[:shown] for fact in facts]
    table(console, (title, "", "First")[:shown], rows, wraps={"": 0, "First": 0})
    for runbook in dict.fromkeys(fact.runbook for fact in facts if fact.runbook):
        line(console, f"runbook: {url}{runbook}", "dim")
