"""Strict YAML for hand-written files: one clear line for every error, bounded in time and memory."""

import math
import re
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from plumbline.config.types import FieldError
from plumbline.core import jsontext
from plumbline.core.answers import read_named
from plumbline.errors import ConfigError

MAX_CHARACTERS, MAX_NODES, MAX_DEPTH = 4 << 20, 100_000, 50
"""Limits of one YAML file: a site file of a thousand entries has 30,000 values; none nests deeper than ten levels."""
_LONGEST_WORDS = 300

T = TypeVar("T")


def read_text(path: Path, *, max_bytes: int, read: Callable[[Path, int], bytes] = read_named) -> str:
    """The text of a hand-written file; :class:`ConfigError` if it is too long, not UTF-8 or can't be read. ``read``: a
    function of :mod:`plumbline.core.keyfiles` for secrets and trust."""
    try:
        data = read(path, max_bytes)
    except OSError as error:
        raise ConfigError(str(path), f"can't be read: {error.strerror}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), f"is not UTF-8 at byte {error.start}") from None


def read_yaml(text: str, *, where: str) -> Any:
    """Parsed YAML, bounded in time and memory, with repeated keys refused; ``None`` for an empty document."""
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(where, f"is longer than {MAX_CHARACTERS >> 20} MiB; is this a configuration file?")
    try:
        _measure(text, where)
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506  (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}:{mark.line + 1}" if mark else where
        raise ConfigError(at, f"not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(where, f"not valid YAML: {' '.join(str(error).split())}") from error
    except (AttributeError, LookupError, TypeError, OverflowError) as error:  # from PyYAML: !!timestamp x, !!bool x
        raise ConfigError(where, "not valid YAML: a value does not match its tag (!!…)") from error


def _measure(text: str, where: str) -> None:
    """Refuse a document that would be too large once loaded. The C loader recurses: 100,000 brackets end the process by
    SIGSEGV. Aliases of aliases in ten lines become a gigabyte when printed."""
    sizes: dict[str, int] = {}  # anchor → number of nodes, with aliases expanded
    open_nodes: list[tuple[str | None, int]] = []  # anchor, number of nodes before it
    nodes = 0
    for event in yaml.parse(text, Loader=_UniqueKeyLoader):
        at = f"{where}:{event.start_mark.line + 1}" if event.start_mark else where
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, nodes))
            nodes += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = nodes - before
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_nodes):
                raise ConfigError(at, f"not valid here: *{event.anchor} is inside the value that it repeats")
            nodes += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
        if len(open_nodes) > MAX_DEPTH:
            raise ConfigError(at, f"not valid here: nested deeper than {MAX_DEPTH} levels")
        if nodes > MAX_NODES:
            raise ConfigError(at, f"not valid here: more than {MAX_NODES} values, aliases counted each time")


def convert(kind: type[T], data: Any, *, where: str) -> T:
    """``data`` as ``kind``, or :class:`ConfigError` with the dotted key, the value found there and the reason."""
    for key, text in _texts(data):
        if "\0" in text:  # system calls would refuse it, long after this check
            in_one_line = " ".join(key.split())
            raise ConfigError(
                where, "contains a NUL, which is not allowed in a path, name or pattern", key=_cut(in_one_line)
            )
    try:
        return jsontext.convert(data, kind, hook=_decode)
    except msgspec.ValidationError as error:
        reason, _, path = " ".join(str(error).split()).partition(" - at `")  # a key may hold a line break
        key = path.rstrip("`").removeprefix("$").removeprefix(".")
        if isinstance(error.__cause__, FieldError):
            raise error.__cause__.at(where, _cut(key)) from error
        unknown = re.match(r"Object contains unknown field `(.*)`", reason)
        if unknown:
            key = f"{key}.{unknown[1]}".lstrip(".")
            raise ConfigError(where, "no such key; see the configuration reference", key=_cut(key)) from error
        value = _value_at(data, key) if key else None
        raise ConfigError(where, reason[:1].lower() + _cut(reason)[1:], key=_cut(key), value=value) from error
    except OverflowError as error:
        raise ConfigError(where, "a number is too large") from error


def _texts(data: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text and key in ``data``, with its dotted key."""
    if isinstance(data, str):
        yield key, data
    elif isinstance(data, dict):
        for name, value in data.items():
            at = f"{key}.{name}".removeprefix(".")
            yield at, str(name)
            yield from _texts(value, at)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _texts(value, f"{key}[{index}]")


def convert_secret(kind: type[T], data: Any, *, where: str, reference: str) -> T:
    """:func:`convert` for data that may hold secrets: no error shows a value. ``reference``: the page of its keys."""
    try:
        return convert(kind, {} if data is None else data, where=where)
    except ConfigError as error:
        reason = error.reason.replace("the configuration reference", reference)
        raise ConfigError(where, reason, key=error.key) from None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_WORDS else f"{text[: _LONGEST_WORDS - 1]}…"


def _decode(kind: type, value: object) -> object:
    parse = getattr(kind, "parse", None)
    if parse is None:
        raise NotImplementedError(kind)
    return parse(value)


class _UniqueKeyLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML lets a repeated key silently override the first; such a file is refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    problem = f"duplicate key {key!r}"
                    raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]


def _whole(loader: Any, node: yaml.ScalarNode) -> int:
    value: int = loader.construct_yaml_int(node)
    if not -(2**63) <= value < 2**64:
        raise yaml.constructor.ConstructorError(None, None, "an integer of more than 64 bits", node.start_mark)
    return value


def _finite(loader: Any, node: yaml.ScalarNode) -> float:
    value: float = loader.construct_yaml_float(node)
    if not math.isfinite(value):
        raise yaml.constructor.ConstructorError(None, None, "a number that is not finite", node.start_mark)
    return value


_UniqueKeyLoader.add_constructor("tag:yaml.org,2002:int", _whole)
_UniqueKeyLoader.add_constructor("tag:yaml.org,2002:float", _finite)


def _value_at(data: Any, key: str) -> Any:
    """The value at msgspec's dotted path; ``None`` if the path ends early (``[...]`` is any element)."""
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", key):
        try:
            data = data[int(part[1:-1])] if part.startswith("[") else data[part]
        except (LookupError, TypeError, ValueError):
            return None
    return data
