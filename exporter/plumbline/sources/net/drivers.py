"""Lost frames by cause: what each driver's counters mean, and what they add up to. Data: ``driver_rules/*.yaml``.

Drivers name the same loss differently, some names count events and not frames, and each driver fills the kernel's
fields in its own way. Only a table checked against the drivers' source resolves this; ports without an entry use
the meanings in the kernel's documentation. ``base.yaml`` explains the format.

Rules are bound once to the names a port has; a scrape only adds numbers. What a driver's kernel fields mean changes
between kernels and by stable updates, so no version number tells: such alternatives have a condition on the port's own
counters, evaluated against :class:`Evidence`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from plumbline.config.yaml import convert, read_yaml
from plumbline.errors import ConfigError
from plumbline.sources.net.links import Link, LinkStats
from plumbline.sources.plausible import ALL_ONES

Direction = Literal["receive", "transmit"]
DropCause = Literal["ring", "fifo", "filter", "other"]
ErrorCause = Literal["crc", "length", "frame", "carrier", "other"]

RTNL = "rtnl."
_LEAST_ONES = min(ALL_ONES)
_FOLDER = "driver_rules"
_PAUSES = ("pause", "priority_pause")
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
    priority_pause: dict[Direction, Forms] = {}
    port_wide: tuple[str, ...] = ()
    not_losses: dict[str, str] = {}


class DriverTable(msgspec.Struct, frozen=True):
    """The whole table. ``select`` finds a port's rules."""

    fallback: DriverRules
    software: DriverRules
    kinds: Mapping[str, DriverRules]
    drivers: Mapping[str, DriverRules]

    def select(self, link: Link, driver: str) -> tuple[DriverRules, str]:
        """The rules for a link, and the source of its drop counts: ``driver`` (its own rules), ``rtnl`` or ``members``
        (the link repeats the counters of the links below it)."""
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
    files = sorted(Path(__file__).with_name(_FOLDER).glob("*.yaml"))
    return parse_table({f"{_FOLDER}/{file.name}": file.read_text("utf-8") for file in files})


def parse_table(files: Mapping[str, str]) -> DriverTable:
    """Check and merge the table's files (name → text); :class:`ConfigError` names the first mistake."""
    entries: dict[str, tuple[str, DriverRules]] = {}
    for where, text in files.items():
        file = convert(_File, read_yaml(text, where=where) or {}, where=where)
        rules_of = {"fallback": file.fallback, "software": file.software}
        rules_of |= {f"kinds.{name}": rules for name, rules in file.kinds.items()}
        rules_of |= {f"drivers.{name}": rules for name, rules in file.drivers.items()}
        for key, rules in rules_of.items():
            if rules is None:
                continue
            if key in entries:
                raise ConfigError(where, f"is defined in {entries[key][0]} as well", key=key)
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
    pattern = re.compile(re.escape(name.removesuffix("?")).replace("%d", r"\d+").replace("%s", ".*"))
    return [index for index, candidate in enumerate(names) if pattern.fullmatch(candidate)]


def alternatives(forms: Forms) -> Iterator[tuple[str, str]]:
    """(expression, condition) pairs in order of preference; the condition may be empty."""
    for form in [forms] if isinstance(forms, str) else forms:
        yield (form, "") if isinstance(form, str) else (form.sum, form.when)


def _check(rules: DriverRules, where: str, key: str, *, ethtool: bool) -> None:
    """Check what the types can't: fields exist, no frame counts under two causes, excluded names are unused."""
    used: set[str] = set()
    counted: dict[tuple[str, str, str], str] = {}
    for family in ("drops", "errors", *_PAUSES):
        for direction, causes in getattr(rules, family).items():
            forms = causes.items() if family not in _PAUSES else [("", causes)]
            for cause, choices in forms:
                at = ".".join(filter(None, (key, family, direction, cause)))
                for form, when in alternatives(choices):
                    names = [name.removesuffix("?") for _, name in terms(form)]
                    used.update(names)
                    _check_names(names, form, where, at, ethtool=ethtool)
                    _check_names([name for name in when.split(" < ") if when], when, where, at, ethtool=ethtool)
                    if when:
                        continue  # where the condition does not hold, another cause may use the same counter
                    kind = "pause" if family in _PAUSES else "loss"
                    for sign, name in terms(form):
                        other = counted.setdefault((kind, direction, name.removesuffix("?")), at) if sign == "+" else at
                        if other != at:
                            raise ConfigError(where, f"{name} is already counted in {other}", key=at, value=form)
    for name, reason in {**dict.fromkeys(rules.port_wide), **rules.not_losses}.items():
        if name in rules.port_wide and name not in used:
            raise ConfigError(where, f"{name} is not used in any rule", key=f"{key}.port_wide")
        if name in rules.not_losses and name in used:
            raise ConfigError(where, "is used in a rule", key=f"{key}.not_losses.{name}", value=reason)


def _check_names(names: Sequence[str], form: str, where: str, at: str, *, ethtool: bool) -> None:
    if len(set(names)) != len(names):
        raise ConfigError(where, "a counter is listed twice", key=at, value=form)
    for name in names:
        if name.startswith(RTNL):
            if name.removeprefix(RTNL) not in LinkStats._fields:
                raise ConfigError(where, f"the kernel's link statistics have no {name}", key=at, value=form)
        elif not name:
            raise ConfigError(where, "a counter's name is missing", key=at, value=form)
        elif not ethtool:
            raise ConfigError(where, f"{name}: only rtnl counters here, without a driver", key=at, value=form)


class Evidence(NamedTuple):
    """One port's counters, to evaluate conditions. ``rtnl`` must be read after ``ethtool``: if the driver added y to x,
    x then already includes the earlier y, so ``rtnl.x < y`` is a proof."""

    names: Sequence[str]
    ethtool: Sequence[int]
    rtnl: LinkStats


class Count(NamedTuple):
    """Frames of one direction and cause since the driver's last reset."""

    direction: str
    cause: str
    frames: int


class NicLoss(msgspec.Struct, frozen=True):
    """One port's losses. A missing cause is one that the driver can't report; 0 was measured."""

    drops: tuple[Count, ...] = ()
    errors: tuple[Count, ...] = ()
    pause: tuple[Count, ...] = ()  # Here and below cause is empty
    priority_pause: tuple[Count, ...] = ()


class Cell(msgspec.Struct, frozen=True):
    """One number to compute: indices of the counters to add and to subtract."""

    direction: str
    cause: str
    ethtool_plus: tuple[int, ...]
    ethtool_minus: tuple[int, ...]
    rtnl_plus: tuple[int, ...]
    rtnl_minus: tuple[int, ...]
    form: str = ""  # The chosen expression, to explain the number

    @property
    def subtracts(self) -> bool:
        """Whether the result is a difference, which may decrease when its counters are read at different moments."""
        return bool(self.ethtool_minus or self.rtnl_minus)


class Plan(msgspec.Struct, frozen=True):
    """Rules bound to the statistics of one port."""

    drops: tuple[Cell, ...]
    errors: tuple[Cell, ...]
    pause: tuple[Cell, ...]
    priority_pause: tuple[Cell, ...]
    needs_ethtool: bool  # Whether the scrape must query the driver
    undecided: bool = False  # A condition is neither proven nor impossible yet: bind again later


def bind(rules: DriverRules, names: Sequence[str], evidence: Evidence | None = None) -> Plan:
    """Bind the rules to a driver that reports these ``ethtool -S`` names, in this order."""
    driver_names = _Names(names, evidence)
    drops = tuple(_cells(rules.drops, driver_names))
    errors = tuple(_cells(rules.errors, driver_names))
    pause, priority = (
        tuple(_cells({side: {"": forms} for side, forms in rule.items()}, driver_names))
        for rule in (rules.pause, rules.priority_pause)
    )
    asked = any(cell.ethtool_plus or cell.ethtool_minus for cell in drops + errors + pause + priority)
    return Plan(drops, errors, pause, priority, asked, driver_names.undecided)


def losses(plan: Plan, ethtool: Sequence[int], rtnl: LinkStats | None) -> NicLoss:
    """The losses. ``ethtool``: the values in the order of the bound names, ignored if not needed. Cells that need
    ``rtnl`` without it, or a counter that does not count, are omitted; fields that this kernel lacks add nothing."""
    return NicLoss(
        tuple(_counts(plan.drops, ethtool, rtnl)),
        tuple(_counts(plan.errors, ethtool, rtnl)),
        tuple(_counts(plan.pause, ethtool, rtnl)),
        tuple(_counts(plan.priority_pause, ethtool, rtnl)),
    )


def hold(plan: Plan, before: NicLoss, now: NicLoss) -> NicLoss:
    """``now``, with differences kept from falling below ``before`` (same driver, not reset): the two sides are read a
    moment apart, and Prometheus takes a falling counter for a reset, whose whole value would count again."""
    if not any(cell.subtracts for cell in plan.drops + plan.errors):
        return now
    drops, errors = _held(plan.drops, before.drops, now.drops), _held(plan.errors, before.errors, now.errors)
    return NicLoss(drops, errors, now.pause, now.priority_pause)


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
        if cell.rtnl_plus or cell.rtnl_minus:
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
        # few totals are so large: the scrape looks at the counters of no other
        if not 0 <= total < _LEAST_ONES and not ALL_ONES.isdisjoint(
            ethtool[index] for index in (*cell.ethtool_plus, *cell.ethtool_minus)
        ):
            continue
        yield Count(cell.direction, cell.cause, max(total, 0))


def value(name: str, names: Sequence[str], ethtool: Sequence[int], rtnl: LinkStats | None) -> int | None:
    """The value of one table name on a port; ``None`` when the port has no such counter."""
    if name.startswith(RTNL):
        return rtnl[LinkStats._fields.index(name.removeprefix(RTNL))] if rtnl else None
    matches = matching(name, names)
    return sum(ethtool[index] for index in matches) if matches else None


class _Names:
    """A port's names, while rules are being bound to them."""

    def __init__(self, names: Sequence[str], evidence: Evidence | None) -> None:
        self.names, self.evidence, self.undecided = names, evidence, False

    def hold(self, when: str) -> bool:
        """Whether a condition holds; sets ``undecided`` when that may still change."""
        smaller, compared, larger = when.partition(" < ")
        if not all(name.startswith(RTNL) or matching(name, self.names) for name in (smaller, larger) if name):
            return False
        if not compared:
            return True
        left, right = (value(name, *self.evidence) if self.evidence else None for name in (smaller, larger))
        if left is not None and right is not None and left < right:
            return True
        self.undecided = True
        return False


def _cells(family: Mapping[Any, Mapping[Any, Forms]], driver_names: _Names) -> Iterator[Cell]:
    for direction, causes in family.items():
        for cause, forms in causes.items():
            for form, when in alternatives(forms):
                cell = _bind_form(direction, cause, form, driver_names.names)
                if cell is not None and (not when or driver_names.hold(when)):
                    yield cell
                    break


def _bind_form(direction: str, cause: str, form: str, names: Sequence[str]) -> Cell | None:
    """The cell for one expression; ``None`` when the driver lacks one of its ethtool names."""
    indices: dict[tuple[str, str], list[int]] = {}
    for sign, term in terms(form):
        if term.startswith(RTNL):
            indices.setdefault(("rtnl", sign), []).append(LinkStats._fields.index(term.removeprefix(RTNL)))
            continue
        matches = matching(term, names)
        if not matches and not term.endswith("?"):
            return None
        indices.setdefault(("ethtool", sign), []).extend(matches)
    ethtool_plus, ethtool_minus, rtnl_plus, rtnl_minus = (
        tuple(indices.get((side, sign), ())) for side in ("ethtool", "rtnl") for sign in ("+", "-")
    )
    if not ethtool_plus and not rtnl_plus:
        return None  # all terms were optional, and the driver has none of them
    return Cell(direction, cause, ethtool_plus, ethtool_minus, rtnl_plus, rtnl_minus, form)
