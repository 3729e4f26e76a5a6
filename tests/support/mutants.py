"""Small mistakes in a rule, one at a time: what the tests of the rules have to notice.

Comparisons turned round or let in what is equal, numbers moved, operands of `and`, `unless` and `or` dropped, `for`
left out or doubled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .rulefiles import Rule, name_of

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<duration>\d+(?:ms|[smhdwy])\b)
      | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<word>[a-zA-Z_:][\w:]*)
      | (?P<operator>==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}\[\],:@])""",
    re.VERBOSE,
)
_TURNED = {">": "<", "<": ">", ">=": "<", "<=": ">", "==": "!=", "!=": "=="}
_LET_IN = {">": ">=", "<": "<="}
_SETS = ("and", "unless", "or")
SMALL = 5
"""Whole numbers up to here count things: they move by one, others by half."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression: its kind, its text, and how deep in parentheses it stands."""

    kind: str
    text: str
    start: int
    depth: int
    inside: str
    """``{`` or ``[`` where it stands in a selector or a window, else empty."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake in one rule. ``change`` names it the same way as long as that place isn't edited."""

    name: str
    which: int
    """Rules of one name are numbered in their order."""
    kind: str
    change: str
    rule: Rule

    @property
    def label(self) -> str:
        """``PlumblineDiskHot[0] for: 15m -> 0m``: how the list of equivalent ones names it."""
        return f"{self.name}[{self.which}] {self.change}"


def tokens(expr: str) -> list[Token]:
    """Every token but white space. Raise ``ValueError`` for what PromQL hasn't."""
    found, at, depth, inside = [], 0, 0, ""
    while at < len(expr):
        match = _TOKEN.match(expr, at)
        if not match or match.lastgroup is None:
            raise ValueError(f"no PromQL at {expr[at : at + 20]!r}")
        text = match.group()
        depth -= text == ")"
        if text in "{[" or (text in "}]" and inside):
            inside = text if text in "{[" else ""
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, text, at, depth, inside))
        depth += text == "("
        at = match.end()
    return found


def mutants_of(rule: Rule, which: int) -> Iterator[Mutant]:
    """Every mistake we make in one rule."""

    def mutant(kind: str, change: str, **fields: str | None) -> Mutant:
        changed = {key: value for key, value in {**rule, **fields}.items() if value is not None}
        return Mutant(name_of(rule), which, kind, change, changed)

    expr: str = rule["expr"]
    for kind, start, end, new in _edits(tokens(expr)):
        changed = expr[:start] + new + expr[end:]
        if changed.strip():
            yield mutant(kind, _told(expr, start, end, new), expr=changed)
    if "for" in rule:
        seconds = int(rule["for"][:-1]) * _UNITS[rule["for"][-1]]
        yield mutant("for", f"for: {rule['for']} -> 0m", **{"for": None})
        yield mutant("for", f"for: {rule['for']} -> {2 * seconds}s", **{"for": f"{2 * seconds}s"})
    if "keep_firing_for" in rule:
        yield mutant("for", "no keep_firing_for", keep_firing_for=None)


def _told(expr: str, start: int, end: int, new: str) -> str:
    """An edit in words: what stood there, with as much before it as says where."""
    old = " ".join(expr[start:end].split())
    before = " ".join(expr[:start].split())[-40:]
    after = " ".join(expr[end:].split())[:20]
    return f"...{before} «{old} -> {new.strip() or 'nothing'}» {after}"


def _edits(found: list[Token]) -> Iterator[tuple[str, int, int, str]]:
    """(kind, start, end, new text)."""
    for index, token in enumerate(found):
        end = token.start + len(token.text)
        if token.inside:
            continue
        if token.text in _TURNED:
            yield "comparison", token.start, end, _TURNED[token.text]
            # where a number can be moved, that says more; none or as many as the other side has is a border of its own
            if token.text in _LET_IN and found[index + 1].text in {"0", "on"}:
                yield "border", token.start, end, _LET_IN[token.text]
        elif token.kind == "number":
            for number in _moved(token.text):
                yield "threshold", token.start, end, number
        elif token.text in _SETS and token.kind == "word":
            last = _end(found, index)
            yield "operand", token.start, last, ""
            first = _begin(found, index)
            if first is not None and token.text != "unless":
                yield "operand", first, found[_operand(found, index)].start, ""


def _moved(text: str) -> list[str]:
    value = float(text)
    if value == 0:
        return ["1"]
    if value == int(value) and value <= SMALL:
        return [f"{value - 1:g}", f"{value + 1:g}"]
    return [f"{value / 2:.10g}", f"{value * 1.5:.10g}"]


def _binds(text: str) -> int:
    return 0 if text == "or" else 1


def _end(found: list[Token], index: int) -> int:
    """Where the right operand of the set operator ends."""
    operator = found[index]
    for token in found[index + 1 :]:
        if token.inside:
            continue
        closes = token.depth < operator.depth or (token.depth == operator.depth and token.text == ",")
        joins = token.depth == operator.depth and token.text in _SETS and _binds(token.text) <= _binds(operator.text)
        if closes or joins:
            return token.start
    return found[-1].start + len(found[-1].text)


def _begin(found: list[Token], index: int) -> int | None:
    """Where the left operand starts; ``None`` where it is a chain itself, whose links are dropped one by one."""
    operator, start = found[index], 0
    for before in range(index - 1, -1, -1):
        token = found[before]
        if token.inside:
            continue
        if token.depth < operator.depth:
            start = before + 1
            break
        if token.depth == operator.depth and (token.text in _SETS or token.text == ","):
            if token.text in _SETS and _binds(token.text) >= _binds(operator.text):
                return None
            start = _operand(found, before) if token.text in _SETS else before + 1
            break
    return found[start].start


def _operand(found: list[Token], index: int) -> int:
    """The index of the right operand's first token, past ``on (…)``."""
    at = index + 1
    while found[at].text in {"on", "group_left", "group_right"}:
        at += 2
        while found[at].depth > found[index].depth or found[at].text != ")":
            at += 1
        at += 1
    return at
