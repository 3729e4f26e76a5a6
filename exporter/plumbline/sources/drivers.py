"""Lost frames by cause, whatever the driver calls them. The meanings are data: ``drivers.yaml`` beside this file.

The same loss stands under another name with each driver, some names count events and not frames, and the kernel's own
fields are filled as each driver's author saw fit. A table read against the drivers' source is the only cure; ports
without an entry get what the kernel's documentation promises.

``Rules`` are bound once to the names a port really has, which leaves index lists; a scrape only adds numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, NamedTuple

import msgspec

from plumbline.config import convert, read_yaml
from plumbline.errors import ConfigError
from plumbline.sources.links import Link, LinkStats

Direction = Literal["receive", "transmit"]
DropCause = Literal["ring", "fifo", "filter", "other"]
ErrorCause = Literal["crc", "length", "frame", "carrier", "other"]

_RTNL = "rtnl."
_SIGN = re.compile(r"\s+([+-])\s+")


class DriverRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of the table. Values are expressions, or lists of alternatives; see the head of the file."""

    source: str
    drops: dict[Direction, dict[DropCause, str | list[str]]] = {}
    errors: dict[Direction, dict[ErrorCause, str | list[str]]] = {}
    pause: dict[Direction, str | list[str]] = {}
    port_wide: tuple[str, ...] = ()
    not_losses: dict[str, str] = {}


class Count(NamedTuple):
    """Frames of one direction and cause since the driver's last reset."""

    direction: str
    cause: str
    frames: int


@dataclass(frozen=True, slots=True)
class NicLoss:
    """One port's losses. A cause that is missing is one that its driver can't tell; 0 was measured."""

    drops: tuple[Count, ...] = ()
    errors: tuple[Count, ...] = ()
    pause: tuple[Count, ...] = ()
    """``cause`` is empty."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One number to compute: indices of what is added and what is taken off."""

    direction: str
    cause: str
    ethtool_plus: tuple[int, ...]
    ethtool_minus: tuple[int, ...]
    rtnl_plus: tuple[int, ...]
    rtnl_minus: tuple[int, ...]

    @property
    def subtracts(self) -> bool:
        """A difference of counters, which may step back when the two are not read at one moment."""
        return bool(self.ethtool_minus or self.rtnl_minus)


@dataclass(frozen=True, slots=True)
class Plan:
    """Rules bound to the statistics of one port."""

    drops: tuple[Cell, ...]
    errors: tuple[Cell, ...]
    pause: tuple[Cell, ...]
    needs_ethtool: bool
    """Whether the scrape has to ask the driver at all."""


@dataclass(frozen=True, slots=True)
class DriverTable:
    """The whole table. ``select`` finds a port's rules."""

    fallback: DriverRules
    software: DriverRules
    kinds: Mapping[str, DriverRules]
    drivers: Mapping[str, DriverRules]

    def select(self, link: Link, driver: str) -> tuple[DriverRules, str]:
        """The rules for a link, and where its drops come from: ``driver`` (its own rules), ``rtnl``, ``members``.

        ``members``: the link repeats the counters of the links below it and has no losses of its own to show.
        """
        if link.kind in self.kinds:
            return self.kinds[link.kind], "members"
        if not link.hardware:
            return self.software, "rtnl"
        if driver in self.drivers:
            return self.drivers[driver], "driver"
        return self.fallback, "rtnl"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fallback: DriverRules
    software: DriverRules
    kinds: dict[str, DriverRules]
    drivers: dict[str, DriverRules]


def load_table() -> DriverTable:
    """The table that comes with the package."""
    where = "drivers.yaml"
    return parse_table(resources.files("plumbline.sources").joinpath(where).read_text("utf-8"), where=where)


def parse_table(text: str, *, where: str) -> DriverTable:
    """Check a table; :class:`ConfigError` names the first mistake."""
    file = convert(_File, read_yaml(text, where=where), where=where)
    entries = {"fallback": file.fallback, "software": file.software}
    entries |= {f"kinds.{name}": rules for name, rules in file.kinds.items()}
    entries |= {f"drivers.{name}": rules for name, rules in file.drivers.items()}
    for key, rules in entries.items():
        _check(rules, where, key, ethtool=key.startswith("drivers."))
    return DriverTable(file.fallback, file.software, file.kinds, file.drivers)


def bind(rules: DriverRules, names: Sequence[str]) -> Plan:
    """The rules for a driver that gives these ``ethtool -S`` names, in this order."""
    drops = tuple(_cells(rules.drops, names))
    errors = tuple(_cells(rules.errors, names))
    pause = tuple(_cells({side: {"": forms} for side, forms in rules.pause.items()}, names))
    asked = any(cell.ethtool_plus or cell.ethtool_minus for cell in drops + errors + pause)
    return Plan(drops, errors, pause, asked)


def losses(plan: Plan, ethtool: Sequence[int], rtnl: LinkStats | None) -> NicLoss:
    """The numbers. ``ethtool`` holds the values in the order of the bound names, and is not read if not needed.

    Without ``rtnl`` the cells that need it are left out; fields that this kernel does not have add nothing.
    """
    return NicLoss(
        tuple(_counts(plan.drops, ethtool, rtnl)),
        tuple(_counts(plan.errors, ethtool, rtnl)),
        tuple(_counts(plan.pause, ethtool, rtnl)),
    )


def hold(plan: Plan, before: NicLoss, now: NicLoss) -> NicLoss:
    """``now``, with the counters that are differences kept from stepping back behind ``before``.

    The two sides of a difference are read a moment apart, so that it may be a few frames short until the next read;
    to Prometheus a counter that falls has been reset, and its whole value would count again. Only for two readings
    without a driver reset in between.
    """
    if not any(cell.subtracts for cell in plan.drops + plan.errors):
        return now
    return NicLoss(_held(plan.drops, before.drops, now.drops), _held(plan.errors, before.errors, now.errors), now.pause)


def _held(cells: Sequence[Cell], before: Sequence[Count], now: tuple[Count, ...]) -> tuple[Count, ...]:
    floor = {(count.direction, count.cause): count.frames for count in before}
    differences = {(cell.direction, cell.cause) for cell in cells if cell.subtracts}
    return tuple(
        count._replace(frames=max(count.frames, floor.get(count[:2], 0))) if count[:2] in differences else count
        for count in now
    )


def _counts(cells: Iterable[Cell], ethtool: Sequence[int], rtnl: LinkStats | None) -> Iterable[Count]:
    for cell in cells:
        total = 0
        if cell.rtnl_plus:
            if rtnl is None:
                continue
            for index in cell.rtnl_plus:
                total += rtnl[index] or 0
            for index in cell.rtnl_minus:
                total -= rtnl[index] or 0
        for index in cell.ethtool_plus:
            total += ethtool[index]
        for index in cell.ethtool_minus:
            total -= ethtool[index]
        yield Count(cell.direction, cell.cause, max(total, 0))


def _cells(family: Mapping[Any, Mapping[Any, str | list[str]]], names: Sequence[str]) -> Iterable[Cell]:
    for direction, causes in family.items():
        for cause, forms in causes.items():
            for form in [forms] if isinstance(forms, str) else forms:
                cell = _bind_form(direction, cause, form, names)
                if cell is not None:
                    yield cell
                    break


def _bind_form(direction: str, cause: str, form: str, names: Sequence[str]) -> Cell | None:
    """The cell for one expression; ``None`` when the driver lacks one of its ethtool names."""
    indices: dict[tuple[str, str], list[int]] = {}
    for sign, term in _terms(form):
        if term.startswith(_RTNL):
            indices.setdefault(("rtnl", sign), []).append(LinkStats._fields.index(term.removeprefix(_RTNL)))
            continue
        wanted = re.compile(re.escape(term).replace("%d", r"\d+"))
        found = [index for index, name in enumerate(names) if wanted.fullmatch(name)]
        if not found:
            return None
        indices.setdefault(("ethtool", sign), []).extend(found)
    return Cell(
        direction,
        cause,
        *(tuple(indices.get(key, ())) for key in (("ethtool", "+"), ("ethtool", "-"), ("rtnl", "+"), ("rtnl", "-"))),
    )


def _terms(form: str) -> Iterable[tuple[str, str]]:
    """``a + b - c`` → signs and names. Names may hold anything but a sign between blanks."""
    first, *rest = _SIGN.split(form.strip())
    yield "+", first
    yield from zip(rest[::2], rest[1::2], strict=True)


def _check(rules: DriverRules, where: str, key: str, *, ethtool: bool) -> None:
    """What the types can't say: fields exist, nothing is counted twice in one family, exclusions hold."""
    used: set[str] = set()
    for family in ("drops", "errors", "pause"):
        for direction, causes in getattr(rules, family).items():
            forms = causes.items() if isinstance(causes, dict) else [("", causes)]
            for cause, alternatives in forms:
                at = ".".join(filter(None, (key, family, direction, cause)))
                for form in [alternatives] if isinstance(alternatives, str) else alternatives:
                    names = [name for _, name in _terms(form)]
                    used.update(names)
                    _check_names(names, form, where, at, ethtool=ethtool)
    for name, value in {**dict.fromkeys(rules.port_wide), **rules.not_losses}.items():
        if name in rules.port_wide and name not in used:
            raise ConfigError(where, f"{name} is not used", key=f"{key}.port_wide")
        if name in rules.not_losses and name in used:
            raise ConfigError(where, "is used all the same", key=f"{key}.not_losses.{name}", value=value)


def _check_names(names: Sequence[str], form: str, where: str, at: str, *, ethtool: bool) -> None:
    if len(set(names)) != len(names):
        raise ConfigError(where, "a counter stands twice", key=at, value=form)
    for name in names:
        if name.startswith(_RTNL):
            if name.removeprefix(_RTNL) not in LinkStats._fields:
                raise ConfigError(where, f"the kernel's link statistics have no {name}", key=at, value=form)
        elif not name:
            raise ConfigError(where, "a counter's name is missing", key=at, value=form)
        elif not ethtool:
            raise ConfigError(where, f"{name}: only rtnl counters here, there is no driver to ask", key=at, value=form)
