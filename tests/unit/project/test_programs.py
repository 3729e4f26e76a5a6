"""Every program that tests, demo or scripts ask for is brought by a listed Debian package or is in the base system."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from requirements.programs import listed

from support.programs import SYSTEM, Started, known

ROOT = Path(__file__).parents[3]
ASKING = {"which", "need", "program"}
RUNNING = {"run", "_run", "call", "start"}
"""Helpers of ours, which also run what is no program: a subcommand."""
ELSEWHERE = (
    "packages/", "newcomer/", "lab/", "deploy/test_ansible.py", "support/debian_host.py", "support/newcomer.py",
)  # fmt: skip
"""What these start runs on a host of its own."""
PATH = re.compile(r"/(?:usr/)?s?bin/([\w.+-]+)")


def sources() -> Iterator[tuple[str, str]]:
    for folder in ("tests", "deploy/demo"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not str(path.relative_to(ROOT / "tests") if folder == "tests" else path).startswith(ELSEWHERE):
                yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def asked(source: str) -> Iterator[tuple[str, bool]]:
    """Programs that Python code names, and whether it surely asks for them; else it may be just a word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield from _asked_by(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (path := PATH.fullmatch(node.value)):
            yield path[1], False


def _asked_by(call: ast.Call) -> Iterator[tuple[str, bool]]:
    *owner, name = ast.unparse(call.func).split(".")
    first = call.args[:1]
    if name in ASKING and owner != ["self"]:
        yield from ((word, True) for word in _texts(first))
    elif owner == ["subprocess"] and first and isinstance(first[0], ast.List | ast.Tuple):
        words = first[0].elts
        yield from ((word, True) for word in _texts(words[:1]))
        yield from ((word, False) for word in _texts(words[1:]))  # behind timeout, ip netns exec …
    elif name == "map" and ast.unparse(call.args[0]) in {"shutil.which", "need"}:
        yield from ((word, True) for each in call.args[1:] for word in _texts(getattr(each, "elts", [])))
    elif name in RUNNING:
        yield from ((word, False) for word in _texts(getattr(first[0], "elts", first[:1]) if first else []))


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            yield node.value


def lacking(source: str, names: frozenset[str]) -> set[str]:
    """What no list brings: asked for, or named and a program of this machine."""
    return {
        word
        for word, surely in asked(source)
        if word not in names and not word.startswith(("/", "no-such-")) and (surely or _installed(word))
    }


def _installed(word: str) -> bool:
    found = re.fullmatch(r"[a-z][\w.+-]+", word) and shutil.which(word)
    return bool(found) and Path(found).parent in SYSTEM


@pytest.fixture(scope="module")
def names() -> frozenset[str]:
    found = known()
    if found is None:
        pytest.skip("not a Debian: what its base system has is not known")
    return found


def test_every_program_that_is_asked_for_is_listed(names: frozenset[str]) -> None:
    lacked = {path: words for path, source in sources() if (words := lacking(source, names))}

    assert not lacked


@pytest.mark.parametrize(
    "source",
    [
        'shutil.which("unheard-of")',
        'need("unheard-of")',
        'program("unheard-of", "package")',
        'subprocess.run(["unheard-of", "-f"], check=True)',
        'all(map(shutil.which, ("fio", "unheard-of")))',
    ],
)
def test_a_program_of_no_list_is_found(source: str, names: frozenset[str]) -> None:
    assert lacking(source, names) == {"unheard-of"}


@pytest.mark.parametrize(
    "source", ['run("bash")', 'subprocess.run(["timeout", "4", "bash"])', 'Path("/usr/bin/bash").exists()']
)
def test_a_program_behind_another_is_found_where_it_is_installed(source: str, names: frozenset[str]) -> None:
    assert lacking(source, names - {"bash"}) == {"bash"}


@pytest.mark.parametrize("script", ["Makefile", ".ci/run", "requirements/need-debian", "requirements/make-venv"])
def test_scripts_look_only_for_what_is_listed(script: str, names: frozenset[str]) -> None:
    looked_for = set(re.findall(r"command -v ([a-z][\w-]*)", (ROOT / script).read_text("utf-8")))

    assert looked_for <= names


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("fio", {}),
        ("fio  # the periodic probe", {}),
        ("mount  # programs: mount umount", {"mount": "mount", "umount": "mount"}),
        ("iperf3  # programs: iperf3; its server", {"iperf3": "iperf3"}),
        ("# programs: none", {}),
    ],
)
def test_a_line_of_a_list(line: str, programs: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "debian-test.txt").write_text(f"{line}\n")

    assert listed(tmp_path) == programs


def test_a_line_of_two_packages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "debian-test.txt").write_text("fio iperf3\n")

    with pytest.raises(ValueError, match=r"debian-test.txt:1: expected `package"):
        listed(tmp_path)


def test_the_audit_hook_notes_system_programs_however_they_are_started() -> None:
    started = Started()
    for event, arguments in (
        ("subprocess.Popen", ("true", ["true"], None, None)),
        ("subprocess.Popen", ("sleep", ["sleep"], None, {"PATH": "/nowhere"})),
        ("os.exec", (b"/bin/ls", [], {})),
        ("os.posix_spawn", ("/bin/cat", [], os.environ)),
        ("open", ("/bin/dd", "r", 0)),
    ):
        started(event, arguments)

    assert started.strange({"cat"}) == {"true", "ls"}
    assert not started.strange(set())


def test_a_program_that_a_test_starts_is_seen(started_programs: tuple[Started, frozenset[str]]) -> None:
    started, _ = started_programs
    subprocess.run(["true"], check=True)

    assert "true" in started.names
