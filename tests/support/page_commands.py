"""A page's commands and tables, as its reader has them: tests run these, so that page and test can't differ."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from .runbooks import code_blocks

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a Markdown file."""

    text: str

    @classmethod
    def of(cls, path: str) -> Page:
        """Of a file, as the repository's top names it."""
        return cls((ROOT / path).read_text("utf-8"))

    def below(self, heading: str) -> Page:
        """What stands below a heading of the second or third level, to the next of the same."""
        found = re.search(rf"^(##+) {re.escape(heading)}\n(.*?)(?=^\1 |\Z)", self.text, re.MULTILINE | re.DOTALL)
        assert found, heading
        return Page(found[2])

    def scripts(self) -> list[str]:
        """Every fenced script, without remarks at the ends of its lines."""
        return [re.sub(r"(?m)(^|\s)# .*$", "", block) for block in code_blocks(self.text)]

    def script(self, words: str = "") -> str:
        """The one script that has ``words`` in it."""
        (found,) = (each for each in self.scripts() if words in each)
        return found

    def commands(self, words: str) -> list[list[str]]:
        """The commands that begin with ``words``, in order."""
        lines = [line for each in self.scripts() for line in each.replace("\\\n", " ").splitlines()]
        return [shlex.split(line) for line in lines if line.startswith(words)]

    def row(self, first: str) -> str:
        """The second column of the row of a table whose first column this is."""
        (found,) = re.findall(rf"^\| {re.escape(first)} \| (.*) \|$", self.text, re.MULTILINE)
        return str(found)

    def written(self) -> str:
        """The Python program that the page gives to an interpreter, and whose output is a file."""
        (found,) = re.findall(r"<<'END' > \S+\n(.*?)\nEND$", self.text, re.MULTILINE | re.DOTALL)
        return str(found)


def flags(column: str) -> list[str]:
    """The words of all flags in a column: ``--user=0 --cap-add=bpf`` between backquotes."""
    return [flag for words in re.findall(r"`(-[^`]*)`", column) for flag in shlex.split(words)]
