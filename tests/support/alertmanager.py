"""A real Alertmanager on loopback, for as long as a test needs it, and a receiver that keeps what it is told."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from deploy.demo import api, configs
from deploy.demo.processes import Processes

from .daemon import eventually
from .ports import free_port
from .programs import need

WITHOUT_JIRA = re.compile(r"version 0\.(\d|1\d|2[0-7])\.|version 0\.28\.\d+\+ds")
"""Alertmanagers that refuse its example: before 0.28, as Debian 12's, and Debian 13's 0.28, built without Jira."""
ANSWER_S = 300.0
"""Thousands of alerts are judged anew for each answer, on a machine that has other things to do."""


class Receiver:
    """Every webhook message as Alertmanager sent it: ``receiver``, ``status``, ``groupLabels``, ``alerts``."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.messages))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="receiver", daemon=True)

    @property
    def url(self) -> str:
        """Where Alertmanager posts to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Alertmanager:
    """https://prometheus.io/docs/alerting/latest/clients/ and its OpenAPI, version 2, at ``url``.

    ``log`` has its warnings and errors.
    """

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self.log = log

    def post(
        self,
        firing: Iterable[Mapping[str, str]],
        *,
        over: Iterable[Mapping[str, str]] = (),
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Tell it of alerts by their labels, as Prometheus does: firing from now on, and over since a moment ago. In
        one request: between two it may notify. ``annotations`` are those of each.

        An alert that began longer ago than ``group_wait`` would be sent at once, before its inhibitor is heard of.
        """
        now = datetime.now(UTC)
        start, passed, ahead = (
            (now + wait).isoformat()
            for wait in (timedelta(milliseconds=-2), timedelta(milliseconds=-1), timedelta(hours=1))
        )
        body = json.dumps(
            [
                {"labels": dict(labels), "annotations": dict(annotations or {}), "startsAt": start, "endsAt": end}
                for end, alerts in ((ahead, firing), (passed, over))
                for labels in alerts
            ]
        ).encode()
        request = urllib.request.Request(f"{self.url}/api/v2/alerts", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            assert answer.status == 200

    def alerts(self) -> list[dict[str, Any]]:
        """What it has, each with ``labels``, ``fingerprint`` and ``status``: ``state``, ``inhibitedBy``."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=ANSWER_S) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


@contextmanager
def alertmanager(folder: Path, config: Mapping[str, Any]) -> Iterator[Alertmanager]:
    """Started with ``config``, alone; ended with the block."""
    address = f"127.0.0.1:{free_port()}"
    file = configs.write(folder / "alertmanager.yaml", dict(config))
    processes = Processes(folder)
    try:
        processes.start(
            "alertmanager",
            [need("prometheus-alertmanager"), f"--config.file={file}", f"--storage.path={folder / 'alertmanager'}",
             f"--web.listen-address={address}", "--cluster.listen-address=", "--log.level=warn"],
        )  # fmt: skip

        def ready() -> bool:
            processes.check()
            return api.ready(f"http://{address}/-/ready")

        eventually(ready, within_s=60)
        yield Alertmanager(f"http://{address}", folder / "alertmanager.log")
        processes.check()
    finally:
        processes.stop()


def _handler(messages: list[dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    return Handler


def speaks_jira() -> bool:
    """Whether this Alertmanager can be told of it."""
    argv = [need("prometheus-alertmanager"), "--version"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return WITHOUT_JIRA.search(done.stdout + done.stderr) is None
