"""Lost frames by cause, independent of each driver's names. :mod:`.driverrules` defines what the names mean.

Rules are bound once to the names a port has, which yields lists of indices; a scrape only adds numbers. The meaning
of a driver's kernel fields can change between kernels. Stable updates and distribution kernels change it too, so no
version number tells. Such alternatives have a condition on the port's own counters, evaluated against
:class:`Evidence` when the rules are bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from plumbline.sources.net.driverrules import RTNL, DriverRules, Forms, alternatives, matching, terms
from plumbline.sources.net.links import LinkStats


class Evidence(NamedTuple):
    """One port's counters, to evaluate conditions. ``rtnl`` must be read after ``ethtool``.

    That order makes ``rtnl.x < y`` a proof: if the driver added y to x, x would already include the earlier y.
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
    """One port's losses. A missing cause is one that the driver can't report; 0 was measured."""

    drops: tuple[Count, ...] = ()
    errors: tuple[Count, ...] = ()
    pause: tuple[Count, ...] = ()
    """Here ``cause`` is empty."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One number to compute: indices of the counters to add and to subtract."""

    direction: str
    cause: str
    ethtool_plus: tuple[int, ...]
    ethtool_minus: tuple[int, ...]
    rtnl_plus: tuple[int, ...]
    rtnl_minus: tuple[int, ...]
    form: str = ""
    """The chosen expression, to explain the number."""

    @property
    def subtracts(self) -> bool:
        """Whether the result is a difference, which may decrease when its counters are read at different moments."""
        return bool(self.ethtool_minus or self.rtnl_minus)


@dataclass(frozen=True, slots=True)
class Plan:
    """Rules bound to the statistics of one port."""

    drops: tuple[Cell, ...]
    errors: tuple[Cell, ...]
    pause: tuple[Cell, ...]
    needs_ethtool: bool
    """Whether the scrape must query the driver."""
    undecided: bool = False
    """A condition is neither proven nor impossible yet: bind again once the counters have advanced."""


def bind(rules: DriverRules, names: Sequence[str], evidence: Evidence | None = None) -> Plan:
    """Bind the rules to a driver that reports these ``ethtool -S`` names, in this order."""
    found = _Names(names, evidence)
    drops = tuple(_cells(rules.drops, found))
    errors = tuple(_cells(rules.errors, found))
    pause = tuple(_cells({side: {"": forms} for side, forms in rules.pause.items()}, found))
    asked = any(cell.ethtool_plus or cell.ethtool_minus for cell in drops + errors + pause)
    return Plan(drops, errors, pause, asked, found.undecided)


def losses(plan: Plan, ethtool: Sequence[int], rtnl: LinkStats | None) -> NicLoss:
    """Compute the losses. ``ethtool`` holds the values in the order of the bound names; it is ignored if not needed.

    Without ``rtnl``, cells that need it are omitted. Fields that this kernel lacks add nothing.
    """
    return NicLoss(
        tuple(_counts(plan.drops, ethtool, rtnl)),
        tuple(_counts(plan.errors, ethtool, rtnl)),
        tuple(_counts(plan.pause, ethtool, rtnl)),
    )


def hold(plan: Plan, before: NicLoss, now: NicLoss) -> NicLoss:
    """Return ``now``, with counters that are differences kept from falling below ``before``.

    The two sides of a difference are read a moment apart, so it may be a few frames low until the next read. To
    Prometheus a falling counter has been reset, and its whole value would count again. Only for two readings
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
    """The value of one table name on a port; ``None`` when the port has no such counter."""
    if name.startswith(RTNL):
        return rtnl[LinkStats._fields.index(name.removeprefix(RTNL))] if rtnl else None
    found = matching(name, names)
    return sum(ethtool[index] for index in found) if found else None


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
        return None  # all terms were optional, and the driver has none of them
    return Cell(direction, cause, ethtool_plus, ethtool_minus, rtnl_plus, rtnl_minus, form)
