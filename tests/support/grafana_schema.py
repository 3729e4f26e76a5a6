"""Grafana's own model of a dashboard (its official SDK): what of a page the model doesn't know or doesn't take.

Through the model and back: a field it doesn't know does not come back. Values of fields with a fixed set of words are
looked at, too, which reading alone doesn't do. So far as the model goes: options of transformations and annotations'
fields of a data source are open in it.
"""

from __future__ import annotations

import enum
import json
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.runtime import panelcfg_config
from grafana_foundation_sdk.models import common, dashboard

_OPEN = re.compile(
    r"\.annotations\.list\[\d+\]\.(expr|titleFormat|textFormat|step|useValueForTime)"
    r"|\.panels\[\d+\](\.panels\[\d+\])?\.fieldConfig\.defaults\.custom\.wrapHeaderText"
)
"""Prometheus' own fields of an annotation: Grafana's model leaves a data source's fields open. And what Grafana 12
added to tables: 11, whose model this is, passes it over."""
_TRANSFORMATIONS = {
    "joinByField": {"byField", "mode"},
    "joinByLabels": {"value", "join"},
    "labelsToFields": {"mode", "keepLabels", "valueLabel"},
    "merge": set(),
    "organize": {"excludeByName", "indexByName", "renameByName", "includeByName"},
    "groupingToMatrix": {"rowField", "columnField", "valueField", "emptyValue"},
    "sortBy": {"fields", "sort"},
    "filterFieldsByName": {"include", "exclude"},
    "seriesToRows": set(),
    "reduce": {"reducers", "mode", "includeTimeField", "labelsToFields"},
    "limit": {"limitField"},
    "calculateField": {"mode", "binary", "reduce", "alias", "replaceFields"},
    "groupBy": {"fields"},
    "timeSeriesTable": None,
}  # fmt: skip
"""Transformation → its options, as Grafana 11's documentation has them; the model has none."""


def faults(page: dict[str, Any]) -> Iterator[str]:
    """Each place of the page that Grafana's model doesn't have or whose value it doesn't take."""
    plugins.register_default_plugins()
    model = dashboard.Dashboard.from_json(page)
    back = json.loads(JSONEncoder().encode(model))
    for path in _lost(page, back):
        if not _OPEN.fullmatch(path):
            yield f"{path}: not in Grafana's model"
    yield from _wrong_words(model, "")
    for index, panel in enumerate(page["panels"]):
        if panel["type"] != "row" and panelcfg_config(panel["type"]) is None:
            yield f".panels[{index}].type: no panel is called {panel['type']}"
        yield from (f".panels[{index}]{each}" for each in _override_faults(panel))
        yield from (f".panels[{index}]{each}" for each in _transformation_faults(panel))


def _lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield f"{path}.{key}"
            else:
                yield from _lost(value, after[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _lost(one, other, f"{path}[{index}]")
    elif before != after:
        yield path


def _wrong_words(value: Any, path: str) -> Iterator[str]:
    """Values of enumerations that are none of theirs."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _wrong_words(each, f"{path}[{index}]")
    elif type(value).__module__.startswith("grafana_foundation_sdk."):
        hints = typing.get_type_hints(type(value))
        for name, each in vars(value).items():
            words = _words(hints.get(name))
            if words and each is not None and each not in words:
                yield f"{path}.{name}: {each!r} is none of {', '.join(map(str, words))}"
            yield from _wrong_words(each, f"{path}.{name}")


def _words(hint: Any) -> list[Any]:
    """The values that an enumeration or a literal type has, also where it is optional; empty for other types."""
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [each.value for each in hint]
    return [word for one in typing.get_args(hint) for word in _words(one)] if _is_optional(hint) else []


def _is_optional(hint: Any) -> bool:
    return typing.get_origin(hint) is typing.Union and type(None) in typing.get_args(hint)


def _override_faults(panel: dict[str, Any]) -> Iterator[str]:
    """Properties of overrides: ``custom.…`` must be one of the panel's own fields, others one of every panel's."""
    for index, override in enumerate(panel.get("fieldConfig", {}).get("overrides", [])):
        for each in override["properties"]:
            where = f".fieldConfig.overrides[{index}] {each['id']}"
            own, _, name = each["id"].rpartition("custom.")
            read = _own_fields(panel["type"]) if each["id"].startswith("custom.") else dashboard.FieldConfig.from_json
            if own or read is None:
                yield f"{where}: {panel['type']} has no fields of its own"
                continue
            model = read({name: each["value"]})
            back = json.loads(JSONEncoder().encode(model))
            yield from (f"{where}{path}: not in Grafana's model" for path in _lost({name: each["value"]}, back))
            yield from (f"{where}{path}" for path in _wrong_words(model, ""))


def _own_fields(kind: str) -> Callable[[dict[str, Any]], Any] | None:
    if kind == "table":  # registered without them
        return common.TableFieldOptions.from_json
    config = panelcfg_config(kind)
    return config.field_config_from_json_hook if config else None


def _transformation_faults(panel: dict[str, Any]) -> Iterator[str]:
    for index, each in enumerate(panel.get("transformations", [])):
        where = f".transformations[{index}]"
        known = _TRANSFORMATIONS.get(each["id"], ())
        if each["id"] not in _TRANSFORMATIONS:
            yield f"{where}: no transformation is called {each['id']}"
        elif known is not None:
            yield from (f"{where}.options.{name}: unknown" for name in each["options"] if name not in known)
