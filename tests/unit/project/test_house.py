"""The package has the rooms that CONTRIBUTING.md describes, and no file or folder too big to take in."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "exporter" / "plumbline"
LONGEST, MOST_FILES = 400, 33
BESIDE_THE_ROOMS = {"project"}
"""In tests/unit: what is about the repository and no module."""


def layers() -> list[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = [each["layers"] for each in contracts if each.get("containers") == ["plumbline"]]
    return list(found)


def page() -> str:
    (found,) = re.findall(r"^## Where things live\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text(), re.S | re.M)
    return str(found)


def test_contributing_has_a_sentence_for_each_layer() -> None:
    rows = re.findall(r"^\| (`.*?) \| .+ \|$", page(), re.M)
    assert [re.findall(r"`(\w+)`", row) for row in rows if "/" not in row] == [
        re.findall(r"\w+", layer) for layer in layers()
    ]


def test_every_path_it_names_exists() -> None:
    paths = set(re.findall(r"`([\w*<][\w./*<>-]*/[\w./*<>-]+)`", page()))
    patterns = {path: re.sub(r"<\w+>", "*", path) for path in paths}
    assert [path for path, glob in patterns.items() if not [*PACKAGE.glob(glob), *ROOT.glob(glob)]] == []


def test_the_root_has_the_command_line_and_the_errors_only() -> None:
    assert {file.name for file in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "cli.py", "errors.py"}


def test_no_file_and_no_folder_is_too_big() -> None:
    files = [*PACKAGE.rglob("*.py")]
    assert {str(file): n for file in files if (n := len(file.read_text().splitlines())) > LONGEST} == {}
    assert {str(folder): n for folder, n in Counter(file.parent for file in files).items() if n > MOST_FILES} == {}


def test_unit_tests_mirror_the_rooms() -> None:
    tests = ROOT / "tests" / "unit"
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py")}
    assert {str(each) for each in folders if not (PACKAGE / each).is_dir()} == BESIDE_THE_ROOMS
