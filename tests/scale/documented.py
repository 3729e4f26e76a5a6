"""What docs/scale.md says, so that it is what runs: its commands and its configurations, by their first words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page in this language, in order."""
    return [text for of, text in _BLOCK.findall(PAGE.read_text("utf-8")) if of == language]


def command(words: str) -> list[str]:
    """The one command of the page that begins with ``words``, split as a shell would."""
    found = [
        shlex.split(line)
        for block in blocks("sh")
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith(words)
    ]
    assert len(found) == 1, f"{PAGE.name} has {len(found)} commands that begin with {words!r}"
    return found[0]


def with_flags(argv: Sequence[str], here: Mapping[str, Sequence[str]]) -> list[str]:
    """The command with other values for some of its flags (``--flag=value``); each must be one it has."""
    given = {argument.partition("=")[0] for argument in argv}
    assert given >= here.keys(), f"{' '.join(argv[:2])} in {PAGE.name} lacks {sorted(here.keys() - given)}"
    kept = [argument for argument in argv if argument.partition("=")[0] not in here]
    return [*kept, *(f"{flag}={value}" for flag, values in here.items() for value in values)]


def configuration(first_line: str) -> dict[str, Any]:
    """The one YAML block of the page that begins with the comment ``# first_line``, loaded."""
    found = [block for block in blocks("yaml") if block.startswith(f"# {first_line}")]
    assert len(found) == 1, f"{PAGE.name} has {len(found)} configurations called {first_line!r}"
    loaded: dict[str, Any] = yaml.safe_load(found[0])
    return loaded
