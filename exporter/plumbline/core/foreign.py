"""The only reader of JSON that somebody else wrote: a server, a node, a tool, a worker, a file.

Bytes, depth and number of values are bounded before any parser sees the text, because a parser that recurses ends in
:class:`RecursionError` and one that only reads needs memory for each value. Numbers are finite, integers have at most
64 bits, texts are UTF-8 without lone surrogates. Everything else raises a :class:`ParseError` of one line. (YAML has
its own reader with the same limits, :mod:`plumbline.config.yaml`.)

:func:`parse_json` needs the standard library alone: workers without site packages import this module.
"""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate

from plumbline.core.escape import excerpt
from plumbline.errors import ParseError

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeVar

    T = TypeVar("T")

_MOST_WORDS = 200
_MOST_DIGITS = 40
_LEAST_WHOLE, _MOST_WHOLE = -(2**63), 2**64 - 1

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_WHOLE_NUMBER = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}(?![0-9.eE])")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{},'))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class Limits:
    """What one document may have: bytes, levels, values (with the keys of objects counted as parts of their values)."""

    __slots__ = ("max_bytes", "max_depth", "max_values")

    def __init__(self, max_bytes: int = 8 << 20, max_depth: int = 50, max_values: int = 1_000_000) -> None:
        self.max_bytes, self.max_depth, self.max_values = max_bytes, max_depth, max_values


LIMITS = Limits()


class Passed(bytes):
    """A document within :data:`LIMITS`: whoever reads it again need not look again."""

    __slots__ = ()


def passed(data: bytes) -> bytes:
    """The same, as :class:`Passed` if it is within the limits; else as it is, so that each reader refuses it."""
    return data if excess(data) else Passed(data)


def excess(data: bytes, limits: Limits = LIMITS) -> str:
    """Why ``data`` must not reach a parser; empty if it may. Takes time in proportion to the bytes alone."""
    if len(data) > limits.max_bytes:
        return f"longer than {limits.max_bytes} bytes"
    plain = _ESCAPED.sub(b"", data) if b"\\" in data else data
    structure = _outside_texts(plain.translate(None, _NOT_STRUCTURE)).replace(b'"', b"")
    brackets = structure.translate(_STEPS, b",")
    if len(structure) - len(brackets) + len(brackets) // 2 >= limits.max_values:
        return f"more than {limits.max_values} values"
    if len(brackets) > limits.max_depth and max(accumulate(memoryview(brackets).cast("b"))) > limits.max_depth:
        return f"nested deeper than {limits.max_depth} levels"
    if _LONG_NUMBER.search(plain) and any(map(_is_too_large, _WHOLE_NUMBER.findall(_outside_texts(plain)))):
        return "an integer of more than 64 bits"
    return ""


def parse_json(data: bytes | str, *, source: str, limits: Limits = LIMITS, what: str = "not JSON") -> Any:
    """Plain data; :class:`ParseError` with ``source`` and ``what`` for anything else."""
    data = _checked(data, source, limits, what)
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise ParseError(source, f"{what}: not UTF-8 ({one_line(error)})") from None
    except (ValueError, RecursionError) as error:
        raise ParseError(source, f"{what}: {one_line(error)}") from None
    return value


def decode_json(
    data: bytes | str,
    kind: type[T],
    *,
    source: str,
    limits: Limits = LIMITS,
    what: str = "not the expected answer",
    strict: bool = True,
    hook: Any = None,
    line: int = 0,
) -> T:
    """The data as ``kind``, a struct or another type of :mod:`msgspec`; :class:`ParseError` for anything else.

    ``strict``: without it, numbers in quotes are numbers. ``hook``: makes a type of ours of a text, as msgspec's
    ``dec_hook``. ``line``: where the document begins in ``source``."""
    import msgspec  # noqa: PLC0415  (not for workers without site packages)

    from plumbline.core.jsontext import decoder  # noqa: PLC0415

    data = _checked(data, source, limits, what, line)
    try:
        return decoder(kind, strict=strict, hook=hook).decode(data)
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
        raise ParseError(source, f"{what}: {one_line(error)}", line=line) from None


class shaped:  # noqa: N801  (reads as a word: ``with shaped(…):``)
    """Turns what goes wrong in taking plain data of another form apart into a :class:`ParseError`. Not by contextlib,
    which workers don't load."""

    def __init__(self, source: str, what: str = "unexpected answer") -> None:
        self._source, self._what = source, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, LookupError | TypeError | ValueError | AttributeError | ArithmeticError | RecursionError):
            raise ParseError(self._source, f"{self._what}: {type(error).__name__}: {one_line(error)}") from None


def finite(text: str) -> float | None:
    """The number in a text; ``None`` if it is none, not finite, or too large to be calculated with."""
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    return value if abs(value) <= MOST else None


MOST = 1e30
"""The largest figure: bytes of a cluster are below 1e20, nanoseconds since 1970 below 1e19. Squares stay finite."""


def one_line(error: object) -> str:
    """A foreign text or an error about one, for a message: on one line, escaped and cut."""
    return excerpt(" ".join(str(error).split()), _MOST_WORDS)


def _checked(data: bytes | str, source: str, limits: Limits, what: str, line: int = 0) -> bytes:
    if isinstance(data, Passed) and limits is LIMITS:
        return data
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    if reason := excess(data, limits):
        raise ParseError(source, f"{what}: {reason}", line=line)
    return data


def _outside_texts(plain: bytes) -> bytes:
    """What is between the quoted texts of a document that has no escaped quotes; a quote stands for each text."""
    return b'"'.join(plain.split(b'"')[::2])


def _is_too_large(number: bytes) -> bool:
    return len(number) > _MOST_DIGITS or not _LEAST_WHOLE <= int(number) <= _MOST_WHOLE


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:_MOST_DIGITS]} is not finite")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")
