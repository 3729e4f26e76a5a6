"""Scales of a chart: map values to a fraction of its height, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to 0…1; ``ticks`` are in base units."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The position of ``value``, 0 to 1."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(values: Sequence[float], wanted: int = 4) -> Scale:
    """From 0 to a round number at or above the maximum, with about ``wanted`` steps."""
    highest = max(values, default=0.0)
    rough = (highest if highest > 0 else 1.0) / wanted
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    count = math.ceil(rough * wanted / step * 0.999)
    return Scale(0.0, count * step, False, tuple(index * step for index in range(count + 1)))


def logarithmic(values: Sequence[float]) -> Scale:
    """Between round numbers (1, 2, 5) that enclose all values; one tick per power of ten, more if there are few."""
    low, high = _round_log(min(values), up=False), _round_log(max(values), up=True)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    decades = math.log10(high / low)
    factors: tuple[int, ...] = (1,) if decades > 2.5 else (1, 3) if decades > 2 else (1, 2, 5)
    inside = (factor * 10.0**power for power in powers for factor in factors)
    return Scale(low, high, True, tuple(tick for tick in inside if low * 0.999 <= tick <= high * 1.001))


def _round_log(value: float, *, up: bool) -> float:
    power: float = 10.0 ** math.floor(math.log10(value))
    rounds = [power * factor for factor in (1, 2, 5, 10)]
    return next(r for r in rounds if r >= value * 0.999) if up else max(r for r in rounds if r <= value * 1.001)
