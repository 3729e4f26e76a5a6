"""What bash and zsh complete: all that the parser takes, and bash is asked itself."""

from __future__ import annotations

import argparse
import subprocess

import pytest
from deploy.packages.completions import FILES, FOLDER, completions, parsers

from plumbline.cli import _parser
from support.programs import need


def ask_bash(*words: str) -> list[str]:
    script = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '"$(complete -p plumbline | sed "s/.*-F \\([^ ]*\\) .*/\\1/")" plumbline "${COMP_WORDS[COMP_CWORD]}"; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    argv = [need("bash"), "-c", script, "bash", str(FOLDER / FILES["bash"]), "plumbline", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout.split()


def test_the_committed_files_are_what_the_parser_renders_to() -> None:
    assert {name: (FOLDER / name).read_text("utf-8") for name in FILES.values()} == completions()


@pytest.mark.parametrize("shell", FILES)
def test_every_command_and_long_flag_is_in_them(shell: str) -> None:
    text = (FOLDER / FILES[shell]).read_text("utf-8")
    names: set[str] = set()
    for parser in parsers(_parser()):
        for action in parser._actions:
            names |= {flag for flag in action.option_strings if flag.startswith("--")}
            if isinstance(action, argparse._SubParsersAction):
                names |= set(action.choices)
    assert {"maintenance", "what-if", "--why", "--collector.disk"} <= names
    assert [name for name in sorted(names) if name not in text] == []


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["ma"], ["maintenance"]),
        (["maintenance", ""], ["start", "end", "list"]),
        (["maintenance", "start", "--wh"], ["--why"]),
        (["serve", "--collector.dis"], None),
    ],
)
def test_bash_completes(words: list[str], answer: list[str] | None) -> None:
    found = ask_bash(*words)
    if answer is None:
        assert "--collector.disk" in found
    else:
        assert found == answer
