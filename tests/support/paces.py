"""How fast each recorded series is: promtool ignores a group's ``interval``, so no unit test sees a pace.

Seconds everywhere. A series that two groups record is as slow as the slower of them; one that is scraped as slow as
:data:`SCRAPE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import promql
from .rulefiles import load
from .rules import ALERTS, RULES

EVALUATION = 60
"""The slowest ``evaluation_interval`` that the configuration allows (``alerts/config.libsonnet``)."""
SCRAPE = 60
"""The slowest scrape in use (``ceph.window`` in the configuration)."""
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(duration: str) -> float:
    """``4m7s`` → 247."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdw])", duration))


@dataclass(frozen=True)
class Paces:
    """The groups of rendered rule files, as far as their speed goes."""

    groups: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls) -> Paces:
        """Those of the committed rules and alerts."""
        return cls(tuple(group for path in (RULES, ALERTS) for group in load(path)["groups"]))

    @cached_property
    def recorded(self) -> dict[str, float]:
        """Recorded metric → seconds between two of its samples."""
        paces: dict[str, float] = {}
        for group in self.groups:
            for rule in group["rules"]:
                if name := rule.get("record"):
                    paces[name] = max(paces.get(name, 0), self.of_group(group))
        return paces

    @cached_property
    def _reads(self) -> dict[str, set[str]]:
        reads: dict[str, set[str]] = {}
        for group in self.groups:
            for rule in group["rules"]:
                if name := rule.get("record"):
                    reads.setdefault(name, set()).update(metrics_of(rule["expr"]))
        return reads

    @staticmethod
    def of_group(group: Mapping[str, Any]) -> float:
        """Seconds between two evaluations."""
        return seconds(group["interval"]) if "interval" in group else EVALUATION

    def pace(self, metric: str) -> float:
        """Seconds between two samples of a series."""
        return self.recorded.get(metric, SCRAPE)

    def slow_inputs(self, expr: str, than: float, except_for: Iterable[str]) -> set[str]:
        """Recorded metrics below an expression, directly or not, slower than this; none below ``except_for``."""
        left_out, found, pending, seen = set(except_for), set[str](), metrics_of(expr), set[str]()
        while pending:
            name = pending.pop()
            if name in seen or name in left_out or name not in self.recorded:
                continue
            seen.add(name)
            if self.recorded[name] > than:
                found.add(name)
            pending |= self._reads[name]
        return found


def metrics_of(expr: str) -> set[str]:
    """Every metric that an expression reads."""
    return {selector.metric for selector in promql.selectors(promql.parse(expr))}
