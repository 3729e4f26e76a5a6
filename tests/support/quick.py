"""``make quick``: format, lint, the import contracts and the tests of what changed since the branch left main.

What changed: ``git diff`` against the merge base with main, and files that git does not know yet. Which tests: those of
``TESTS``, and those that name a changed module. What takes long (real disks, clusters, browsers, all rules) is left to
make test.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAIN = "main"
HOUSE = "tests/unit/project/test_house.py"
PAGES = (
    "tests/unit/project/test_links.py",
    "tests/unit/project/test_docs.py",
    "tests/unit/project/test_names_in_docs.py",
)
RULES = tuple(
    f"tests/rules/test_{name}.py"
    for name in (
        "alert_reference", "ceph_mixin", "ceph_schema", "ceph_units", "coverage", "floors", "page_limits", "paces",
        "runbooks", "scrapes", "spans", "texts",
    )
)  # fmt: skip
"""What holds every rule and takes a second."""
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"exporter/plumbline/config/", ("tests/unit/project/test_docs.py",)),
    (r"alerts/runbooks/", ("tests/rules/test_runbooks.py", "tests/rules/test_texts.py", "tests/unit/pages")),
    (r"alerts/", RULES),
    (r"dashboards/", ("tests/dashboards/test_dashboards.py", "tests/dashboards/test_navigation.py")),
    (r"requirements/|Makefile$", ("tests/unit/project/test_audit.py", "tests/unit/project/test_programs.py")),
    (r".*\.md$", PAGES),
    (r"docs/", PAGES),
)
"""What a changed path begins with → tests that hold it, beside those of its room."""
QUICK = ("tests/unit/", "tests/golden/", "tests/fuzz/", "tests/dashboards/", "tests/deploy/", "tests/rules/")
"""Where tests of a changed module or of a changed helper are looked for."""


def changed(root: Path = ROOT) -> list[str]:
    """Paths that differ from the merge base with main and are still there."""
    base = _git(root, "merge-base", "HEAD", MAIN) or ["HEAD"]
    paths = {*_git(root, "diff", "--name-only", base[0]), *_git(root, "ls-files", "--others", "--exclude-standard")}
    return sorted(path for path in paths if (root / path).is_file())


def _git(root: Path, *words: str) -> list[str]:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False).stdout.split()


def which(paths: Iterable[str], root: Path = ROOT) -> list[str]:
    """Test files, folders and ids for these paths, for pytest."""
    wanted: set[str] = set()
    for path in paths:
        wanted.update(test for begin, tests in TESTS if re.match(begin, path) for test in tests)
        wanted.update(_own(path, root))
    if RULES[0] in wanted:
        wanted.update(_of_all_rules(root))
    return sorted(test for test in wanted if not any(test.startswith(f"{folder}/") for folder in wanted))


def _of_all_rules(root: Path) -> Iterator[str]:
    """The tests beside promtool's, which evaluate for minutes."""
    file = "tests/rules/test_rules.py"
    for name in re.findall(r"^def (test_\w+)", (root / file).read_text("utf-8"), re.MULTILINE):
        if name != "test_promtool_unit_tests":
            yield f"{file}::{name}"


def _own(path: str, root: Path) -> Iterator[str]:
    """The tests of one file: itself, those that name its module, or those of its room."""
    name = Path(path)
    if path.startswith("tests/rules/") and name.suffix == ".yaml" and len(name.parts) == 3:
        yield f"tests/rules/test_rules.py::test_promtool_unit_tests[{name.stem}]"
    elif re.match(r"alerts/(alerts|rules)/\w+\.libsonnet$", path):
        for file in sorted((root / "tests" / "rules").glob(f"{name.stem}*.yaml")):
            yield f"tests/rules/test_rules.py::test_promtool_unit_tests[{file.stem}]"
    elif re.match(r"test_\w+\.py$", name.name):
        yield path
    elif name.suffix == ".py" and path.startswith(("exporter/plumbline/", "tests/support/", "deploy/", "dashboards/")):
        yield from (HOUSE,) if path.startswith("exporter/") else ()
        yield from _naming(name, root) or _room(name, root)


def _naming(path: Path, root: Path) -> list[str]:
    """Test files that import the module by its name, wherever they stand."""
    below = path.relative_to("exporter") if path.parts[0] == "exporter" else path
    below = below.relative_to("tests") if below.parts[0] == "tests" else below
    package, module = ".".join(below.parent.parts), below.stem
    if module in {"__init__", "__main__"}:
        return []
    imports = re.compile(
        rf"^ *(?:from {re.escape(package)}\.{module}\b|import {re.escape(package)}\.{module}\b"
        rf"|from {re.escape(package)} import (?:\([^)]*|[^(\n]*)\b{module}\b)",
        re.MULTILINE,
    )
    files = (file for folder in QUICK for file in sorted((root / folder).rglob("test_*.py")))
    return [file.relative_to(root).as_posix() for file in files if imports.search(file.read_text("utf-8"))]


def _room(path: Path, root: Path) -> list[str]:
    """The nearest folder of tests/unit that mirrors the file's."""
    for folder in path.parents:
        if folder.parts[:2] == ("exporter", "plumbline") and len(folder.parts) > 2:
            mirror = Path("tests", "unit", *folder.parts[2:])
            if (root / mirror).is_dir():
                return [mirror.as_posix()]
    return []


def commands(paths: list[str]) -> Iterator[list[str]]:
    """What to run, in order; the cheapest first."""
    python = [path for path in paths if path.endswith(".py")]
    programs = Path(sys.executable).parent
    if python:
        yield [f"{programs}/ruff", "format", "--quiet", "--force-exclude", *python]
        yield [f"{programs}/ruff", "check", "--quiet", "--fix", "--force-exclude", *python]
    if paths:
        yield [f"{programs}/codespell", *paths]
    if any(path.startswith("exporter/") for path in python):
        yield [f"{programs}/lint-imports", "--no-logo"]
    if python:
        yield [f"{programs}/mypy", "--no-error-summary"]
    if any(path.startswith(("alerts/", "dashboards/")) for path in paths):
        yield [sys.executable, "render.py", "--check", "--only", "rules"]
    tests = which(paths)
    if tests:
        marks = "not ceph and not packages and not long and not needs_root"
        yield [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", marks, *tests]


def main() -> int:
    """The first failure's exit status; 0: all good."""
    paths = changed()
    if not paths:
        print(f"nothing differs from {MAIN}")
    for argv in commands(paths):
        print(f"{Path(argv[0]).name} {' '.join(argv[1:4])}{' …' if len(argv) > 4 else ''}", flush=True)
        status = subprocess.run(argv, cwd=ROOT, check=False).returncode
        if status not in ((0, 5) if "pytest" in argv else (0,)):  # 5: all tests were deselected
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
