"""Alertmanager's receiver in the demo: notifications arrive here and are told in the terminal."""

from __future__ import annotations

import json
import queue
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Notification:
    """One alert as Alertmanager delivered it; ``status`` is ``firing`` or ``resolved``."""

    receiver: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def name(self) -> str:
        """The alert's name."""
        return self.labels["alertname"]

    @property
    def line(self) -> str:
        """Who was told, and the title that a pager would show."""
        title = self.annotations.get("summary", "")
        return f"Alertmanager → {self.receiver}: {self.name} {self.status}: {title}"


class Webhook:
    """An HTTP server on a free loopback port; ``arrived`` fills as notifications come in."""

    def __init__(self) -> None:
        self.arrived: queue.SimpleQueue[Notification] = queue.SimpleQueue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.arrived))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="webhook", daemon=True)

    @property
    def url(self) -> str:
        """Where Alertmanager posts to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Serve in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def drain(self) -> list[Notification]:
        """What has arrived since the last call, oldest first."""
        found = []
        while not self.arrived.empty():
            found.append(self.arrived.get())
        return found


def notifications(payload: dict[str, Any]) -> list[Notification]:
    """The alerts of one webhook message (https://prometheus.io/docs/alerting/latest/configuration/#webhook_config)."""
    return [
        Notification(payload["receiver"], alert["status"], alert["labels"], alert["annotations"])
        for alert in payload["alerts"]
    ]


def _handler(arrived: queue.SimpleQueue[Notification]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for notification in notifications(payload):
                arrived.put(notification)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the terminal belongs to the story."""

    return Handler
