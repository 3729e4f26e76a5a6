"""Add probes and judging profiles to a configuration without changing anything else in it.

The text is edited, because a parsed and written file would lose its comments. The result is then read by the loader and
must mean exactly the old configuration plus the additions; otherwise nothing is returned and the lines are the user's
to add.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import yaml

from plumbline.config.model import Config, parse
from plumbline.config.probes import ProbeConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.config.yaml import convert
from plumbline.errors import ConfigError

_BY_HAND = "can't be extended here without a change of meaning; add the printed lines by hand"
_UNITS_S = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_UNITS_B = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1}
_REMARK = "  # added by: plumbline baseline advise"


def added(
    text: str,
    *,
    where: str,
    probes: Sequence[Mapping[str, Any]],
    judge: Mapping[str, str],
    catalogue: WorkloadCatalogue,
) -> str:
    """``text`` with these probes and these entries of ``baseline.judge`` (device class → profile) as well. ``where``
    names it in errors. Raises :class:`ConfigError` if ``text`` is invalid, or can't be extended safely."""
    old = parse(text, where=where, catalogue=catalogue)
    try:
        result = _edited(text, old, probes, judge)
    except yaml.YAMLError:  # the first of two edits ended in no YAML
        raise ConfigError(where, _BY_HAND) from None
    new = _parsed(result, where=where, catalogue=catalogue)
    more = convert(tuple[ProbeConfig, ...], list(probes), where=where)
    wanted = msgspec.structs.replace(
        old,
        probes=(*old.probes, *more),
        baseline=msgspec.structs.replace(old.baseline, judge={**old.baseline.judge, **judge}),
    )
    if new != wanted:
        raise ConfigError(where, _BY_HAND)
    return result


def _edited(text: str, old: Config, probes: Sequence[Mapping[str, Any]], judge: Mapping[str, str]) -> str:
    result = text
    if probes:
        # without the key the default probes run; with it, only what it lists
        own = () if "probes" in dict(_top(text)) else old.probes
        result = _with_items(result, "probes", [*map(_as_written, own), *probes])
    return _with_judge(result, judge) if judge else result


def _parsed(text: str, *, where: str, catalogue: WorkloadCatalogue) -> Config:
    """The configuration that our edit made; an error in it is the edit's, not the user's."""
    try:
        return parse(text, where=where, catalogue=catalogue)
    except ConfigError as error:
        raise ConfigError(where, f"{_BY_HAND} ({error.reason})") from error


def block(probes: Sequence[Mapping[str, Any]], judge: Mapping[str, str]) -> str:
    """The additions alone as YAML, to be read by a person."""
    lines = ["probes:", *(f"  - {_flow(probe)}" for probe in probes)] if probes else []
    return "\n".join([*lines, *(["baseline:", f"  judge: {_flow(judge)}"] if judge else []), ""])


def _as_written(probe: ProbeConfig) -> dict[str, Any]:
    """A probe as a file would have it: its type, and the fields that differ from the defaults."""
    changed = {
        field.name: _plain(value)
        for field in msgspec.structs.fields(probe)
        if (value := getattr(probe, field.name)) != field.default
    }
    return {"type": probe.kind, **changed}


def _plain(value: object) -> object:
    """A default's value as a person writes it."""
    if isinstance(value, Duration):
        unit, seconds = next((unit, each) for unit, each in _UNITS_S.items() if not value % each)
        return f"{value / seconds:g}{unit}"
    if isinstance(value, Size):
        unit, size = next((unit, each) for unit, each in _UNITS_B.items() if not value % each)
        return f"{value // size}{unit}"
    return msgspec.to_builtins(value)


def _flow(value: object) -> str:
    """On one line; as the only item of a list, because a lone scalar gets an end mark."""
    text: str = yaml.safe_dump([value], default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.strip()[1:-1]


def _root(text: str) -> yaml.Node | None:
    # the pure Python loader: its marks count characters
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _top(text: str) -> list[tuple[str, yaml.Node]]:
    root = _root(text)
    return [(key.value, value) for key, value in root.value] if isinstance(root, yaml.MappingNode) else []


def _with_items(text: str, key: str, items: Sequence[Mapping[str, Any]]) -> str:
    node = dict(_top(text)).get(key)
    if not isinstance(node, yaml.SequenceNode):  # not there: the loader refuses anything but a list
        return _with_key(text, key, items)
    if node.flow_style or not node.value:
        more = ", ".join(map(_flow, items))
        return _inserted(text, node.end_mark.index - 1, f", {more}" if node.value else more)
    indent = " " * node.start_mark.column
    lines = "".join(f"\n{indent}- {_flow(item)}{_REMARK}" for item in items)
    return _inserted(text, _line_end(text, _last(node).end_mark.index), lines)


def _with_judge(text: str, judge: Mapping[str, str]) -> str:
    baseline = dict(_top(text)).get("baseline")
    if not isinstance(baseline, yaml.MappingNode):
        return _with_key(text, "baseline", {"judge": dict(judge)})
    judging = next((value for key, value in baseline.value if key.value == "judge"), None)
    if judging is None:
        return _with_entries(text, baseline, {"judge": dict(judge)})
    return _with_entries(text, judging, judge)


def _with_key(text: str, key: str, value: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> str:
    """A further key of the whole document."""
    root = _root(text)
    if isinstance(root, yaml.MappingNode) and root.flow_style:
        return _with_entries(text, root, {key: value})
    if isinstance(value, Mapping):
        lines = [f"  {name}: {_flow(each)}" for name, each in value.items()]
    else:
        lines = [f"  - {_flow(each)}" for each in value]
    head = f"{text.rstrip()}\n\n" if text.strip() else ""
    return head + "\n".join([f"{key}:{_REMARK}", *lines, ""])


def _with_entries(text: str, node: yaml.MappingNode, entries: Mapping[str, Any]) -> str:
    if node.flow_style:
        more = ", ".join(f"{_flow({name: value})[1:-1]}" for name, value in entries.items())
        return _inserted(text, node.end_mark.index - 1, f", {more}" if node.value else more)
    indent = " " * node.start_mark.column
    lines = "".join(f"\n{indent}{name}: {_flow(value)}{_REMARK}" for name, value in entries.items())
    return _inserted(text, _line_end(text, _last(node).end_mark.index), lines)


def _last(node: yaml.Node) -> yaml.Node:
    """The last leaf in a block: its own end mark is behind the comments that follow."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _inserted(text: str, at: int, more: str) -> str:
    return text[:at] + more + text[at:]
