"""What people get: a real Alertmanager with the shipped tree and the shipped receivers for mail, Slack, PagerDuty,
Opsgenie, ServiceNow and Jira, and somebody in place of these services who keeps what they are sent."""

from __future__ import annotations

import email
import email.policy
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from .alertmanager import Alertmanager, alertmanager, speaks_jira
from .pager import CONFIG

SERVICES = ("email", "slack", "pagerduty", "opsgenie", "servicenow", "jira")
ROUTED = ("email", "slack", "pagerduty")
"""Those that :func:`notified` puts into the shipped tree; the others stand at the same places of it."""


@dataclass
class Inbox:
    """Service → what it was sent, oldest first: of a mail its subject and HTML, of the others the JSON; ``authorized``
    has what they were shown."""

    received: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in SERVICES})
    authorized: dict[str, str] = field(default_factory=dict)

    def text(self, service: str) -> list[str]:
        """What a person reads of each message."""
        return [_TEXT[service](message) for message in self.received[service]]


_ADDRESSED = {"pagerduty": "url", "opsgenie": "api_url", "servicenow": "url", "jira": "api_url"}
_TEXT: dict[str, Callable[[dict[str, Any]], str]] = {
    "email": lambda mail: mail["html"],
    "slack": lambda sent: f"{sent['attachments'][0]['title']}\n{sent['attachments'][0]['text']}",
    "pagerduty": lambda sent: f"{sent['payload']['summary']}\n{sent['payload']['custom_details']['alerts']}",
    "opsgenie": lambda sent: f"{sent['message']}\n{sent['description']}",
    "servicenow": lambda sent: "\n".join(text for each in sent["alerts"] for text in each["annotations"].values()),
    "jira": lambda sent: f"{sent['fields']['summary']}\n{sent['fields']['description']}",
}


@contextmanager
def notified(folder: Path, *, wait: str = "1s", everybody: bool = False) -> Iterator[tuple[Alertmanager, Inbox]]:
    """Started with short waits. ``everybody``: each service that this Alertmanager can reach gets all alerts of any
    severity and layer. Else the tree says who gets what: pages PagerDuty and mail, tickets Slack."""
    inbox = Inbox()
    with _http(inbox) as url, _smtp(inbox) as smtp:
        shipped = yaml.safe_load(CONFIG.read_text("utf-8"))
        examples = {name: _example(name, folder, url, smtp) for name in SERVICES if name != "jira" or speaks_jira()}
        replaced = {each["name"]: each for name in ROUTED for each in examples[name]["receivers"]}
        for ticket in ("tickets-network", "tickets-monitoring"):
            replaced[ticket] = {**replaced["tickets-storage"], "name": ticket}
        replaced["pager"]["email_configs"] = examples["email"]["receivers"][0]["email_configs"]
        quiet = {"name": "dead-man"}
        shipped["receivers"] = [replaced.get(each["name"], each) for each in shipped["receivers"]]
        shipped["receivers"] = [quiet if each["name"] == "dead-man" else each for each in shipped["receivers"]]
        if everybody:
            first = {_section(name): each["receivers"][0][_section(name)] for name, each in examples.items()}
            if "jira" not in examples:  # its texts are rendered all the same
                first["pagerduty_configs"][0]["details"] |= _jira_texts()
            shipped["receivers"] = [{"name": "all", **first}]
            shipped["route"] = {"receiver": "all", "group_by": ["cluster", "alertname", "severity"]}
            del shipped["inhibit_rules"]
        _set_waits(shipped["route"], wait)
        shipped["time_intervals"] = [{"name": "office-hours", "time_intervals": [{"years": ["2001:2199"]}]}]
        shipped["global"] = examples["email"]["global"]
        with alertmanager(folder, shipped) as server:
            yield server, inbox


def _jira_texts() -> dict[str, str]:
    """The templates of the fields of an issue."""
    document = yaml.safe_load((CONFIG.parent / "receivers-jira.yaml").read_text("utf-8"))
    config = document["receivers"][0]["jira_configs"][0]
    return {f"jira_{field}": config[field] for field in ("summary", "description")}


def _section(service: str) -> str:
    return "webhook_configs" if service == "servicenow" else f"{service}_configs"


def _example(name: str, folder: Path, url: str, smtp: str) -> dict[str, Any]:
    """A shipped example of receivers that sends to us: addresses and secrets replaced, texts as shipped."""
    secret = folder / f"{name}-secret"
    secret.write_text(f"{url}/slack" if name == "slack" else "0" * 32)
    document: dict[str, Any] = yaml.safe_load((CONFIG.parent / f"receivers-{name}.yaml").read_text("utf-8"))
    for receiver in document["receivers"]:
        for config in receiver.get(_section(name), ()):
            config |= {key: str(secret) for key in config if key.endswith("_file")}
            for account in config.get("http_config", {}).values():
                account |= {key: str(secret) for key in account if key.endswith("_file")}
            if name in _ADDRESSED:
                config[_ADDRESSED[name]] = f"{url}/{name}{'' if name == 'jira' else '/'}"
    if "global" in document:
        document["global"] = {
            "smtp_smarthost": smtp,
            "smtp_from": document["global"]["smtp_from"],
            "smtp_require_tls": False,
        }
    return document


def _set_waits(route: dict[str, Any], wait: str) -> None:
    route |= {"group_wait": wait, "group_interval": wait}
    for child in route.get("routes", []):
        _set_waits(child, wait)


@contextmanager
def _http(inbox: Inbox) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service = self.path.strip("/").partition("/")[0]
            inbox.authorized[service] = self.headers.get("Authorization", "")
            asked = "/search" in self.path  # of Jira, which has no issue about it yet
            # PUT changes a part of what Opsgenie has
            if self.command == "POST" and not asked and not self.path.endswith("/close"):
                inbox.received[service].append(sent)
                texts = sent.get("payload", {}).get("custom_details", {})
                if "jira_summary" in texts:
                    fields = {field: texts.pop(f"jira_{field}") for field in ("summary", "description")}
                    inbox.received["jira"].append({"fields": fields})
            body = b"ok" if self.path == "/slack" else b'{"status":"success","issues":[],"id":"1","key":"STORAGE-1"}'
            self.send_response(200 if asked else 201 if service == "jira" else 202)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _smtp(inbox: Inbox) -> Iterator[str]:
    """https://www.rfc-editor.org/rfc/rfc5321, as far as one sender without TLS needs it."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 here")
            for line in self.rfile:
                command = line[:4].upper().strip()
                if command == b"DATA":
                    self._say("354 go on")
                    lines = []
                    for text in self.rfile:
                        if text == b".\r\n":
                            break
                        lines.append(text)
                    else:
                        return  # the connection ended within it: no mail
                    mail = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
                    body = mail.get_body(("html",))
                    inbox.received["email"].append(
                        {"subject": str(mail["subject"]), "html": body.get_content() if body else ""}
                    )
                self._say("221 bye" if command == b"QUIT" else "250 fine")
                if command == b"QUIT":
                    return

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    with _serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        port: int = server.server_address[1]
        yield port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
