"""What the demo asks Prometheus and waits for: instant queries, alert states, readiness."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from functools import cached_property
from typing import Any

TIMEOUT_S = 5.0


def ready(url: str) -> bool:
    """Whether ``url`` answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310  (our own loopback URL)
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def alertmanager_page(url: str) -> str:
    """The address of Alertmanager's page of alerts, or of its API where it was built without pages, as Debian's."""
    return f"{url}/" if ready(f"{url}/script.js") else f"{url}/api/v2/alerts"


class Prometheus:
    """https://prometheus.io/docs/prometheus/latest/querying/api/ at ``url``."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """An instant vector: labels and value of every series."""
        data = self._get("query", query=expression)
        return [(item["metric"], float(item["value"][1])) for item in data["result"]]

    def alert_states(self) -> dict[str, str]:
        """Alert name → ``pending`` or ``firing``, the furthest of its instances; inactive ones are absent."""
        states: dict[str, str] = {}
        for alert in self._get("alerts")["alerts"]:
            name = alert["labels"]["alertname"]
            if states.get(name) != "firing":
                states[name] = alert["state"]
        return states

    def alerts_loaded(self) -> set[str]:
        """The names of all alerting rules that Prometheus has loaded."""
        groups = self._get("rules", type="alert")["groups"]
        return {rule["name"] for group in groups for rule in group["rules"]}

    @cached_property
    def _pages(self) -> str:
        """Where its pages are; Debian's package has the classic ones alone."""
        return self.url if ready(f"{self.url}/alerts") else f"{self.url}/classic"

    def page(self, name: str) -> str:
        """The address of one of its pages."""
        return f"{self._pages}/{name}"

    def graph(self, expression: str) -> str:
        """The address of its graph page for an expression."""
        return f"{self.page('graph')}?" + urllib.parse.urlencode(
            {"g0.expr": expression, "g0.tab": "0", "g0.range_input": "15m"}
        )

    def _get(self, endpoint: str, **parameters: str) -> Any:
        url = f"{self.url}/api/v1/{endpoint}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310  (our own loopback URL)
            return json.load(answer)["data"]
