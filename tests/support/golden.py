"""Golden files: exact text, rewritten only on purpose."""

from __future__ import annotations

import os
from pathlib import Path

UPDATE = "PLUMBLINE_UPDATE_GOLDEN"


def check_golden(path: Path, got: bytes) -> None:
    """Fail unless ``path`` holds exactly ``got``; with ``PLUMBLINE_UPDATE_GOLDEN=1`` write it, except under CI."""
    if os.environ.get(UPDATE) == "1":
        if os.environ.get("CI", "").lower() == "true":
            raise AssertionError(f"{UPDATE} is refused under CI: a golden file changes in a commit that somebody reads")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(got)
    expected = path.read_bytes() if path.exists() else b""
    # compared as lists of lines, so that pytest shows which one differs
    assert got.split(b"\n") == expected.split(b"\n"), f"{path.name} differs; {UPDATE}=1 rewrites it"
