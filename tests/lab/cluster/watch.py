"""What watches the hosts: Prometheus and Alertmanager with the shipped rules and routes, and who is notified."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from deploy.demo.webhook import Notification

from lab.cluster import ceph
from plumbline.config.types import Duration
from support.daemon import running
from support.pager import Pager, pager
from support.prometheus import CLUSTER, Prometheus, prometheus
from support.rules import rendered

HASTE = 5
EVERY_S = 15
UNHASTENED_S = 120
"""Alerts wait a fifth as long as they ship, but not less than two minutes if they ship with more: Ceph and the probes
need that long to see a cause, and whoever waits less is not to be early. The windows below are a fifth, those of
canaries as shipped; the routes wait 30 s and 5 s."""
WINDOWS = """{ _config+:: {
  paces+: { compared: '15s', drawn: '15s', remembered: '15s', daily: '15s' },
  ceph+: { window: '1m' },
  disk+: { window: '1m', mean+: { window: '3m' }, hungWindow: '1m' },
  osd+: { equals+: { window: '1m' } },
  canary+: {
    meanLongWindow: '10m', minimumOperations: { short: 10, long: 10, fast: 10 },
    recoveryWindow: '30s', recoveryLongWindow: '30s',
  },
  // holds tickets back for as long as their windows hold the recovery: those above
  alerts+: {
    PlumblineRecoveryUnderWay+: { keepFiringFor: '5m' }, PlumblineProbeSkipped+: { window: '5m' },
    PlumblineCephOsdFlapping+: { windows: ['6m', '2m'] },
  },
} }"""
Key = tuple[tuple[str, str], ...]
PEOPLE = ("pager", "tickets", "tickets-network", "tickets-storage", "tickets-monitoring")
"""Receivers who have to do something; not the dead man's switch, nobody, and the digest."""


@dataclass(frozen=True, slots=True)
class Told:
    """A notification and when it came."""

    at: float
    what: Notification

    def says(self) -> str:
        """All words of it."""
        return " ".join([*self.what.labels.values(), *self.what.annotations.values()])


@dataclass(slots=True)
class Watch:
    """Everything that was sent so far; ``log`` keeps each as a line of JSON."""

    prometheus: Prometheus
    pager: Pager
    log: Path
    told: list[Told] = field(default_factory=list)

    def look(self) -> list[Told]:
        """Those that are new since the last look."""
        now = time.time()
        new = [Told(now, each) for each in self.pager.webhook.drain()]
        with self.log.open("a") as file:
            for each in new:
                line = {"at": round(each.at, 1), "receiver": each.what.receiver, "status": each.what.status}
                file.write(json.dumps(line | {"labels": each.what.labels, **each.what.annotations}) + "\n")
        self.told += new
        return new

    def standing(self) -> set[Key]:
        """The alerts that people have been told of and that are not over."""
        self.look()
        found: set[Key] = set()
        for each in self.told:
            if each.what.receiver in PEOPLE:
                (found.add if each.what.status == "firing" else found.discard)(key(each.what.labels))
        return found

    def pause(self, seconds: float) -> None:
        """Prometheus stands still: it neither scrapes nor evaluates."""
        os.kill(self.prometheus.pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(self.prometheus.pid, signal.SIGCONT)

    def under_way(self) -> set[Key]:
        """The alerts that are pending or fire now, whether somebody was told or not."""
        found = self.prometheus.query('ALERTS{alertstate=~"pending|firing"}')
        return {key(labels) for labels, _ in found}


def key(labels: Mapping[str, str]) -> Key:
    """Which alert it is, whatever its state."""
    return tuple(sorted((name, value) for name, value in labels.items() if name not in ("__name__", "alertstate")))


@contextmanager
def watched(folder: Path, namespace: str, client: dict[str, Any]) -> Iterator[Watch]:
    """Started, beside the daemon of the client with the configuration ``client``."""
    with ExitStack() as stack:
        daemon = stack.enter_context(running(folder, config=client, prefix=("ip", "netns", "exec", namespace)))
        told = stack.enter_context(pager(folder, group_wait_s=30))
        nodes = {f"{host}:10047": f"{ceph.address(host)}:10047" for host in ceph.HOSTS}
        nodes["client:10047"] = daemon.url.removeprefix("http://")
        static = [
            {"targets": [target], "labels": {"cluster": CLUSTER, "instance": name}} for name, target in nodes.items()
        ]
        manager = {"targets": [f"{ceph.address(ceph.HOSTS[0])}:{ceph.METRICS_PORT}"], "labels": {"cluster": CLUSTER}}
        scrapes: list[dict[str, Any]] = [
            {"job_name": "plumbline", "static_configs": static},
            {"job_name": "ceph", "honor_labels": True, "static_configs": [manager]},
        ]
        rules = _hastened(rendered(folder, WINDOWS))
        server = prometheus(folder, interval_s=EVERY_S, rules=rules, alertmanager=told.address, scrapes=scrapes)
        yield Watch(stack.enter_context(server), told, folder / "notifications.jsonl")


def _hastened(rules: Path) -> Path:
    """The same alerts: they wait less, fire on for a fifth as long, and their own windows are a fifth, except one."""
    for file in rules.glob("*.yaml"):
        document = yaml.load(file.read_bytes(), yaml.CSafeLoader)
        for rule in (rule for group in document["groups"] for rule in group["rules"]):
            if "alert" in rule:
                if rule["alert"] == "PlumblineCanaryUnjudged":
                    continue  # it counts the figures in its window, and waits until a server that is new has them
                rule["expr"] = re.sub(r"\[(5|10|15)m\]", lambda found: f"[{int(found[1]) // 5}m]", rule["expr"])
            if "for" in rule:
                shipped_s = float(Duration.parse(rule["for"]))
                rule["for"] = f"{max(shipped_s / HASTE, min(shipped_s, UNHASTENED_S)):.0f}s"
            if "keep_firing_for" in rule:
                rule["keep_firing_for"] = f"{float(Duration.parse(rule['keep_firing_for'])) / HASTE:.0f}s"
        file.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
    return rules
