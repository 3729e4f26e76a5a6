"""All mistakes of a configuration file at once, each with its line, what is allowed there and the nearest name."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import yaml
from msgspec import inspect

from plumbline.config.model import Config, checked
from plumbline.config.yaml import read_yaml
from plumbline.errors import ConfigError

_MOST = 50
_PART = re.compile(r"[^.\[\]]+|\[\d+\]")
_PROBE = re.compile(r"probes\[(\d+)\]")


def mistakes(text: str, *, where: str) -> list[ConfigError]:
    """At most 50. What is wrong is left out before the next look, a probe as a whole: one mistake of it is shown."""
    errors: list[ConfigError] = []
    try:
        data = read_yaml(text, where=where)
    except ConfigError as error:
        return [error]
    while len(errors) < _MOST:
        try:
            checked(data, where=where)
            break
        except ConfigError as error:
            errors.append(_explained(error, text, data))
            if not _leave_out(data, error.key):
                break
    return errors


def _explained(error: ConfigError, text: str, data: Any) -> ConfigError:
    line = _line(text, error.key)
    parent, _, name = error.key.rpartition(".")
    unknown = error.reason.startswith("no such key")
    allowed = sorted(_allowed(parent if unknown else error.key, data, keys=unknown))
    given = name if unknown else error.value
    near = get_close_matches(str(given), allowed, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    hint += f"{'' if near else ';'} allowed: {', '.join(allowed)}" if allowed else ""
    where = f"{error.where}:{line}" if line else error.where
    return ConfigError(where, error.reason + hint, key=error.key, value=error.value)


def _parts(key: str) -> list[str | int]:
    return [int(part[1:-1]) if part.startswith("[") else part for part in _PART.findall(key)]


def _line(text: str, key: str) -> int:
    """The line of a key, or of the last part of its path that is there; 0: unknown."""
    node, line = yaml.compose(text, Loader=yaml.SafeLoader), 0
    for part in _parts(key):
        if isinstance(node, yaml.MappingNode):
            pair = next(((name, value) for name, value in node.value if name.value == part), None)
            if pair is None:
                return line
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def _leave_out(data: Any, key: str) -> bool:
    """Whether there was something to leave out."""
    if probe := _PROBE.match(key):
        number = int(probe[1])
        good = {"type": "canary", "name": f"left-out-{number}", "enabled": False}
        changed = isinstance(data["probes"], list) and data["probes"][number] != good
        if changed:
            data["probes"][number] = good
        return changed
    *parents, last = _parts(key) or [""]
    for part in parents:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return False
    if isinstance(data, dict) and last in data:
        del data[last]
        return True
    return False


def _allowed(key: str, data: Any, *, keys: bool) -> set[str]:
    """The keys of the struct at this path, or the names that a value may have there."""
    kinds: list[inspect.Type] = [inspect.type_info(Config)]
    for part in _parts(key):
        kinds = [inner for kind in _choices(kinds, data) for inner in _inner(kind, part)]
        try:
            data = data[part]
        except (LookupError, TypeError):
            data = None
    choices = list(_choices(kinds, data))
    if keys:
        return {field.encode_name for kind in choices if isinstance(kind, inspect.StructType) for field in kind.fields}
    return {str(value) for kind in choices if isinstance(kind, inspect.LiteralType) for value in kind.values}


def _choices(kinds: Iterable[inspect.Type], data: Any) -> Iterator[inspect.Type]:
    """Without unions; of structs with a tag, the one that the data names."""
    for kind in kinds:
        members = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
        for member in members:
            match member:
                case inspect.StructType(tag_field=str(field), tag=tag):
                    if isinstance(data, dict) and data.get(field) == tag:
                        yield member
                case _:
                    yield member


def _inner(kind: inspect.Type, part: str | int) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        yield from (field.type for field in kind.fields if field.encode_name == part)
    elif isinstance(kind, inspect.VarTupleType | inspect.ListType):
        yield kind.item_type
    elif isinstance(kind, inspect.DictType):
        yield kind.value_type
