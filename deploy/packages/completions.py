"""What bash and zsh complete of ``plumbline``: rendered from its parser by shtab and committed, so that neither the
command nor the build of a package needs shtab.

Usage: python -m deploy.packages.completions [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import shtab
from deploy.packages.project import NAME, ROOT

from plumbline.cli import _parser
from plumbline.commands.shared import Parser

FOLDER = ROOT / "exporter" / "plumbline" / "completions"
FILES = {"bash": f"{NAME}.bash", "zsh": f"_{NAME}"}


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """``parser`` and those of all its commands and actions, with the flags that they add only when they are called."""
    if isinstance(parser, Parser):
        parser.before_parsing(parser)
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def completions() -> dict[str, str]:
    """File name → text."""
    parser = _parser()
    list(parsers(parser))
    return {name: shtab.complete(parser, shell) for shell, name in FILES.items()}


def main(argv: list[str]) -> int:
    """Exit status: 0 written or fresh, 1 stale."""
    stale = False
    for name, text in completions().items():
        path = FOLDER / name
        if path.exists() and path.read_text("utf-8") == text:
            continue
        if argv == ["--check"]:
            print(f"{path.relative_to(ROOT)}: stale; run `make render` and commit the result", file=sys.stderr)
            stale = True
        else:
            path.write_text(text, "utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
