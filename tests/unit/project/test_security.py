"""SECURITY.md is held against the tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.offenders import for_every

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "SECURITY.md").read_text()
ROWS = [line for line in TEXT.splitlines() if line.startswith("|")][2:]
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+\.py)::(\w+)`", TEXT)))
HOLD_KEYS = ("s3_worker", "s3_canary_worker", "ceph_worker", "ceph_task", "rados_canary_worker")


def functions(file: Path) -> set[str]:
    return {each.name for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.FunctionDef)}


@for_every(("file", "name"), NAMED)
def test_every_test_in_the_table_exists(file: str, name: str) -> None:
    assert name in functions(ROOT / file)


def test_every_row_of_the_table_names_one() -> None:
    assert len(ROWS) > 25
    for row in ROWS:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert re.fullmatch(r"`tests/[\w/.]+::\w+`(, `tests/[\w/.]+::\w+`)*", cells[3]), row
        assert cells[1], row
        assert cells[2], row


@pytest.mark.parametrize("worker", HOLD_KEYS)
def test_every_worker_that_holds_a_key_keeps_its_memory_private(worker: str) -> None:
    """As the first thing it does, before it has read one."""
    (source,) = (ROOT / "exporter/plumbline/probes").rglob(f"{worker}.py")
    tree = ast.parse(source.read_text())
    (main,) = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "main"]
    first = next(step for step in main.body if not isinstance(getattr(step, "value", None), ast.Constant))
    assert isinstance(first, ast.Expr)
    assert ast.unparse(first) == "keep_memory_private()"


def test_whatever_connects_to_a_cluster_or_an_endpoint_is_one_of_them() -> None:
    connecting = set()
    for file in (ROOT / "exporter/plumbline/probes").rglob("*.py"):
        text = file.read_text()
        is_main = "def main(" in text
        if is_main and re.search(r"librados import .*\bconnect\b|(parse|read)_credentials", text):
            connecting.add(file.stem)
    assert connecting == {*HOLD_KEYS}
