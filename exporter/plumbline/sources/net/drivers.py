"""Lost frames by cause, whatever the driver calls them. The meanings are data, see :mod:`.driverrules`.

Rules are bound once to the names a port really has, which leaves index lists; a scrape only adds numbers. Where a
driver's kernel fields mean one thing in one kernel and another in the next, stable updates and distributors' kernels
included, no version says which: an alternative then has a condition on the port's own counters, judged by
:class:`Evidence` when the rules are bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from plumbline.sources.net.driverrules import RTNL, DriverRules, Forms, alternatives, matching, terms
from plumbline.sources.net.links import LinkStats


class Evidence(NamedTuple):
    """One port's counters, to judge conditions by. ``rtnl`` was read after ``ethtool``.

    That order makes ``rtnl.x < y`` a proof: where the driver adds y into x, x has reached the earlier y already.
    """

    names: Sequence[str]
    ethtool: Sequence[int]
    rtnl: LinkStats


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
    form: str = ""
    """The expression that was taken, for whoever asks where the number comes from."""

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
    undecided: bool = False
    """A condition was neither proven nor impossible: bind again when the counters have moved on."""


def bind(rules: DriverRules, names: Sequence[str], evidence: Evidence | None = None) -> Plan:
    """The rules for a driver that gives these ``ethtool -S`` names, in this order."""
    found = _Names(names, evidence)
    drops = tuple(_cells(rules.drops, found))
    errors = tuple(_cells(rules.errors, found))
    pause = tuple(_cells({side: {"": forms} for side, forms in rules.pause.items()}, found))
    asked = any(cell.ethtool_plus or cell.ethtool_minus for cell in drops + errors + pause)
    return Plan(drops, errors, pause, asked, found.undecided)


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
        yield Count(cell.direction, cell.cause, max(total, 0))


def value(name: str, names: Sequence[str], ethtool: Sequence[int], rtnl: LinkStats | None) -> int | None:
    """What one name of the table counts on a port; ``None`` when the port has no such counter."""
    if name.startswith(RTNL):
        return rtnl[LinkStats._fields.index(name.removeprefix(RTNL))] if rtnl else None
    found = matching(name, names)
    return sum(ethtool[index] for index in found) if found else None


class _Names:
    """A port's names while rules are bound to them."""

    def __init__(self, names: Sequence[str], evidence: Evidence | None) -> None:
        self.names, self.evidence, self.undecided = names, evidence, False

    def hold(self, when: str) -> bool:
        """Whether a condition holds; remembers when that may still change."""
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


def _cells(family: Mapping[Any, Mapping[Any, Forms]], found: _Names) -> Iterator[Cell]:
    for direction, causes in family.items():
        for cause, forms in causes.items():
            for form, when in alternatives(forms):
                cell = _bind_form(direction, cause, form, found.names)
                if cell is not None and (not when or found.hold(when)):
                    yield cell
                    break


def _bind_form(direction: str, cause: str, form: str, names: Sequence[str]) -> Cell | None:
    """The cell for one expression; ``None`` when the driver lacks one of its ethtool names."""
    indices: dict[tuple[str, str], list[int]] = {}
    for sign, term in terms(form):
        if term.startswith(RTNL):
            indices.setdefault(("rtnl", sign), []).append(LinkStats._fields.index(term.removeprefix(RTNL)))
            continue
        found = matching(term, names)
        if not found and not term.endswith("?"):
            return None
        indices.setdefault(("ethtool", sign), []).extend(found)
    plus = (tuple(indices.get((side, "+"), ())) for side in ("ethtool", "rtnl"))
    minus = (tuple(indices.get((side, "-"), ())) for side in ("ethtool", "rtnl"))
    (ethtool_plus, rtnl_plus), (ethtool_minus, rtnl_minus) = plus, minus
    if not ethtool_plus and not rtnl_plus:
        return None  # every term was optional, and the driver has none of them
    return Cell(direction, cause, ethtool_plus, ethtool_minus, rtnl_plus, rtnl_minus, form)
