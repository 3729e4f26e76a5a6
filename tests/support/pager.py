"""A real Alertmanager on loopback with the shipped routes and inhibition, and somebody who gets its messages."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from deploy.demo import api, configs
from deploy.demo.processes import Processes
from deploy.demo.webhook import Notification, Webhook

from .daemon import eventually
from .ports import free_port
from .programs import need

CONFIG = Path(__file__).parents[2] / "alerts" / "alertmanager" / "alertmanager.yaml"


@dataclass(slots=True)
class Pager:
    """What Alertmanager sent, and what it thinks of each alert."""

    address: str
    webhook: Webhook
    received: list[Notification]

    def messages(self, receiver: str, status: str) -> list[Notification]:
        """All so far, oldest first."""
        self.received += self.webhook.drain()
        return [each for each in self.received if (each.receiver, each.status) == (receiver, status)]

    def alerts(self) -> list[dict[str, Any]]:
        """https://prometheus.io/docs/alerting/latest/clients/ v2: ``labels``, and ``status`` with ``inhibitedBy``."""
        with urllib.request.urlopen(f"http://{self.address}/api/v2/alerts", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


@contextmanager
def pager(folder: Path, *, group_wait_s: int) -> Iterator[Pager]:
    """``group_wait_s`` instead of the shipped one everywhere, and group intervals of seconds."""
    webhook = Webhook()
    webhook.start()
    processes = Processes(folder)
    address = f"127.0.0.1:{free_port()}"
    try:
        shipped = configs.alertmanager(yaml.safe_load(CONFIG.read_text("utf-8")), webhook=webhook.url)
        shipped["route"] = _waiting(shipped["route"], f"{group_wait_s}s")
        file = configs.write(folder / "alertmanager.yaml", shipped)
        processes.start(
            "alertmanager",
            [need("prometheus-alertmanager"), f"--config.file={file}",
             f"--storage.path={folder / 'alertmanager'}", f"--web.listen-address={address}",
             "--cluster.listen-address=", "--log.level=warn"],
        )  # fmt: skip

        def ready() -> bool:
            processes.check()
            return api.ready(f"http://{address}/-/ready")

        eventually(ready)
        yield Pager(address, webhook, [])
    finally:
        processes.stop()
        webhook.stop()


def _waiting(route: dict[str, Any], wait: str) -> dict[str, Any]:
    routes = [_waiting(child, wait) for child in route.get("routes", [])]
    return route | {"group_wait": wait} | ({"routes": routes} if routes else {})
