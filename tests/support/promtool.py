"""``promtool check metrics`` on a page."""

from __future__ import annotations

import subprocess

from .programs import need


def complaints(page: bytes) -> list[str]:
    """Everything that it has to say about a page in the text format; a page it can't parse included."""
    done = subprocess.run(
        [need("promtool"), "check", "metrics"], input=page, capture_output=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).decode().splitlines()
    assert said or done.returncode == 0, done.returncode
    return said
