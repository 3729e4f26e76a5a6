"""What others wrote reaches a terminal escaped: one function prints a line, and nothing prints beside it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import plumbline
from plumbline.core.escape import visible_json

SOURCE = Path(plumbline.__file__).parent
# Module and function → why what it writes is safe, or is no line for a terminal
ALLOWED = {
    ("commands/shared.py", "complain"): "the door to standard error",
    ("commands/shared.py", "say"): "the door to standard output",
    ("commands/shared.py", "print_json"): "JSON, escaped",
    ("commands/reporting.py", "_write"): "a page; escaped for a terminal",
    ("core/console.py", "line"): "escaped",
    ("core/console.py", "table"): "the cells are escaped",
    ("core/launch.py", "main"): "a worker's, for the daemon that reads and escapes it",
    ("daemon/daemon.py", "run"): "version and addresses of our own",
    ("probes/ceph/ceph_task.py", "main"): "a worker's, for the daemon that reads and escapes it",
    ("probes/filesystem/filesystem_worker.py", "main"): "a worker's, for the daemon that decodes it",
    ("probes/filesystem/mount_look.py", "main"): "a worker's, for the daemon that reads and escapes it",
    ("probes/object/s3_worker.py", "main"): "a worker's, for the daemon that decodes it",
    ("sources/net/genetlink.py", "main"): "a worker's, for the daemon that decodes it",
}
HOSTILE = "\x1b[2J\x9b31m\u202e\r\x07\U000e0001"


def printing() -> Iterator[tuple[str, str]]:
    """Module and function of each call that writes to a standard stream."""
    for file in sorted(SOURCE.rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and _writes(ast.unparse(call.func)):
                        yield str(file.relative_to(SOURCE)), function.name


def _writes(name: str) -> bool:
    stream, _, call = name.rpartition(".")
    return (
        name == "print" or name.endswith("console.print") or (stream.startswith("sys.std") and call.startswith("write"))
    )


def test_nothing_prints_beside_the_door() -> None:
    calls = set(printing())
    assert len(calls) > 5
    assert {call for call in calls if call not in ALLOWED} == set()
    assert set(ALLOWED) - calls == set(), "no longer there"


@pytest.mark.parametrize("value", [HOSTILE, "é\n", "\ud800", "a"])
def test_json_is_the_same_and_harmless(value: str) -> None:
    text = json.dumps({"name": value}, ensure_ascii=False, indent=2)
    shown = visible_json(text)
    assert json.loads(shown) == {"name": value}
    assert shown.replace("\n", "").isprintable()
