"""What people get of an alert: the mail as a mail program shows it; of Slack and PagerDuty the fields that they get,
laid out in the order and with the marks of their applications, which cannot be run here."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.browser import browser
from support.notifications import Inbox

WIDTHS = {"email": 760, "slack": 760, "pagerduty": 760}
HEIGHT = 820
"""Of a message about many alerts, which all say the same of their canary, the first few are enough."""
_STYLE = """<meta charset="utf-8"><style>
body { font: 15px/1.45 sans-serif; margin: 16px; color: #1d1c1d; background: #fff; overflow-wrap: anywhere }
.bar { border-left: 4px solid #c0392b; padding-left: 12px; white-space: pre-line }
h1 { font-size: 17px; margin: 0 0 8px } code { background: #f4f2f2; color: #b01c5a; padding: 0 3px; border-radius: 3px }
table { border-collapse: collapse; width: 100% } td { border-top: 1px solid #ddd; padding: 6px; vertical-align: top }
td:first-child { color: #666; width: 90px } td + td { white-space: pre-line }
.from { color: #666; font-size: 13px; margin: 0 0 8px }
</style>"""


def draw(inbox: Inbox, folder: Path) -> list[Path]:
    """A picture of the message with most to read of each service into ``folder``, cut below :data:`HEIGHT`."""
    pages: dict[str, Callable[[dict[str, Any]], str]] = {
        "email": lambda sent: f"{_STYLE}<p class=from>Mail: {html.escape(sent['subject'])}</p>{sent['html']}",
        "slack": _slack,
        "pagerduty": _pagerduty,
    }
    drawn = []
    with browser() as started:
        for name, page_of in pages.items():
            if not inbox.received[name]:
                continue
            drawn.append(folder / f"notification-{name}.png")
            source = drawn[-1].with_suffix(".html")
            message = max(inbox.received[name], key=lambda sent: len(re.sub(r"http\S+", "", str(sent))))
            source.write_text(page_of(message), "utf-8")
            page = started.page()
            page.open(source.as_uri(), width=WIDTHS[name], height=200)
            page.screenshot(drawn[-1])
            source.unlink()
            cut(drawn[-1])
    return drawn


def cut(file: Path) -> None:
    """Leave out what is below :data:`HEIGHT`."""
    from PIL import Image

    with Image.open(file) as picture:
        top = picture.crop((0, 0, picture.width, min(picture.height, HEIGHT)))
    top.save(file)


def _slack(sent: dict[str, Any]) -> str:
    """https://api.slack.com/reference/surfaces/formatting: `*bold*`, `` `code` ``, `<url|text>`."""
    message = sent["attachments"][0]
    text = html.escape(message["text"], quote=False)
    text = re.sub(r"&lt;https?://[^|]+\|(\w+)&gt;", r"<a href='#'>\1</a>", text)
    text = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", re.sub(r"(?m)^\*([^*\n]+)\*$", r"<b>\1</b>", text))
    return (
        f"{_STYLE}<p class=from>Slack: {html.escape(sent['channel'])}</p>"
        f"<h1>{html.escape(message['title'])}</h1><div class=bar>{text.strip()}</div>"
    )


def _pagerduty(sent: dict[str, Any]) -> str:
    """https://developer.pagerduty.com/docs/send-alert-event: the summary is the incident's title."""
    payload = sent["payload"]
    fields = {key: payload.get(key, "") for key in ("severity", "component", "group")} | payload["custom_details"]
    rows = "".join(
        f"<tr><td>{html.escape(key)}<td>{html.escape(str(value).strip())}" for key, value in fields.items() if value
    )
    links = " ".join(f"<a href='#'>{html.escape(each['text'])}</a>" for each in sent.get("links", ()))
    return f"{_STYLE}<p class=from>PagerDuty</p><h1>{html.escape(payload['summary'])}</h1>{links}<table>{rows}</table>"
