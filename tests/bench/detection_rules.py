"""Rules over a stretch of the past: recording rules asked by range and written back, alerts followed as by Prometheus.

What differs from Prometheus's own rule manager, and how it is bridged:

- a recording rule's results reach the store a chunk of time at a time, in the order of the rules; a series that ends
  gets the marker Prometheus would write;
- groups are evaluated at their own moment within the interval, as Prometheus spreads them;
- ``for`` and ``keep_firing_for`` are followed by :func:`firing_spans` (rules/alerting.go, ``AlertingRule.Eval``).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bench.history_store import STALE, Labels, Series, Store, labels_of
from support.paces import seconds


@dataclass(frozen=True, slots=True)
class Rule:
    """A recording rule (``alert`` false) or an alert."""

    group: str
    name: str
    expr: str
    alert: bool
    labels: Mapping[str, str]
    for_s: float
    keep_firing_s: float
    interval_s: float
    offset_s: float
    """When in the interval its group is evaluated."""


@dataclass(frozen=True, slots=True)
class Firing:
    """One time that one alert fired; ``end_s`` is the first evaluation at which it did not."""

    alert: str
    severity: str
    labels: Mapping[str, str]
    start_s: float
    end_s: float


def read_rules(paths: Sequence[Path], interval_s: float) -> list[Rule]:
    """Every rule of rendered files, in order."""
    rules = []
    for path in paths:
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]:
            own_s = seconds(group["interval"]) if "interval" in group else interval_s
            offset_s = zlib.crc32(group["name"].encode()) % int(own_s)
            rules += [_rule(group["name"], each, own_s, offset_s) for each in group["rules"]]
    return rules


def _rule(group: str, each: Mapping[str, Any], interval_s: float, offset_s: float) -> Rule:
    return Rule(
        group=group,
        name=each.get("alert") or each["record"],
        expr=each["expr"],
        alert="alert" in each,
        labels=each.get("labels", {}),
        for_s=seconds(each.get("for", "")),
        keep_firing_s=seconds(each.get("keep_firing_for", "")),
        interval_s=interval_s,
        offset_s=offset_s,
    )


def needed(rules: Sequence[Rule], alerts: Iterable[str], left_out: Iterable[str] = ()) -> list[Rule]:
    """The ``alerts`` and what they stand on, each behind what it reads. ``left_out``: records without series here."""
    wanted, known = set(alerts), set(left_out)
    while wanted - known:
        known |= wanted
        wanted |= set().union(*(_reads(rule) for rule in rules if rule.name in wanted)) - set(left_out)
    # not by group: two groups may read from each other, and a chunk of time is evaluated rule by rule. Within a group
    # its own order holds: of several rules of one name, a rule may read those before it alone.
    waiting = [rule for rule in rules if rule.name in wanted]
    ordered: list[Rule] = []
    while waiting:
        ordered.append(waiting.pop(next(at for at in range(len(waiting)) if not _unknown(waiting, at))))
    return ordered


def _unknown(waiting: Sequence[Rule], at: int) -> set[str]:
    """What the rule at this place reads, and is still to be evaluated."""
    rule = waiting[at]
    first = {other.name for place, other in enumerate(waiting) if other.group != rule.group or place < at}
    return _reads(rule) & first


def _reads(rule: Rule) -> set[str]:
    return set(re.findall(r"\b(?:plumbline|rival):[a-z0-9_:]+", rule.expr))


def firing_spans(
    present_s: Sequence[float], steps_s: Sequence[float], for_s: float, keep_firing_s: float
) -> list[tuple[float, float]]:
    """(first, first not any more) of each time an alert fires whose expression has a result at ``present_s``."""
    there = set(present_s)
    spans: list[tuple[float, float]] = []
    active_s = fired_s = kept_s = None
    for step_s in steps_s:
        if step_s in there:
            kept_s = None
            active_s = step_s if active_s is None else active_s
            if fired_s is None and step_s - active_s >= for_s:
                fired_s = step_s
            continue
        if fired_s is not None and keep_firing_s:
            kept_s = step_s if kept_s is None else kept_s
            if step_s - kept_s < keep_firing_s:
                continue
        if fired_s is not None:
            spans.append((fired_s, step_s))
        active_s = fired_s = kept_s = None
    if fired_s is not None:
        spans.append((fired_s, steps_s[-1]))
    return spans


@dataclass(slots=True)
class Follower:
    """Evaluates rules chunk by chunk; remembers what it must from one chunk to the next."""

    store: Store
    rules: Sequence[Rule]
    _present: dict[int, set[Labels]] = field(default_factory=dict)
    _seen: dict[int, dict[Labels, list[float]]] = field(default_factory=dict)
    _steps: dict[int, list[float]] = field(default_factory=dict)

    def follow(self, start_s: float, end_s: float) -> None:
        """Evaluate from ``start_s`` (a multiple of all intervals) to before ``end_s``."""
        for index, rule in enumerate(self.rules):
            first_s = start_s + rule.offset_s
            steps = np.arange(first_s, end_s, rule.interval_s)
            answer = self.store.query_range(rule.expr, float(steps[0]), float(steps[-1]), rule.interval_s)
            if rule.alert:
                self._steps.setdefault(index, []).extend(steps.tolist())
                seen = self._seen.setdefault(index, {})
                for labels, values in answer:
                    seen.setdefault(labels_of("ALERTS", labels), []).extend(float(time) for time, _ in values)
            else:
                self.store.write(self._recorded(index, rule, answer, steps))

    def firings(self) -> list[Firing]:
        """All that has fired so far."""
        found = []
        for index, seen in self._seen.items():
            rule = self.rules[index]
            for labels, present_s in seen.items():
                spans = firing_spans(present_s, self._steps[index], rule.for_s, rule.keep_firing_s)
                found += [Firing(rule.name, rule.labels["severity"], dict(labels), *span) for span in spans]
        return found

    def _recorded(self, index: int, rule: Rule, answer: Any, steps: Any) -> list[Series]:
        out, before, now = [], self._present.get(index, set()), set()
        for labels, values in answer:
            place = labels_of(rule.name, {**labels, **rule.labels})
            column = np.full(len(steps) + 1, np.nan)
            at = np.rint((np.array([float(time) for time, _ in values]) - steps[0]) / rule.interval_s).astype(int)
            column[at + 1] = [float(value) for _, value in values]
            there = np.zeros(len(steps) + 1, bool)
            there[at + 1] = True
            there[0] = place in before
            ends = ~there[1:] & there[:-1]
            column[1:][ends] = STALE
            keep = there[1:] | ends
            out.append(Series(place, _ms(steps[keep]), column[1:][keep]))
            if there[-1]:
                now.add(place)
            before = before - {place}
        out += [Series(place, _ms(steps[:1]), np.array([STALE])) for place in before]
        self._present[index] = now
        return out


def _ms(times_s: Any) -> Any:
    return np.rint(times_s * 1000).astype(np.int64)
