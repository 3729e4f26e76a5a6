"""A few mutants of the cheap rules, always the same: that the machinery notices a mistake, and what it says of one."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from support.mutants import mutants_of
from support.mutation import HarnessError, Suite, survivors
from support.programs import need
from support.rulefiles import load
from support.rules import ROOT

DRAWN, COST = 40, 400
"""Of the alerts whose tests evaluate at most that often; ``make mutate-rules`` takes them all, and recording rules."""
CHEAP = ("PlumblineMountDead", "PlumblineDiskHot", "PlumblineProbeStuck")


@pytest.mark.parametrize("name", CHEAP[:2])
def test_every_mutant_is_noticed(tmp_path: Path, name: str) -> None:
    need("promtool")
    suite = Suite.read()
    assert survivors(suite, suite.mutants(name), tmp_path) == []


def test_a_sample_is_noticed(tmp_path: Path) -> None:
    """Of all cheap alerts, those with the least hashes: a new alert may bring its own mutants, and no other."""
    need("promtool")
    suite = Suite.read()
    pool = [
        m for n in suite.rules.names() if n.startswith("Plumbline") and suite.cost(n) <= COST for m in suite.mutants(n)
    ]
    drawn = sorted(pool, key=lambda mutant: sha256(mutant.label.encode()).digest())[:DRAWN]
    known = load(ROOT / "tests" / "rules" / "mutation" / "equivalent.yaml")
    alive = [each.label for name in {m.name for m in drawn}
             for each in survivors(suite, [m for m in drawn if m.name == name], tmp_path)]  # fmt: skip
    new = [label for label in alive if label not in known]
    assert new == [], "add a case that notices it to a test of the alert; all its mutants: make mutate-rules ARGS=NAME"


def test_what_no_test_asks_for_survives(tmp_path: Path) -> None:
    need("promtool")
    suite = Suite.read()
    alone = Suite(suite.rules, tuple((path, {**file, "tests": []}) for path, file in suite.files))
    mutants = suite.mutants("PlumblineMountDead")
    assert survivors(alone, mutants, tmp_path) == mutants


def test_a_rule_that_fails_its_own_tests_is_said(tmp_path: Path) -> None:
    need("promtool")
    suite = Suite.read()
    wrong = [
        (group, tuple({**rule, "for": "9h"} if rule.get("alert") == "PlumblineMountDead" else rule for rule in rules))
        for group, rules in suite.rules.groups
    ]
    with pytest.raises(HarnessError):
        survivors(Suite(type(suite.rules)(tuple(wrong)), suite.files), suite.mutants("PlumblineMountDead"), tmp_path)


def test_mutants_of_a_rule() -> None:
    rule = {"alert": "A", "expr": "a > 8 and on (x) b == 0 unless c", "for": "5m"}
    found = {(mutant.kind, mutant.rule["expr"].strip(), mutant.rule.get("for")) for mutant in mutants_of(rule, 0)}
    assert found == {
        ("comparison", "a < 8 and on (x) b == 0 unless c", "5m"),
        ("comparison", "a > 8 and on (x) b != 0 unless c", "5m"),
        ("threshold", "a > 4 and on (x) b == 0 unless c", "5m"),
        ("threshold", "a > 12 and on (x) b == 0 unless c", "5m"),
        ("threshold", "a > 8 and on (x) b == 1 unless c", "5m"),
        ("operand", "a > 8 unless c", "5m"),
        ("operand", "b == 0 unless c", "5m"),
        ("operand", "a > 8 and on (x) b == 0", "5m"),
        ("for", "a > 8 and on (x) b == 0 unless c", None),
        ("for", "a > 8 and on (x) b == 0 unless c", "600s"),
    }


def test_a_comma_in_a_selector_ends_no_operand() -> None:
    rule = {"alert": "A", "expr": '(a unless on (x, y) b{c="1",d!=""}) or c'}
    assert "(a ) or c" in {mutant.rule["expr"] for mutant in mutants_of(rule, 0)}


def test_none_and_as_many_are_borders_of_their_own() -> None:
    rule = {"alert": "A", "expr": "a > 0 or b < on (x) c"}
    borders = {mutant.rule["expr"] for mutant in mutants_of(rule, 0) if mutant.kind == "border"}
    assert borders == {"a >= 0 or b < on (x) c", "a > 0 or b <= on (x) c"}
