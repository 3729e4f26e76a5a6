"""Run the promtool tests against mutated rules: which mistakes would they let pass?

All mutants of one rule stand side by side in one rule file, each under a name of its own together with what reads it,
and every test asks for each of them: one promtool run, one loading of the series, many verdicts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .mutants import Mutant, mutants_of
from .paces import seconds
from .promtool import run_tests
from .rulefiles import RuleSet, asked, load, metric_of, name_of, names_in, needing, words_of
from .rules import ALERTS, RULES, TEST_FILES

_MARK = re.compile(r"_mutant(\d+)_")
RULES_AT_ONCE = 240
"""More in a file and promtool's memory grows for nothing."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The rules and the tests, parsed once."""

    rules: RuleSet
    files: tuple[tuple[Path, dict[str, Any]], ...]

    @classmethod
    def read(cls) -> Suite:
        """What is committed."""
        return cls(RuleSet.read(RULES, ALERTS), tuple((path, load(path)) for path in TEST_FILES))

    def mutants(self, name: str) -> list[Mutant]:
        """All of the rules of one name."""
        rules = [rule for rule in self.rules.rules() if name_of(rule) == name]
        return [mutant for which, rule in enumerate(rules) for mutant in mutants_of(rule, which)]

    def cost(self, name: str) -> float:
        """How often the tests of an alert evaluate it, about."""
        return sum(_cost(file, test) for _, file in self.files for test in file["tests"] if name in asked(test))


class HarnessError(Exception):
    """The unchanged rule failed, or promtool could not read what we wrote: no verdict is worth anything."""


def survivors(suite: Suite, mutants: Sequence[Mutant], folder: Path) -> list[Mutant]:
    """Those of the mutants (all of one name) that every test lets pass. Cheap tests are asked first."""
    name = mutants[0].name
    above = suite.rules.above(name)
    alive = dict(enumerate(mutants, start=1))
    for tests in _rounds(suite, above):
        clones = sum(1 for rule in suite.rules.rules() if name_of(rule) in above)
        size = max(1, RULES_AT_ONCE // clones)
        numbers = sorted(alive)
        for at in range(0, len(numbers), size):
            for killed in _killed(suite, {n: alive[n] for n in numbers[at : at + size]}, above, tests, folder):
                del alive[killed]
        if not alive:
            break
    return list(alive.values())


Tests = list[tuple[Path, dict[str, Any], list[dict[str, Any]]]]
"""Test file, what stands in it, and the chosen ones of its tests."""


def _rounds(suite: Suite, above: set[str]) -> Iterator[Tests]:
    """The tests that ask for one of ``above``, in rounds of growing cost."""
    priced = sorted(
        (
            (_cost(file, test), index, path, file, test)
            for path, file in suite.files
            for index, test in enumerate(file["tests"])
            if asked(test) & above
        ),
        key=lambda each: (each[0], str(each[2]), each[1]),
    )
    limit = 500.0
    while priced:
        chosen: list[tuple[Path, Any, Any]] = []
        spent = 0.0
        while priced and (not chosen or spent + priced[0][0] <= limit):
            cost, _, path, file, test = priced.pop(0)
            chosen.append((path, file, test))
            spent += cost
        limit *= 6
        paths = dict.fromkeys(path for path, _, _ in chosen)
        yield [
            (path, next(f for p, f, _ in chosen if p == path), [t for p, _, t in chosen if p == path]) for path in paths
        ]


def _cost(file: dict[str, Any], test: dict[str, Any]) -> float:
    """Evaluations, about."""
    cases = [*test.get("alert_rule_test", []), *test.get("promql_expr_test", [])]
    return max((seconds(str(case["eval_time"])) for case in cases), default=0) / seconds(file["evaluation_interval"])


def _killed(suite: Suite, mutants: dict[int, Mutant], above: set[str], tests: Tests, folder: Path) -> set[int]:
    """Numbers of the mutants that a test notices. Number 0 is the unchanged rule: it must pass."""
    dead: set[int] = set()
    while len(dead) < len(mutants):
        alive = {number: mutant for number, mutant in mutants.items() if number not in dead}
        said = _promtool(suite, alive, above, tests, folder)
        found = {int(number) for number in _MARK.findall(said)}
        if 0 in found or (said and not found) or "could not parse expression" in said:
            raise HarnessError(f"{next(iter(mutants.values())).name}: {said[:2000]}")
        dead |= found
        # a rule that can't be evaluated ends its test before the others were asked
        if not re.search(r"\brule: .*\berr: ", said):
            break
    return dead


def _promtool(suite: Suite, mutants: dict[int, Mutant], above: set[str], tests: Tests, folder: Path) -> str:
    """What promtool complains of; empty when all pass."""
    wanted = suite.rules.below(above) - above
    if any("ALERTS" in names_in(rule["expr"]) for rule in suite.rules.rules() if name_of(rule) in wanted | above):
        # which alerts these rules read no name says: those that the tests of a file want to see
        wanted |= (
            suite.rules.below(name for _, file, _ in tests for test in file["tests"] for name in asked(test)) - above
        )

    def keep(rule: dict[str, Any], needed: frozenset[str], seen: dict[str, int]) -> Iterator[dict[str, Any]]:
        name = name_of(rule)
        if name in wanted & needed:
            yield rule
        elif name in above & needed:
            which = seen[name] = seen.get(name, -1) + 1
            yield _renamed(rule, above, 0)
            for number, mutant in mutants.items():
                hit = (mutant.name, mutant.which) == (name, which)
                yield _renamed(mutant.rule if hit else rule, above, number)

    paths = []
    parts = [
        (path, file, *part)
        for path, file, chosen in tests
        for part in needing(suite.rules, chosen, file["tests"]).items()
    ]
    for number, (path, file, needed, alike) in enumerate(parts):
        content = suite.rules.only(partial(keep, needed=needed, seen={}))
        words = set().union(*(words_of(rule) for group in content["groups"] for rule in group["rules"]))
        rule_file, target = folder / f"{number}.rules.json", folder / f"{path.stem}.{number}.json"
        rule_file.write_text(json.dumps(content), "utf-8")
        cut = {
            "rule_files": [rule_file.name],
            "evaluation_interval": file["evaluation_interval"],
            "group_eval_order": [group["name"] for group in content["groups"]],
            "tests": [_asking(test, [0, *mutants], above, words) for test in alike],
        }
        target.write_text(json.dumps(cut), "utf-8")
        paths.append(target)
    return run_tests(*paths)


def _asking(test: dict[str, Any], numbers: Sequence[int], above: set[str], words: set[str]) -> dict[str, Any]:
    """A test that asks for every mutant what it asked for the rule."""
    alerts = [case for case in test.get("alert_rule_test", []) if case["alertname"] in above]
    exprs = [
        case
        for case in test.get("promql_expr_test", [])
        if (names_in(case["expr"]) | set(re.findall(r'alertname="(\w+)"', case["expr"]))) & above
    ]
    words = words.union(*(names_in(case["expr"]) for case in exprs))
    return {
        **{key: test[key] for key in ("name", "interval", "external_labels", "external_url") if key in test},
        "input_series": list(_fed(test["input_series"], numbers, above, words)),
        "alert_rule_test": [{**case, "alertname": _name(case["alertname"], n)} for n in numbers for case in alerts],
        "promql_expr_test": [
            {
                **case,
                "expr": _text(case["expr"], above, n),
                "exp_samples": [
                    {**sample, "labels": _text(sample["labels"], above, n)} for sample in case.get("exp_samples") or []
                ],
            }
            for n in numbers
            for case in exprs
        ],
    }


def _fed(
    series: Iterable[dict[str, str]], numbers: Iterable[int], above: set[str], words: set[str]
) -> Iterator[dict[str, str]]:
    """What is read of a test's series. A recorded one that it writes down stands for each mutant's own."""
    for each in series:
        metric = metric_of(each["series"])
        if metric in above:
            yield from ({**each, "series": _name(metric, n) + each["series"].removeprefix(metric)} for n in numbers)
        elif metric in words:
            yield each


def _name(name: str, number: int) -> str:
    return f"{name}_mutant{number}_"


def _text(text: str, above: set[str], number: int) -> str:
    """The names of ``above`` in a text, as this mutant's."""
    return re.sub(
        r"(?<![\w:])[a-zA-Z_:][\w:]*",
        lambda match: _name(match.group(), number) if match.group() in above else match.group(),
        text,
    )


def _renamed(rule: dict[str, Any], above: set[str], number: int) -> dict[str, Any]:
    kind = "alert" if "alert" in rule else "record"
    renamed = {**rule, kind: _name(rule[kind], number), "expr": _text(rule["expr"], above, number)}
    if "annotations" in rule:
        # recorded metrics, and alerts where a query selects them: the links keep the alert's true name, which is what
        # the tests expect
        recorded = {name for name in above if ":" in name}
        renamed["annotations"] = {
            key: re.sub(
                r'alertname="\w+"', lambda match: _text(match.group(), above, number), _text(text, recorded, number)
            )
            for key, text in rule["annotations"].items()
        }
    return renamed


def only_quiet(suite: Suite) -> Suite:
    """The same rules, and of the tests what expects that no alert fires."""
    files = []
    for path, file in suite.files:
        tests = [
            {
                **test,
                "alert_rule_test": [case for case in test.get("alert_rule_test", []) if not case["exp_alerts"]],
                "promql_expr_test": [],
            }
            for test in file["tests"]
        ]
        files.append((path, {**file, "tests": tests}))
    return Suite(suite.rules, tuple(files))


def looser(mutant: Mutant) -> bool:
    """Whether it fires where the rule says nothing: a threshold moved towards the healthy side, or turned round."""
    found = re.search(r"([<>]=?|==|!=)(?: bool)?(?: on \([^)]*\))? «([\d.e+-]+) -> ([\d.e+-]+)»", mutant.change)
    if found:
        sign, old, new = found[1], float(found[2]), float(found[3])
        return (sign.startswith(">") and new < old) or (sign.startswith("<") and new > old)
    return mutant.kind in {"comparison", "border"}


def eager(suite: Suite, name: str) -> list[Mutant]:
    """The mutants of an alert that fire too early or too easily: without its ``for``, or :func:`looser`."""
    return [mutant for mutant in suite.mutants(name) if mutant.change.endswith("-> 0m") or looser(mutant)]
