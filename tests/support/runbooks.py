"""The runbooks as their reader has them: what they share in place, their scripts, the commands in these."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from .rules import ROOT

RUNBOOKS = ROOT / "alerts" / "runbooks"
PAGES = sorted(RUNBOOKS.glob("Plumbline*.md"))
SETUP = RUNBOOKS / "setup.md"
_ENDS = {"|", "||", "&", "&&", ";", ";;", "(", ")", "|&", "do", "then", "else"}
"""After these a new command begins."""
_BEFORE = re.compile(r"sudo|exec|time|env|[A-Za-z_]\w*=.*")
"""Words that may stand before a command."""
_ASSIGNED = re.compile(r"^([A-Z_]+)=(\S+)", re.MULTILINE)
_OURS = re.compile(r"\$PLUMBLINE(_AS_DAEMON)?(?= )")


def whole(path: Path, *, setup: bool = True) -> str:
    """A page's text with what it shares with others in place, headings of that left out."""

    def shared(found: re.Match[str]) -> str:
        if found[1] == SETUP.name and not setup:
            return ""
        return re.sub(r"\A# .*\n", "", whole(RUNBOOKS / found[1]))

    return re.sub(r"^\[[^\]]+\]\(([a-z-]+\.md)\)$", shared, path.read_text("utf-8"), flags=re.MULTILINE)


def code_blocks(text: str) -> list[str]:
    """Every script."""
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """What stands below a heading, to the next."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def script_of(block: str) -> str:
    """Without comments, which may hold quotes that open nothing; as where ``plumbline`` is in the path."""
    return _OURS.sub("plumbline", re.sub(r"(?m)(^|\s)#.*$", "", block)).replace(" $PLUMBLINE_FLAGS", "")


def commands(script: str) -> Iterator[list[str]]:
    """Every simple command of a script as its words, those that ssh runs elsewhere included."""
    lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars="|&;()")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in _ENDS and set(word) - set("|&;()"):
            words += [] if not words and _BEFORE.fullmatch(word) else [word]
            continue
        if words[:1] == ["ssh"] and len(words) > 2:
            yield from commands(words[2] if len(words) == 3 else shlex.join(words[2:]))
        if words:
            yield words
        words = []


def variables(text: str) -> dict[str, str]:
    """``DEVICE=ens2f0`` at the beginning of a line."""
    return {name: value.strip("'\"") for block in code_blocks(text) for name, value in _ASSIGNED.findall(block)}


def lines(heading: str) -> dict[str, dict[str, str]]:
    """Every line of the scripts below ``heading`` of all pages that runs something → the variables set before it, as
    the first page that has it sets them. What pages share stands below ``Diagnosis``."""
    found: dict[str, dict[str, str]] = {}
    for path in PAGES:
        known: dict[str, str] = {}
        for block in code_blocks(whole(path, setup=False)):
            below = block in code_blocks(section(whole(path, setup=False), heading))
            for line in re.sub(r"(?m)(^|\s)# .*$", "", block.replace("\\\n", " ")).splitlines():
                if assigned := re.fullmatch(r"([A-Z]+)=(\S+|\".*\"|\$\(.*\))", line.strip()):
                    known[assigned[1]] = assigned[2]
                elif line.strip() and below:
                    found.setdefault(line.strip(), dict(known))
    return found


def programs(line: str) -> set[str]:
    """What a line needs on this machine or on the node."""
    found = [words for words in commands(_OURS.sub("plumbline", line)) if re.fullmatch(r"[a-z][\w-]*", words[0])]
    return {words[2] if words[0] == "timeout" else words[0] for words in found}
