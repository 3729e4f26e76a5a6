"""PromQL as a tree, as far as rules and dashboards write it: to ask which metrics, labels and windows a query names.

Grafana's variables stand where a window or a number may (``[$__rate_interval]``); inside texts they are text.
Whether a query is right PromQL is Prometheus' to say (promtool does, in the tests); what this parser doesn't know is a
``ValueError``, so that nothing is looked past.
https://prometheus.io/docs/prometheus/latest/querying/basics/ and …/operators/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
      | (?P<duration>(?:\d+(?:ms|[smhdwy]))+(?!\w))
      | (?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf|nan)\b(?!\s*\())
      | (?P<variable>\$\w+|\$\{\w+(?::\w+)?\})
      | (?P<word>[a-zA-Z_:][\w:]*)
      | (?P<operator>==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}\[\],:@])""",
    re.VERBOSE,
)
AGGREGATIONS = frozenset(
    {"sum", "avg", "count", "min", "max", "group", "stddev", "stdvar", "topk", "bottomk", "count_values", "quantile",
     "limitk", "limit_ratio"}
)  # fmt: skip
COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})
SETS = frozenset({"and", "or", "unless"})
_NO_LABELS: tuple[str, ...] = ()
_BINDS = (
    {"or": 1, "and": 2, "unless": 2}
    | dict.fromkeys(COMPARISONS, 3)
    | {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "atan2": 5, "^": 6}
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query: its kind (a group of the grammar above), its text, and where it starts."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Matcher:
    """``label op "value"``; the value without its quotes. Regular expressions are anchored at both ends."""

    label: str
    op: str
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a series or an alert with these labels matches; a label that it lacks is empty."""
        value = labels.get(self.label, "")
        hit = re.fullmatch(self.value, value) is not None if "~" in self.op else value == self.value
        return hit is not self.op.startswith("!")


@dataclass(frozen=True, slots=True)
class Selector:
    """``metric{matchers}[window]``; ``metric`` is empty where only matchers stand, ``window`` where it is instant."""

    metric: str
    matchers: tuple[Matcher, ...]
    window: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """``function(arguments)``."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``operator by (labels) (parameter, argument)``; ``by`` or ``without`` is ``None`` where it isn't written."""

    operator: str
    argument: Node
    parameter: Node | None
    by: tuple[str, ...] | None
    without: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Binary:
    """``left operator on|ignoring (labels) group_left|group_right (include) right``."""

    operator: str
    left: Node
    right: Node
    on: tuple[str, ...] | None = None
    ignoring: tuple[str, ...] | None = None
    group: str = ""
    """``left`` or ``right``: the side with many, empty where one meets one."""
    include: tuple[str, ...] = ()
    as_number: bool = False
    """``bool``: 0 or 1 instead of a filter."""


@dataclass(frozen=True, slots=True)
class Subquery:
    """``(argument)[window]``: the window with its step."""

    argument: Node
    window: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text (without quotes) or a variable."""

    kind: str
    text: str


Node: TypeAlias = Selector | Call | Aggregate | Binary | Subquery | Literal


@cache
def parse(query: str) -> Node:
    """The tree of a whole query. Raise ``ValueError`` that says where it isn't understood."""
    parser = _Parser(query, _tokens(query))
    found = parser.expression(0)
    if parser.at < len(parser.tokens):
        raise parser.lost("the end")
    return found


def children(node: Node) -> tuple[Node, ...]:
    """What stands directly inside."""
    match node:
        case Call():
            return node.arguments
        case Aggregate():
            return (node.argument,) if node.parameter is None else (node.parameter, node.argument)
        case Binary():
            return (node.left, node.right)
        case Subquery():
            return (node.argument,)
        case _:
            return ()


def walk(node: Node, above: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Every node with those it stands in, the outermost first."""
    yield node, above
    for child in children(node):
        yield from walk(child, (*above, node))


def selectors(node: Node) -> Iterator[Selector]:
    """Every selector of a query."""
    for each, _ in walk(node):
        if isinstance(each, Selector):
            yield each


def _tokens(query: str) -> list[Token]:
    found, at = [], 0
    while at < len(query):
        match = _TOKEN.match(query, at)
        if not match or match.lastgroup is None:
            raise ValueError(f"no PromQL at {query[at : at + 20]!r}")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match.group(), at))
        at = match.end()
    return found


class _Parser:
    """Precedence climbing over the tokens."""

    def __init__(self, query: str, tokens: list[Token]) -> None:
        self.query = query
        self.tokens = tokens
        self.at = 0

    def expression(self, least: int) -> Node:
        left = self.unary()
        while (operator := self.peek()) in _BINDS and _BINDS[operator] >= least and self.kind() != "string":
            self.at += 1
            as_number = self.took("bool")
            on = self.labels() if self.took("on") else None
            ignoring = self.labels() if on is None and self.took("ignoring") else None
            group, include = "", _NO_LABELS
            for side in ("left", "right"):
                if self.took(f"group_{side}"):
                    group, include = side, self.labels() if self.peek() == "(" else ()
            # the power binds to the right
            right = self.expression(_BINDS[operator] + (operator != "^"))
            left = Binary(operator, left, right, on, ignoring, group, include, as_number)
        return left

    def unary(self) -> Node:
        if self.peek() in {"-", "+"} and self.kind() == "operator":
            self.at += 1
            return self.expression(_BINDS["*"] + 1)
        return self.ended(self.primary())

    def primary(self) -> Node:
        if self.at >= len(self.tokens):
            raise self.lost("an expression")
        token = self.tokens[self.at]
        if token.text == "(" and token.kind == "operator":
            self.at += 1
            inside = self.expression(0)
            self.need(")")
            return inside
        if token.kind in {"number", "duration", "variable"}:
            self.at += 1
            return Literal(token.kind, token.text)
        if token.kind == "string":
            self.at += 1
            return Literal("string", token.text[1:-1])
        if token.text == "{":
            return Selector("", self.matchers())
        if token.kind != "word":
            raise self.lost("an expression")
        self.at += 1
        if token.text in AGGREGATIONS and self.peek() in {"(", "by", "without"}:
            return self.aggregate(token.text)
        if self.peek() == "(":
            return Call(token.text, self.arguments())
        return Selector(token.text, self.matchers() if self.peek() == "{" else ())

    def aggregate(self, operator: str) -> Aggregate:
        by = without = None
        for _ in range(2):  # before or after the argument
            if self.took("by"):
                by = self.labels()
            elif self.took("without"):
                without = self.labels()
            if _ == 0:
                arguments = self.arguments()
        if not 1 <= len(arguments) <= 2:
            raise self.lost(f"one or two arguments of {operator}")
        return Aggregate(operator, arguments[-1], arguments[0] if len(arguments) > 1 else None, by, without)

    def ended(self, node: Node) -> Node:
        """With its window, offset and @."""
        while (text := self.peek()) in {"[", "offset", "@"}:
            self.at += 1
            if text == "[":
                window = ""
                while self.peek() not in {"]", ""}:
                    window += self.tokens[self.at].text
                    self.at += 1
                self.need("]")
                plain = isinstance(node, Selector) and not node.window and ":" not in window
                node = Selector(node.metric, node.matchers, window) if plain else Subquery(node, window)  # type: ignore[union-attr]
            else:
                self.took("-")
                self.at += 1
                if self.peek() == "(":  # @ start()
                    self.arguments()
        return node

    def arguments(self) -> tuple[Node, ...]:
        self.need("(")
        found: list[Node] = []
        while self.peek() != ")":
            found.append(self.expression(0))
            if not self.took(","):
                break
        self.need(")")
        return tuple(found)

    def labels(self) -> tuple[str, ...]:
        self.need("(")
        found = []
        while self.peek() != ")":
            if self.kind() != "word":
                raise self.lost("a label")
            found.append(self.tokens[self.at].text)
            self.at += 1
            if not self.took(","):
                break
        self.need(")")
        return tuple(found)

    def matchers(self) -> tuple[Matcher, ...]:
        self.need("{")
        found = []
        while self.peek() != "}":
            three = [token.text for token in self.tokens[self.at : self.at + 3]]
            if len(three) < 3 or self.kind() != "word" or three[1] not in {"=", "!=", "=~", "!~"}:
                raise self.lost("a matcher")
            found.append(Matcher(three[0], three[1], three[2][1:-1]))
            self.at += 3
            if not self.took(","):
                break
        self.need("}")
        return tuple(found)

    def peek(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def took(self, text: str) -> bool:
        here = self.peek() == text and self.kind() != "string"
        self.at += here
        return here

    def need(self, text: str) -> None:
        if not self.took(text):
            raise self.lost(repr(text))

    def lost(self, wanted: str) -> ValueError:
        start = self.tokens[self.at].start if self.at < len(self.tokens) else len(self.query)
        return ValueError(f"{wanted} expected at {start}: …{self.query[max(0, start - 30) : start + 30]!r}")
