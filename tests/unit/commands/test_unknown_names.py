"""A name that nothing has ends each command in the same way: one line that lists the names, and wrong usage."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import plumbline
from plumbline.cli import main

PACKAGE = Path(plumbline.__file__).parent
SAYS_SO = ("there are:", " knows no ", "not in the inventory", "has no figures here")
NO_NAME_GIVEN = {
    ("commands/reporting.py", "ConfigError"): "lists what could be named",
    ("config/options.py", "ConfigError"): "a key of the configuration",
}


@pytest.mark.parametrize(
    "arguments",
    [
        ("nix",),
        ("baseline", "nix"),
        ("disk", "nix"),
        ("nic", "nix"),
        ("baseline", "show", "nix"),
        ("baseline", "compare", "nix"),
        ("baseline", "record", "--probe", "nix"),
        ("probe", "run", "nix"),
    ],
    ids=" ".join,
)
def test_an_unknown_name_is_wrong_usage(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "plumbline.yaml"
    config.write_text("probes: [{type: canary, name: other}]\n", "utf-8")
    node = ("--config.file", str(config), "--storage.path", str(tmp_path / "state"))
    takes_node = arguments[0] != "nic" and len(arguments) > 1 and arguments != ("baseline", "nix")
    try:
        code = main([*arguments, *(node if takes_node else ())])
    except SystemExit as refused:  # argparse, of a command
        code = int(refused.code or 0)
    said = capsys.readouterr()
    assert code == 2, said.err
    assert "nix" in said.err
    assert said.err.count("\n") == 1


def raised(file: Path) -> list[tuple[str, str]]:
    """The type and the source of what a file raises because a name is unknown."""
    source = file.read_text("utf-8")
    return [
        (ast.unparse(node.exc.func), ast.unparse(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        if any(words in ast.unparse(node) for words in SAYS_SO)
    ]


def test_whatever_says_so_says_it_by_one_type() -> None:
    found = {(str(file.relative_to(PACKAGE)), kind) for file in PACKAGE.rglob("*.py") for kind, _ in raised(file)}
    assert ("commands/disk.py", "UnknownName") in found
    assert {each for each in found if each[1] != "UnknownName"} == set(NO_NAME_GIVEN)
