"""The driver table: which counters of which driver count lost frames. Data: ``driver_rules/*.yaml`` beside this file.

Drivers name the same loss differently, some names count events and not frames, and each driver fills the kernel's
fields in its own way. Only a table checked against the drivers' source resolves this; ports without an entry use
the meanings in the kernel's documentation. ``base.yaml`` explains the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

import msgspec

from plumbline.config.yaml import convert, read_yaml
from plumbline.errors import ConfigError
from plumbline.sources.net.links import Link, LinkStats

Direction = Literal["receive", "transmit"]
DropCause = Literal["ring", "fifo", "filter", "other"]
ErrorCause = Literal["crc", "length", "frame", "carrier", "other"]

RTNL = "rtnl."
_FOLDER = "driver_rules"
_SIGN = re.compile(r"\s+([+-])\s+")


class Guarded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An expression with a condition: ``a < b`` of two counters, or the name of a counter that must exist."""

    when: str
    sum: str


Forms = str | list[str | Guarded]


class DriverRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table entry. Values are expressions or lists of alternatives; see the top of the YAML file."""

    source: str
    drops: dict[Direction, dict[DropCause, Forms]] = {}
    errors: dict[Direction, dict[ErrorCause, Forms]] = {}
    pause: dict[Direction, Forms] = {}
    port_wide: tuple[str, ...] = ()
    not_losses: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class DriverTable:
    """The whole table. ``select`` finds a port's rules."""

    fallback: DriverRules
    software: DriverRules
    kinds: Mapping[str, DriverRules]
    drivers: Mapping[str, DriverRules]

    def select(self, link: Link, driver: str) -> tuple[DriverRules, str]:
        """The rules for a link, and the source of its drop counts: ``driver`` (its own rules), ``rtnl`` or ``members``.

        ``members``: the link repeats the counters of the links below it and has no losses of its own.
        """
        if link.kind in self.kinds:
            return self.kinds[link.kind], "members"
        if not link.hardware:
            return self.software, "rtnl"
        if driver in self.drivers:
            return self.drivers[driver], "driver"
        return self.fallback, "rtnl"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fallback: DriverRules | None = None
    software: DriverRules | None = None
    kinds: dict[str, DriverRules] = {}
    drivers: dict[str, DriverRules] = {}


def load_table() -> DriverTable:
    """Load the table shipped with the package."""
    folder = resources.files("plumbline.sources.net").joinpath(_FOLDER)
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda entry: entry.name)
    return parse_table({f"{_FOLDER}/{entry.name}": entry.read_text("utf-8") for entry in files})


def parse_table(files: Mapping[str, str]) -> DriverTable:
    """Check and merge the table's files (name → text); :class:`ConfigError` names the first mistake."""
    entries: dict[str, tuple[str, DriverRules]] = {}
    for where, text in files.items():
        file = convert(_File, read_yaml(text, where=where) or {}, where=where)
        found = {"fallback": file.fallback, "software": file.software}
        found |= {f"kinds.{name}": rules for name, rules in file.kinds.items()}
        found |= {f"drivers.{name}": rules for name, rules in file.drivers.items()}
        for key, rules in found.items():
            if rules is None:
                continue
            if key in entries:
                raise ConfigError(where, f"stands in {entries[key][0]} as well", key=key)
            _check(rules, where, key, ethtool=key.startswith("drivers."))
            entries[key] = where, rules
    for key in ("fallback", "software"):
        if key not in entries:
            raise ConfigError(", ".join(files), "is missing", key=key)
    named = {key: rules for key, (_, rules) in entries.items()}
    return DriverTable(
        named["fallback"],
        named["software"],
        {key.removeprefix("kinds."): rules for key, rules in named.items() if key.startswith("kinds.")},
        {key.removeprefix("drivers."): rules for key, rules in named.items() if key.startswith("drivers.")},
    )


def terms(form: str) -> Iterator[tuple[str, str]]:
    """Split ``a + b? - c`` into (sign, name) pairs. Names may contain anything but a sign between blanks."""
    first, *rest = _SIGN.split(form.strip())
    yield "+", first
    yield from zip(rest[::2], rest[1::2], strict=True)


def matching(name: str, names: Iterable[str]) -> list[int]:
    """Indices in ``names`` that match a table name: ``%d`` is any number, ``%s`` any text, including empty."""
    wanted = re.compile(re.escape(name.removesuffix("?")).replace("%d", r"\d+").replace("%s", ".*"))
    return [index for index, one in enumerate(names) if wanted.fullmatch(one)]


def alternatives(forms: Forms) -> Iterator[tuple[str, str]]:
    """(expression, condition) pairs in order of preference; the condition may be empty."""
    for form in [forms] if isinstance(forms, str) else forms:
        yield (form, "") if isinstance(form, str) else (form.sum, form.when)


def _check(rules: DriverRules, where: str, key: str, *, ethtool: bool) -> None:
    """Check what the types can't: fields exist, no frame counts under two causes, excluded names are unused."""
    used: set[str] = set()
    counted: dict[tuple[str, str, str], str] = {}
    for family in ("drops", "errors", "pause"):
        for direction, causes in getattr(rules, family).items():
            forms = causes.items() if family != "pause" else [("", causes)]
            for cause, choices in forms:
                at = ".".join(filter(None, (key, family, direction, cause)))
                for form, when in alternatives(choices):
                    names = [name.removesuffix("?") for _, name in terms(form)]
                    used.update(names)
                    _check_names(names, form, where, at, ethtool=ethtool)
                    _check_names([name for name in when.split(" < ") if when], when, where, at, ethtool=ethtool)
                    if when:
                        continue  # where the condition does not hold, another cause may use the same counter
                    kind = "pause" if family == "pause" else "loss"
                    for sign, name in terms(form):
                        other = counted.setdefault((kind, direction, name.removesuffix("?")), at) if sign == "+" else at
                        if other != at:
                            raise ConfigError(where, f"{name} is added to {other} already", key=at, value=form)
    for name, reason in {**dict.fromkeys(rules.port_wide), **rules.not_losses}.items():
        if name in rules.port_wide and name not in used:
            raise ConfigError(where, f"{name} is not used", key=f"{key}.port_wide")
        if name in rules.not_losses and name in used:
            raise ConfigError(where, "is used all the same", key=f"{key}.not_losses.{name}", value=reason)


def _check_names(names: Sequence[str], form: str, where: str, at: str, *, ethtool: bool) -> None:
    if len(set(names)) != len(names):
        raise ConfigError(where, "a counter stands twice", key=at, value=form)
    for name in names:
        if name.startswith(RTNL):
            if name.removeprefix(RTNL) not in LinkStats._fields:
                raise ConfigError(where, f"the kernel's link statistics have no {name}", key=at, value=form)
        elif not name:
            raise ConfigError(where, "a counter's name is missing", key=at, value=form)
        elif not ethtool:
            raise ConfigError(where, f"{name}: only rtnl counters here, there is no driver to ask", key=at, value=form)
