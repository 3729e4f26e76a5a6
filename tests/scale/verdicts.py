"""Do two servers say the same? Series over the last minutes, alerts and what Alertmanagers were told, as differences.

Both sides scrape and evaluate at moments of their own, so single samples differ. What is compared of a series is the
span of its values over a window: the spans of both sides have to touch, give or take a tolerance. Which series there
are, and which alerts in which state, has to be equal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from preview.answers import Server
from support.daemon import eventually
from support.rules import ALERTS, RULES, rules_of

WINDOW_S, STEP_S = 180, 15
TOLERANCE = 0.05
"""Of a value: what rates over a minute may differ by when scrapes come up to a second late on a busy machine."""
_CHOICE = re.compile(r"\b(?:topk|bottomk)\s*(?:by\s*\([^)]*\)\s*)?\(\s*\d+\s*,")
_ASKED = re.compile(r"(?<=[?&]prometheus=)[^&]+")
"""The server that a runbook's commands ask: each side's own."""
_FIGURE = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?")

ROUNDING = 1e-7
"""Seen: 3e-8 s, between means of latencies."""

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Span:
    """The least and the greatest value; without any number both are NaN."""

    least: float
    most: float

    def touches(self, other: Span) -> bool:
        """Whether some value of one is some value of the other, within the tolerance. NaN is equal to NaN alone."""
        if self.least != self.least or other.least != other.least:
            return self.least != self.least and other.least != other.least
        reach = max(ROUNDING, TOLERANCE * max(map(abs, (self.least, self.most, other.least, other.most))))
        return self.least - reach <= other.most and other.least - reach <= self.most

    def is_rounding(self) -> bool:
        """Whether all values are as near to 0 as the difference of two equal figures."""
        return max(abs(self.least), abs(self.most)) < ROUNDING


def spans(url: str, query: str, end_s: float) -> dict[Labels, Span]:
    """Every series that the query had in the window before ``end_s``."""
    asked = {"query": query, "start": str(end_s - WINDOW_S), "end": str(end_s), "step": str(STEP_S)}
    return {
        frozenset(each["metric"].items()): _span(float(value) for _, value in each["values"])
        for each in Server(url).get("query_range", asked)["result"]
    }


def series_differences(one: Mapping[Labels, Span], many: Mapping[Labels, Span]) -> list[str]:
    """A line for each series that only one side has, and for each whose values differ. A rule records what is above 0,
    and of two equal figures the difference is a rounding error on either side of it: that is no series."""
    alone = one.keys() - many.keys(), many.keys() - one.keys()
    lines = [f"only the one Prometheus has {_shown(labels)}" for labels in alone[0] if not one[labels].is_rounding()]
    lines += [f"only Thanos has {_shown(labels)}" for labels in alone[1] if not many[labels].is_rounding()]
    lines += [
        f"{_shown(labels)}: {one[labels]} and {many[labels]}"
        for labels in one.keys() & many.keys()
        if not one[labels].touches(many[labels])
    ]
    return sorted(lines)


def without_choice(query: str) -> str:
    """The query for all that ``topk`` chooses from: of equal ones each server may choose others."""
    return _CHOICE.sub("(", query)


def alerts(url: str) -> dict[Labels, tuple[str, frozenset[str]]]:
    """Every pending or firing alert of a server's own rules: labels → state, and texts without figures."""
    return {
        frozenset(alert["labels"].items()): (
            alert["state"],
            frozenset(
                f"{name}: {_FIGURE.sub('#', _ASKED.sub('', text))}" for name, text in alert["annotations"].items()
            ),
        )
        for rule in rules(url)
        for alert in rule.get("alerts") or ()
    }


def rules(url: str) -> list[dict[str, Any]]:
    """Every rule with its ``health`` and ``lastError``."""
    groups: list[dict[str, Any]] = Server(url).get("rules", {})["groups"]
    return [rule for group in groups for rule in group["rules"]]


def evaluation_problems(url: str) -> list[str]:
    """A line for each committed rule that a server lacks, for each that it has besides, and for each that failed."""
    committed = Counter(rule.get("record") or rule["alert"] for file in (RULES, ALERTS) for rule in rules_of(file))
    there = rules(url)
    evaluated = Counter(rule["name"] for rule in there)
    lines = [f"not there: {name}" for name in (committed - evaluated).elements()]
    lines += [f"not ours: {name}" for name in (evaluated - committed).elements()]
    return lines + [f"{rule['name']}: {rule['lastError']}" for rule in there if rule.get("lastError")]


def none_left(differences: Callable[[], list[str]], within_s: float) -> None:
    """Until both sides agree; the last differences are shown."""

    def none() -> bool:
        found = differences()
        for line in found[:20]:
            print(" ", line, flush=True)
        return not found

    eventually(none, within_s=within_s, every_s=10)


def alert_differences(one: Mapping[Labels, Any], many: Mapping[Labels, Any], other: str = "Thanos") -> list[str]:
    """A line for each alert that only one side has, or has in another state or with other words."""
    lines = [f"only the one Prometheus has {_shown(labels)} {one[labels]}" for labels in one.keys() - many.keys()]
    lines += [f"only {other} has {_shown(labels)} {many[labels]}" for labels in many.keys() - one.keys()]
    lines += [
        f"{_shown(labels)}: {one[labels]} and {many[labels]}"
        for labels in one.keys() & many.keys()
        if one[labels] != many[labels]
    ]
    return sorted(lines)


def told(sent: Iterable[Mapping[str, Any]]) -> dict[Labels, str]:
    """What an Alertmanager has, by labels: suppressed or active."""
    return {frozenset(each["labels"].items()): each["status"]["state"] for each in sent}


def names(found: Mapping[Labels, Any], state: str) -> set[str]:
    """Names of the alerts in this state."""
    return {dict(labels)["alertname"] for labels, (now, _) in found.items() if now == state}


def _span(values: Iterator[float]) -> Span:
    numbers = [value for value in values if value == value]
    return Span(min(numbers), max(numbers)) if numbers else Span(float("nan"), float("nan"))


def _shown(labels: Labels) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in sorted(labels)) + "}"
