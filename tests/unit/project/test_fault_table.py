"""docs/endurance.md promises a test for each fault: each of them exists."""

import ast
import re
from pathlib import Path

from support.offenders import for_every

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "endurance.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and "::" in line
]


def test_every_row_is_whole() -> None:
    assert len(ROWS) >= 20
    for row in ROWS:
        assert len(row) == 4, row
        assert all(row), row


@for_every("named", sorted({name for row in ROWS for name in re.findall(r"`(tests/[^`]+)`", row[2])}))
def test_the_test_exists(named: str) -> None:
    path, name = named.split("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
