"""Which rules a test's series feed: one that they don't feed records nothing, and promtool need not evaluate it."""

from __future__ import annotations

import pytest

from support.rulefiles import RuleSet


def fed(expr: str, *given: str) -> bool:
    return RuleSet((("group", ({"record": "r", "expr": expr},)),)).fed(given) == {"r"}


@pytest.mark.parametrize(
    ("expr", "alive"),
    [
        ("a", True),
        ("b", False),
        ("sum by (x) (rate(a[5m]))", True),
        ("a + on (x) b", False),
        ("a > 1 and on (x) b", False),
        ("a unless b", True),
        ("b unless a", False),
        ("b or a", True),
        ("b or c", False),
        ("a * on (x) (b or c)", False),
        ('label_replace(a, "y", "$1", "x", "(.+)")', True),
        ("histogram_quantile(0.5, b)", False),
        ("a > scalar(b)", True),  # scalar gives NaN
        ("absent(b)", True),
        ("vector(1) and b", False),
        ('count(ALERTS{alertname="X"})', True),  # which alerts fire nobody knows here
        ('a{x="1"}', True),
        ('a{x="2"}', False),
        ('a{x!="1"}', False),
        ('a{x=~"1|2"}', True),
        ('a{x=~"."}', True),
        ('a{x!~"[0-9]"}', False),
        ('a{y=""}', True),
        ('a{y="1"}', False),
        ("count_over_time(last_over_time(a[30s])[10m:30s]) >= 3", True),
        ('{__name__="b"}', True),
    ],
)
def test_what_is_fed(expr: str, alive: bool) -> None:
    assert fed(expr, 'a{x="1",z="a,b=\\"c\\""}') is alive


def test_what_another_rule_records_feeds() -> None:
    rules = RuleSet((("group", ({"record": "top", "expr": 'low{any="label"}'}, {"record": "low", "expr": "a"})),))
    assert rules.fed(["a"]) == {"top", "low"}
    assert rules.fed(["low"]) == set(), "what is written down has its labels"
    assert rules.fed(['low{any="label"}']) == {"top"}


def test_one_of_several_rules_of_a_name_is_enough() -> None:
    rules = RuleSet((("group", ({"alert": "A", "expr": "a > 1"}, {"alert": "A", "expr": "b > 1"})),))
    assert rules.fed(["b"]) == {"A"}
