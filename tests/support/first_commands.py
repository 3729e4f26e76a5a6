"""The commands that notifications name, as somebody types them on a host."""

from __future__ import annotations

import re

from support.rules import ALERTS, rules_of

FIRST = sorted(
    {
        re.sub(r"{{.*?}}", "sda", command)
        for rule in rules_of(ALERTS)
        if "alert" in rule
        for command in re.findall(r"`(plumbline [^`]+)`", rule["annotations"]["description"])
    }
)
EXPLICIT = {"plumbline config check /etc/plumbline/plumbline.yaml": "names its file"}


def arguments(command: str) -> list[str]:
    """Without the program; a server that does not answer in place of Prometheus'."""
    return ["http://127.0.0.1:1" if word == "URL" else word for word in command.split()[1:]]
