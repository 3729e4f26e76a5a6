"""Rows of the lab's table: what the kernel's own tools say, what the daemon says, and whether that is the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lab.guest import Guest

RIGHT, WRONG, UNSHOWN = "right", "wrong", "not shown"


class NotShown(Exception):
    """This guest can't show it; says why, in a few words."""


@dataclass(frozen=True, slots=True)
class Seen:
    """``truth`` by the kernel's tools and ``figure`` by the daemon: numbers, words, or several of either by name.
    Numbers may differ by ``tolerance``, in their unit: a counter that goes on between the two looks."""

    truth: object
    figure: object
    tolerance: float = 0.0

    def right(self) -> bool:
        """Whether they agree. What neither of them says is no agreement."""
        return _empty(self.truth) is False and _same(self.truth, self.figure, self.tolerance)


@dataclass(frozen=True, slots=True)
class Row:
    """``look`` does what it takes, a fault, too, and returns both sides."""

    device: str
    feature: str
    look: Callable[[Guest], Seen]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are taken in their order, after ``prepare``; a ``long`` one only by its name."""

    name: str
    rows: tuple[Row, ...]
    prepare: Callable[[Guest], object] | None = None
    long: bool = False


def said(value: object) -> str:
    """As the report shows it."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:.6g}" if value != int(value) else f"{int(value)}"
        case dict():
            return ", ".join(f"{name} {said(value[name])}" for name in sorted(value)) or "none"
        case set() | frozenset() | list() | tuple():
            return ", ".join(sorted(map(said, value))) or "none"
    return str(value)


def _empty(value: object) -> bool:
    return value is None or value == "" or value in ({}, set(), [], ())


def _same(truth: object, figure: object, tolerance: float) -> bool:
    if isinstance(truth, dict) and isinstance(figure, dict):
        return truth.keys() == figure.keys() and all(_same(truth[name], figure[name], tolerance) for name in truth)
    if isinstance(truth, int | float) and isinstance(figure, int | float):
        return math.isclose(truth, figure, rel_tol=1e-9, abs_tol=max(tolerance, 1e-12))
    return truth == figure
