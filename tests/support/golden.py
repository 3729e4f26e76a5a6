"""Golden files: exact text, rewritten only on purpose (``make golden``)."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "PLUMBLINE_GOLDEN"
"""``write`` rewrites; anything else, or nothing, compares."""


def check_golden(path: Path, got: bytes) -> None:
    """Fail unless ``path`` holds exactly ``got``; with ``PLUMBLINE_GOLDEN=write`` write it, except under CI."""
    if os.environ.get(VARIABLE) == "write":
        if os.environ.get("CI"):
            raise AssertionError(
                f"{VARIABLE}=write is refused under CI: a golden file changes in a commit that somebody reads"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(got)
    expected = path.read_bytes() if path.exists() else b""
    # compared as lists of lines, so that pytest shows which one differs
    assert got.split(b"\n") == expected.split(b"\n"), f"{path.name} differs; make golden rewrites it"
