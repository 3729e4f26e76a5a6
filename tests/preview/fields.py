"""How a field is shown: its panel's defaults with the overrides that match its name; colours by threshold; mappings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import units

TRANSPARENT = "transparent"
_NAMED = {"green": "#37872D", "red": "#C4162A", "yellow": "#E0B400", "orange": "#E0752D", "blue": "#1F60C4",
          "purple": "#8F3BB8", "text": "#22252B", "grey": "#8F8F8F", "gray": "#8F8F8F"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """One field's configuration, defaults and overrides together; ``custom`` is what the panel's type adds."""

    settings: Mapping[str, Any]
    custom: Mapping[str, Any]

    @property
    def unit(self) -> str:
        """Grafana's id of its unit."""
        return str(self.settings.get("unit", "none"))

    def text(self, value: float | None, empty: str = "") -> str:
        """As it is written: by a mapping, or with its unit."""
        found = self._mapped(value)
        if found is not None and "text" in found:
            return str(found["text"])
        return empty if value is None else units.text(value, self.unit, self.settings.get("decimals"))

    def colour(self, value: float | None) -> str | None:
        """By a mapping, else by the thresholds where they are asked for; ``None`` for the panel's own choice."""
        found = self._mapped(value)
        if found is not None and "color" in found:
            return None if found["color"] == TRANSPARENT else named(found["color"])
        own = self.settings.get("color", {})
        if own.get("mode") == "fixed":
            return named(own["fixedColor"])
        steps = self.settings.get("thresholds", {}).get("steps", [])
        if own.get("mode") != "thresholds" or value is None or not steps:
            return None
        reached = [step for step in steps if step["value"] is None or value >= step["value"]]
        return named(reached[-1]["color"]) if reached else None

    def _mapped(self, value: float | None) -> Mapping[str, Any] | None:
        for mapping in self.settings.get("mappings", []):
            options = mapping["options"]
            if mapping["type"] == "value" and value is not None and f"{value:g}" in options:
                return dict(options[f"{value:g}"])
            if mapping["type"] == "special" and options["match"].startswith("null") and value is None:
                return dict(options["result"])
            if mapping["type"] == "range" and value is not None:
                low, high = options.get("from"), options.get("to")
                if (low is None or value >= low) and (high is None or value <= high):
                    return dict(options["result"])
        return None


def look(panel: Mapping[str, Any], name: str, *, ref_id: str = "") -> Look:
    """Of the field called ``name`` (its heading or its legend)."""
    config = panel.get("fieldConfig", {})
    settings = {key: value for key, value in config.get("defaults", {}).items() if key != "custom"}
    custom = dict(config.get("defaults", {}).get("custom", {}))
    for override in config.get("overrides", []):
        if _matches(override["matcher"], name, ref_id):
            for each in override["properties"]:
                if each["id"].startswith("custom."):
                    custom[each["id"][7:]] = each["value"]
                else:
                    settings[each["id"]] = each["value"]
    return Look(settings, custom)


def named(colour: str) -> str:
    """A colour that matplotlib knows; Grafana's own shades (dark-red) by their family."""
    return colour if colour.startswith("#") else _NAMED.get(colour.rpartition("-")[2], _NAMED["grey"])


def _matches(matcher: Mapping[str, Any], name: str, ref_id: str) -> bool:
    wanted = matcher.get("options")
    match matcher["id"]:
        case "byName":
            return bool(wanted == name)
        case "byRegexp":
            return re.search(str(wanted).strip("/"), name) is not None
        case "byFrameRefID":
            return bool(wanted == ref_id)
    return False
