"""Alertmanager's inhibition, evaluated on label sets: ``amtool`` can't test it (prometheus/alertmanager#5167).

The semantics of ``inhibit/inhibit.go`` (0.25): an alert is muted when a rule's target matchers match it and some
firing alert matches the source matchers with the same values of all ``equal`` labels. A missing label is an empty
one, for matchers and for ``equal``. An alert that matches both sides of a rule can't be muted by another that
matches both sides, itself included. Sources count whether they are muted themselves or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from . import promql

Labels = Mapping[str, str]

_MATCHER = re.compile(
    r'\s*(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?P<operator>=~|!~|!=|=)\s*(?P<value>"(?:[^"\\]|\\.)*"|[^"]*?)\s*'
)


class Matcher(promql.Matcher):
    """The same as in PromQL, written otherwise."""

    @classmethod
    def parse(cls, text: str) -> Matcher:
        """One matcher as Alertmanager's configuration writes it; ``ValueError`` for anything else."""
        match = _MATCHER.fullmatch(text)
        if not match:
            raise ValueError(f"not a matcher: {text!r}")
        value = match["value"]
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        return cls(match["label"], match["operator"], value)


@dataclass(frozen=True, slots=True)
class InhibitRule:
    """One entry of ``inhibit_rules``."""

    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> InhibitRule:
        """From the parsed YAML; the old ``source_match`` keys are not known here and raise ``ValueError``."""
        unknown = entry.keys() - {"source_matchers", "target_matchers", "equal"}
        if unknown:
            raise ValueError(f"unknown keys in an inhibit rule: {sorted(unknown)}")
        return cls(
            tuple(Matcher.parse(text) for text in entry["source_matchers"]),
            tuple(Matcher.parse(text) for text in entry["target_matchers"]),
            tuple(entry.get("equal", ())),
        )

    def is_source(self, labels: Labels) -> bool:
        """Whether all source matchers match."""
        return all(matcher.matches(labels) for matcher in self.source)

    def is_target(self, labels: Labels) -> bool:
        """Whether all target matchers match."""
        return all(matcher.matches(labels) for matcher in self.target)

    def mutes(self, target: Labels, firing: Iterable[Labels]) -> bool:
        """Whether one of the firing alerts mutes ``target`` by this rule."""
        if not self.is_target(target):
            return False
        two_sided = self.is_source(target)
        return any(
            self.is_source(source)
            and all(source.get(label, "") == target.get(label, "") for label in self.equal)
            and not (two_sided and self.is_target(source))
            for source in firing
        )


def load_rules(path: Path) -> tuple[InhibitRule, ...]:
    """The ``inhibit_rules`` of an Alertmanager configuration."""
    return tuple(InhibitRule.of(entry) for entry in yaml.safe_load(path.read_text("utf-8")).get("inhibit_rules", ()))


def audible(rules: Sequence[InhibitRule], firing: Sequence[Labels]) -> list[Labels]:
    """The firing alerts that are notified: those no rule mutes."""
    return [alert for alert in firing if not any(rule.mutes(alert, firing) for rule in rules)]
