"""The package has the rooms that CONTRIBUTING.md describes, and no file or folder too big to take in."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "exporter" / "plumbline"
LONGEST, MOST_FILES = 400, 34
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


# room → files and lines of Python. A feature pays for itself, or raises the number and says why in a comment beside it.
# After a merge the failing test prints the whole table, to be put here.
BUDGET = {
    ".": (4, 504),  # errors of a fabric; maintenance; commands find the daemon
    "background": (
        12,
        1745,
    ),  # what is off is not read; GlusterFS, Lustre, RBD clients; who loads the OSDs; slots; softirqs, LLDP; leases
    "baseline": (26, 3962),
    "capacity": (9, 1270),  # buckets of every type; pools without a place have no figures
    "ceph_top": (6, 801),  # who loads the OSDs
    "checks": (23, 3771),  # networks on one bond; copies of pools; fixes where the daemon runs; durable writes
    "claims": (5, 822),  # what can't be kept is refused before it is measured
    "collectors": (34, 3192),  # GlusterFS, MooseFS, Lustre, RBD clients; mClock; softirqs, CRUSH buckets
    "commands": (
        38,
        6367,
    ),  # errors of a fabric; durable writes; is a disk safe to pull; who loads the OSDs; the light of a slot; why
    "config": (
        16,
        2386,
    ),  # qperf; pools and sockets of clients; every mistake of a configuration
    "core": (34, 3075),  # no group of a command outlives us; an answer is checked once; links on the way to a key file
    "daemon": (5, 816),  # what is off is not read; durable writes for the check of flushes; why; where the daemon is
    "fleet": (13, 2007),
    "metrics": (10, 1216),  # label values are bounded in one place; heads of families are kept
    "pages": (8, 846),
    "probes": (
        91,
        11830,
    ),  # qperf; the course of a run of fio; no directory without our mark; maintenance
    "report": (22, 3048),  # too little data: the minimums in one module
    "sources": (
        95,
        13480,
    ),  # GlusterFS, MooseFS, Lustre, RBD clients; mClock; whom an OSD works for; slots, LLDP; guests; links read again
    "status": (
        12,
        1692,
    ),  # the verdict in the headline; the page agrees with the alerts about losses and disks; why, and what to do first
    "web": (9, 1488),  # why; metrics beside the default page; a scrape's head is parsed once
}
SPARE_LINES = 60
"""A room may be so much smaller than its budget before the budget has to follow."""


def sizes() -> dict[str, tuple[int, int]]:
    """Room → files, lines; the root's own files under ``.``"""
    files: dict[str, list[int]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).parts
        files.setdefault(parts[0] if len(parts) > 1 else ".", []).append(len(file.read_text().splitlines()))
    return {room: (len(lines), sum(lines)) for room, lines in files.items()}


def test_no_room_outgrows_its_budget() -> None:
    """Nor keeps room to spare: a reduction lowers the budget, so that nothing takes its place unseen."""
    now = sizes()
    wrong = {}
    for room in BUDGET.keys() | now.keys():
        (files, lines), (most_files, most_lines) = now.get(room, (0, 0)), BUDGET.get(room, (0, 0))
        if files > most_files or not most_lines - SPARE_LINES <= lines <= most_lines:
            wrong[room] = f"{files} files, {lines} lines; the budget is {most_files}, {most_lines}"
    table = "".join(f'    "{room}": {size},\n' for room, size in sorted(now.items()))
    assert wrong == {}, f"a larger number in BUDGET needs its reason beside it. The table as it is now:\n{table}"


BANNED = frozenset(
    {"each", "found", "one", "said", "told", "bury", "crew", "hurried", "shake", "should", "is_", "world"}
)
"""Words that say nothing of what they name, or no term of the field; a leading underscore does not count."""


def banned_names(file: Path) -> list[str]:
    """``line name`` of locals, arguments, functions and classes with a banned name."""
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case _:
                continue
        if name.lower().lstrip("_") in BANNED:
            names.append(f"{file.relative_to(PACKAGE)}:{node.lineno} {name}")
    return names


CALLED_BY_OTHERS = re.compile(
    r"__|visit_|run_(record|review|accept|push|status)$|https?_open$|utimens$|statfs$|_kill_groups$"
)
"""By a base class of somebody else's, at the exit, or under a name that is put together."""


def test_nothing_is_left_that_nobody_uses() -> None:
    """By name: a function, class or constant of the package or of the tests' support whose name stands nowhere else."""
    texts = [path.read_text("utf-8") for folder in ("exporter", "tests", "deploy", "docs", "dashboards")
             for path in (ROOT / folder).rglob("*.*") if path.suffix in {".py", ".html"}]  # fmt: skip
    words = Counter(re.findall(r"\w+", "\n".join(texts)))
    unused = []
    for file in (*PACKAGE.rglob("*.py"), *(ROOT / "tests/support").rglob("*.py"), *(ROOT / "docs").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)], col_offset=0):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name), col_offset=0):
                    pass
                case _:
                    continue
            if words[name] == 1 and not CALLED_BY_OTHERS.match(name):
                unused.append(f"{file.relative_to(ROOT)}:{node.lineno} {name}")
    assert unused == []


def test_tests_run_the_built_wheel() -> None:
    """Not the source tree, which has no BPF program; Python would also write its caches there, and the next ``make``
    would install again."""
    root = re.compile(r"""PYTHONPATH"?: str\(ROOT / "exporter"|PYTHONPATH=exporter""")
    files = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)}
    assert not [str(path.relative_to(ROOT)) for path, text in files.items() if root.search(text)]


ONCE = {
    "daemon.alive": r"""rpartition\("\)"\)\[2\]\.split\(\)\[0\]""",
    "paces.seconds": r"""r"\(\\d\+\)\((ms\|)?\[smhdw?\]""",
    "promtool.run_tests": r""""test", "rules\"""",
}
"""What one function of the tests' support does → a part of each copy. There were five or more of each, and some lacked
what another had: an error that a process can end with, a unit, a setting."""


@pytest.mark.parametrize("name", ONCE)
def test_the_tests_do_it_in_one_place(name: str) -> None:
    files = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)}
    found = [str(path.relative_to(ROOT)) for path, text in files.items() if re.search(ONCE[name], text)]
    assert found == [f"tests/support/{name.partition('.')[0]}.py"]


def test_names_say_what_they_hold() -> None:
    files = [*PACKAGE.rglob("*.py")]
    assert len(files) > 300
    assert [name for file in files for name in banned_names(file)] == []
