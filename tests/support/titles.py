"""The titles of alerts as Prometheus renders them: each alert's cheapest test, with its title as the only text."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .paces import seconds
from .promtool import run_tests
from .rulefiles import RuleSet, asked, cut, load, name_of, names_in
from .rules import ALERTS, ROOT, RULES, TEST_FILES

TABLE = ROOT / "tests" / "rules" / "texts" / "titles.yaml"
_GOT = re.compile(r'Labels:\{(?P<labels>.*)\}\n\s+Annotations:\{description=(?P<title>".*")\}')
_LABEL = re.compile(r'(\w+)=("(?:\\.|[^"\\])*")')


_IN_ALL_TESTS = ("PlumblineArrayDegraded", "PlumblineCephPgUnavailable", "PlumblineDown", "PlumblineMultipathPathLost")
"""Of these, every test: what they say depends on it."""


class Title(NamedTuple):
    """What one alert is titled, and the labels that Alertmanager sees of it."""

    text: str
    labels: dict[str, str]


def written() -> list[Title]:
    """The table; one line for each alert and severity."""
    return [Title(text, labels) for text, labels in load(TABLE)]


def table(titles: list[Title]) -> str:
    """The file that holds them."""
    lines = [f"- {json.dumps([text, labels], ensure_ascii=False)}\n" for text, labels in titles]
    return "# Titles of alerts in their tests, as Prometheus renders them: make golden writes them.\n" + "".join(lines)


def rendered(folder: Path) -> list[Title]:
    """One title for each alert and severity, by name."""
    rules = _titles_only()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = [*pool.map(_answer, _questions(rules, folder))]
    found: dict[tuple[str, str, str], Title] = {}
    for title in (title for answer in answers for title in answer):
        name = title.labels["alertname"]
        found.setdefault((name, title.labels["severity"], title.text if name in _IN_ALL_TESTS else ""), title)
    return [found[key] for key in sorted(found)]


def _titles_only() -> RuleSet:
    """All rules, with the title in place of the description, which :class:`RuleSet` would leave out."""
    titles = [rule["annotations"]["summary"] for group in load(ALERTS)["groups"] for rule in group["rules"]]
    rules = RuleSet.read(RULES, ALERTS)
    alerts = (rule for rule in rules.rules() if "alert" in rule)
    for rule, title in zip(alerts, titles, strict=True):
        rule["annotations"] = {"description": title}
    return rules


def _questions(rules: RuleSet, folder: Path) -> list[Path]:
    """Test files in which each alert is asked for once in each severity, and expected to say nothing. What fires
    because of other alerts has those of its test evaluated: asking for one does that, even before anything fires."""
    best: dict[tuple[str, str, int], tuple[float, dict[str, Any]]] = {}
    alerts = {name_of(rule) for rule in rules.rules() if "alert" in rule}
    by_others = {name_of(rule) for rule in rules.rules() if "alert" in rule and "ALERTS" in names_in(rule["expr"])}
    tests = [(content, test) for content in map(load, TEST_FILES) for test in content["tests"]]
    for whole, test in tests:
        for case in test.get("alert_rule_test", []):
            cost = seconds(case["eval_time"]) / seconds(whole["evaluation_interval"]) * len(test["input_series"])
            for alert in case["exp_alerts"]:
                number = len(best) if case["alertname"] in _IN_ALL_TESTS else 0
                key = (case["alertname"], alert["exp_labels"]["severity"], number)
                if key not in best or cost < best[key][0]:
                    question = {name: value for name, value in test.items() if name != "promql_expr_test"}
                    beside = asked(test) - {case["alertname"]} if case["alertname"] in by_others else set()
                    question["alert_rule_test"] = [case | {"exp_alerts": []}] + [
                        {"eval_time": "0m", "alertname": name, "exp_alerts": []} for name in sorted(beside & alerts)
                    ]
                    best[key] = (cost, whole | {"tests": [question]})
    parts: list[Path] = []
    for number, (_, question) in enumerate(best.values()):
        file = folder / f"{number}.json"
        file.write_text(json.dumps(question))
        parts += cut(rules, file, folder)
    return parts


def _answer(file: Path) -> list[Title]:
    return [
        Title(json.loads(got["title"]), {name: json.loads(value) for name, value in _LABEL.findall(got["labels"])})
        for got in _GOT.finditer(run_tests(file))
    ]
