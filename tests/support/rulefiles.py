"""Which rule reads which, and promtool test files cut down to what one question needs.

promtool evaluates every rule of its files at every step of every test. A test of one alert needs that alert and the
recording rules below it, so cutting saves nine tenths of the time and changes no verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml

from . import promql
from .promql import Binary, Call, Node, Selector

Rule = dict[str, Any]
"""One rule as the YAML has it."""

_NAME = re.compile(r"(?<![\w:$])[a-zA-Z_:][\w:]*")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)|\{[^{}]*\}")
LINKS = ("runbook_url", "dashboard_url")
ELSEWHERE = (*LINKS, "rank", "summary")
"""Annotations that one place writes for every alert: ``test_links.py`` follows the links, ``test_titles.py`` has the
others. Tests of an alert leave them out."""
_ADDED = re.compile(r"\n(?:This has lasted for at least|First:) [^\n]*")
"""Lines that one place adds to every description: ``test_texts.py`` holds them, tests of an alert leave them out."""
_LABEL = re.compile(r'(\w+)="((?:\\.|[^"\\])*)"')
_SCRAPED = ("plumbline_", "ceph_", "prometheus_", "alertmanager_", "scrape_")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(path: Path) -> Any:
    """A YAML file, by the C parser where there is one: these files are long."""
    return yaml.load(path.read_bytes(), _LOADER)


def name_of(rule: Rule) -> str:
    """The alert's or the recorded metric's name; several rules may share one."""
    name: str = rule.get("alert") or rule["record"]
    return name


def names_in(text: str) -> set[str]:
    """Every word of an expression that could be a metric; strings and names of labels left out."""
    return set(_NAME.findall(_LABELS.sub(" ", _STRING.sub('""', text))))


def words_of(rule: Rule) -> set[str]:
    """What a rule reads in its expression and in the queries of its annotations' templates."""
    return names_in(rule["expr"]).union(*(_NAME.findall(text) for text in rule.get("annotations", {}).values()))


def always_firing(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Rule:
    """An alert of this name that always fires with these labels."""
    expr = "vector(1)"
    for label, value in labels.items():
        expr = f"label_replace({expr}, {json.dumps(label)}, {json.dumps(value.replace('$', '$$'))}, '', '')"
    return {"alert": name, "expr": expr, "annotations": dict(annotations)}


def metric_of(series: str) -> str:
    """``a{b="c"}`` → ``a``."""
    return series.partition("{")[0].strip()


def labels_of(series: str) -> dict[str, str]:
    """``a{b="c"}`` → ``{"b": "c"}``."""
    return dict(_LABEL.findall(series))


@dataclass(frozen=True)
class RuleSet:
    """All groups in the order in which they are evaluated: recording rules first."""

    groups: tuple[tuple[str, tuple[Rule, ...]], ...]

    @classmethod
    def read(cls, *paths: Path) -> RuleSet:
        """From rendered files, in the order given; without :data:`ELSEWHERE` and what every description gets."""
        groups = [group for path in paths for group in load(path)["groups"]]
        for rule in (rule for group in groups for rule in group["rules"]):
            annotations = rule.get("annotations", {})
            for name in ELSEWHERE:
                annotations.pop(name, None)
            if "description" in annotations:
                annotations["description"] = _ADDED.sub("", annotations["description"])
        return cls(tuple((group["name"], tuple(group["rules"])) for group in groups))

    def rules(self) -> list[Rule]:
        """Every rule, in order."""
        return [rule for _, rules in self.groups for rule in rules]

    def names(self) -> list[str]:
        """Every name once, in order."""
        return list(dict.fromkeys(name_of(rule) for rule in self.rules()))

    @cached_property
    def _reads_in_words(self) -> dict[str, set[str]]:
        return self._reads(words_of)

    @cached_property
    def _reads_in_expressions(self) -> dict[str, set[str]]:
        return self._reads(lambda rule: names_in(rule["expr"]))

    def _reads(self, of: Callable[[Rule], set[str]]) -> dict[str, set[str]]:
        reads: dict[str, set[str]] = {}
        for rule in self.rules():
            reads.setdefault(name_of(rule), set()).update(of(rule))
        return reads

    def reading(self, word: str) -> set[str]:
        """Names of the rules that read ``word`` themselves, in a template too."""
        return {name for name, read in self._reads_in_words.items() if word in read}

    def below(self, names: Iterable[str]) -> set[str]:
        """``names`` and all recorded metrics that they read, directly or not, in a template too."""
        reads = self._reads_in_words
        found: set[str] = set()
        pending = [name for name in names if name in reads]
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += [each for each in reads[name] if each in reads]
        return found

    def above(self, name: str) -> set[str]:
        """``name`` and everything that reads it, directly or not."""
        reads = self._reads_in_expressions
        found = {name}
        while more := {each for each, of in reads.items() if of & found} - found:
            found |= more
        return found

    def leaves(self, name: str, given: Collection[str]) -> set[str]:
        """What decides about ``name``: metrics that are scraped (ours, Ceph's, Prometheus' and Alertmanager's own), and
        those of ``given`` that rules record, which then come from outside and hide what lies below them."""
        reads = self._reads_in_expressions
        found: set[str] = set()
        pending, seen = [name], {name}
        while pending:
            for word in reads[pending.pop()]:
                if word in given or word not in reads:
                    found.add(word)
                elif word not in seen:
                    seen.add(word)
                    pending.append(word)
        return {word for word in found if word in given or word.startswith(_SCRAPED) or word in {"up", "ALERTS"}}

    def fed(self, given: Iterable[str]) -> set[str]:
        """Names of the rules that can have a result where only the series ``given`` are (``a{b="c"}``): these or other
        such rules feed them, on both sides of an operator that joins."""
        series: dict[str, list[dict[str, str]]] = {}
        for each in set(given):
            series.setdefault(metric_of(each), []).append(labels_of(each))
        recorded = {"ALERTS"}

        def has(selector: Selector) -> bool:
            return (
                not selector.metric
                or selector.metric in recorded
                or any(
                    all(matcher.matches(labels) for matcher in selector.matchers)
                    for labels in series.get(selector.metric, ())
                )
            )

        while True:
            words = {*series, *recorded, "absent", "absent_over_time", "vector", "scalar", "time"}
            near = {name for name, read in self._reads_in_expressions.items() if read & words or not read} - recorded
            more = {name for name in near if any(map(partial(_alive, has), self._trees[name]))}
            if not more:
                return recorded - {"ALERTS"}
            recorded |= more

    @cached_property
    def _trees(self) -> dict[str, list[Node]]:
        trees: dict[str, list[Node]] = {}
        for rule in self.rules():
            trees.setdefault(name_of(rule), []).append(promql.parse(rule["expr"]))
        return trees

    def only(self, keep: Callable[[Rule], Iterable[Rule]]) -> dict[str, Any]:
        """A rule file of the rules that ``keep`` gives for each; groups left empty are left out."""
        cut = [(name, [each for rule in rules for each in keep(rule)]) for name, rules in self.groups]
        return {"groups": [{"name": name, "rules": rules} for name, rules in cut if rules]}

    def named(self, names: Collection[str]) -> dict[str, Any]:
        """A rule file of the rules of these names."""
        return self.only(lambda rule: [rule] if name_of(rule) in names else [])


def _alive(has: Callable[[Selector], bool], node: Node) -> bool:
    """Whether an expression can have a result, by what its selectors find."""
    alive = partial(_alive, has)
    match node:
        case Selector():
            return has(node)
        case Call("absent" | "absent_over_time" | "scalar" | "vector" | "time"):
            return True
        case Binary("or", left, right):
            return alive(left) or alive(right)
        case Binary("unless", left):
            return alive(left)
    return all(map(alive, promql.children(node)))


def asked(test: Mapping[str, Any]) -> set[str]:
    """Alerts and metrics that a test of a promtool file asks for."""
    names = {case["alertname"] for case in test.get("alert_rule_test", [])}
    for case in test.get("promql_expr_test", []):
        names |= names_in(case["expr"]) | set(re.findall(r'alertname="(\w+)"', case["expr"]))
    return names


def needing(
    rules: RuleSet, tests: Iterable[dict[str, Any]], every: Collection[dict[str, Any]]
) -> dict[frozenset[str], list[dict[str, Any]]]:
    """Names of rules → those of ``tests`` that need these and no other; ``every`` test of their file.

    A rule that a test's series feed nothing to is not needed: a canary's text asks the OSDs' verdicts, and most of its
    tests have no OSD. What reads ``ALERTS`` may mean any alert: there, all that the file's tests ask for.
    """
    of_alerts = rules.reading("ALERTS")
    below = {question: rules.below(question) for question in {frozenset(asked(test)) for test in every}}
    together: dict[frozenset[str], list[dict[str, Any]]] = {}
    for test in tests:
        question = frozenset(asked(test))
        any_alert = "ALERTS" in question or below[question] & of_alerts
        wanted = frozenset().union(*below.values()) if any_alert else frozenset(below[question])
        fed = rules.fed(series["series"] for series in test["input_series"])
        together.setdefault(wanted & (fed | question), []).append(test)
    return together


def cut(rules: RuleSet, file: Path, folder: Path) -> list[Path]:
    """Copies of a promtool file in ``folder``: tests that need the same rules share one, with these and no other."""
    content = load(file)
    return [
        _part(content | {"tests": tests}, rules.named(wanted), folder / f"{file.stem}.{number}.json")
        for number, (wanted, tests) in enumerate(needing(rules, content["tests"], content["tests"]).items())
    ]


def _part(content: dict[str, Any], rules: dict[str, Any], target: Path) -> Path:
    rule_file = target.with_suffix(".rules.json")
    rule_file.write_text(json.dumps(rules), "utf-8")
    order = [group["name"] for group in rules["groups"]]
    target.write_text(json.dumps(content | {"rule_files": [rule_file.name], "group_eval_order": order}), "utf-8")
    return target
