"""Configurations of Prometheus and Alertmanager for the demo, made from the committed rules and routes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ALERT = "PlumblineCanaryLatencyExtreme"
"""What ``make demo-slow`` makes fire."""
INTERVAL_S = 5
"""Scrapes and rule evaluations; short, so that a demo takes minutes."""


def prometheus(*, target: str, alertmanager: str, rules: Path) -> dict[str, Any]:
    """One scrape job named as the rules expect it (``plumbline``), all rendered rules, one Alertmanager."""
    return {
        "global": {"scrape_interval": f"{INTERVAL_S}s", "evaluation_interval": f"{INTERVAL_S}s"},
        "rule_files": [str(rules / "*.yaml")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [{"job_name": "plumbline", "static_configs": [{"targets": [target]}]}],
    }


def impatient(rules: str) -> str:
    """The text of a rule file in which the ticket of :data:`ALERT` waits a minute instead of six, and says so; all else
    is as it ships."""
    head, *alerts = rules.split("  - alert: ")
    hastened = (
        text.replace("for: 6m", "for: 1m", 1).replace("at least 6m", "at least 1m", 1)
        if text.startswith(f"{ALERT}\n") and "severity: warning" in text
        else text
        for text in alerts
    )
    return "  - alert: ".join((head, *hastened))


def alertmanager(committed: dict[str, Any], *, webhook: str) -> dict[str, Any]:
    """The committed routing and inhibition; every receiver is our terminal, and nothing waits for minutes."""
    receivers = [
        {
            "name": receiver["name"],
            "webhook_configs": [{"url": f"{webhook}/{receiver['name']}", "send_resolved": True}],
        }
        for receiver in committed["receivers"]
    ]
    kept = {key: value for key, value in committed.items() if key not in {"receivers", "route", "templates", "global"}}
    return kept | {"receivers": receivers, "route": _impatient(committed["route"])}


def _impatient(route: dict[str, Any]) -> dict[str, Any]:
    routes = [_impatient(child) for child in route.get("routes", [])]
    waits = {"group_wait": "1s", "group_interval": "5s", "repeat_interval": "12h"}
    return route | waits | ({"routes": routes} if routes else {})


def write(path: Path, document: dict[str, Any]) -> Path:
    """YAML that a person can read."""
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
