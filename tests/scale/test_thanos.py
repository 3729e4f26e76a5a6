"""Two shards under Thanos come to the verdicts of one Prometheus, with rules and dashboards unchanged.

``make scale THANOS=…`` runs it (a quarter of an hour); ``make test`` skips it. What is started is what docs/scale.md
says, word by word (``topology.py``). The fleet has faults on purpose (``fleet.py``), and beside it there is one real
daemon whose canary's disk is slowed by the kernel.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial

import pytest

from preview.answers import Server, values
from preview.variables import opened, substitute
from support.daemon import eventually
from support.dashboards import DASHBOARDS, GRAFANAS, load
from support.paneldata import queries
from support.rules import RULES, rules_of

from . import fleet
from .topology import Topology, thanos, topology
from .verdicts import (
    alert_differences,
    alerts,
    evaluation_problems,
    names,
    none_left,
    rules,
    series_differences,
    spans,
    told,
    without_choice,
)  # fmt: skip

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not os.environ.get("PLUMBLINE_THANOS"), reason="needs Thanos: make scale THANOS=/path/to/thanos"
    ),
]

EQUAL_S = 300.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    """Everything started, the faults told by the one Prometheus."""
    thanos()
    folder = tmp_path_factory.mktemp("h")
    with fleet.scraped(tmp_path_factory) as scraped, topology(folder, scraped) as running:
        fleet.wait_settled(running.one.rules)
        yield running


def test_both_shards_have_their_part(stack: Topology) -> None:
    parts = [{labels["instance"] for labels, _ in _vector(url, 'up{job="plumbline"}')} for url in stack.shards]
    assert all(len(part) >= 3 for part in parts)
    assert not parts[0] & parts[1]
    everything = {labels["instance"] for labels, _ in _vector(stack.one.series, 'up{job="plumbline"}')}
    assert parts[0] | parts[1] == everything
    storage = {fleet.name(host) for host in fleet.STORAGE}
    assert all(part & storage for part in parts), "each has some of the cluster whose hosts are compared"


def test_every_rule_is_evaluated_without_a_mistake(stack: Topology) -> None:
    for side in (stack.one, stack.many):
        assert evaluation_problems(side.rules) == []


def test_every_alert_is_in_the_same_state_with_the_same_labels_and_words(stack: Topology) -> None:
    none_left(lambda: alert_differences(alerts(stack.one.rules), alerts(stack.many.rules)), EQUAL_S)
    assert not fleet.FIRING - names(alerts(stack.many.rules), "firing")


def test_alertmanagers_were_told_the_same(stack: Topology) -> None:
    def differences() -> list[str]:
        one, many = (told(side.alertmanager.alerts()) for side in (stack.one, stack.many))
        return alert_differences(one, many)

    none_left(differences, EQUAL_S)


def test_every_recorded_series_is_there_with_the_same_values(stack: Topology) -> None:
    recorded = {rule["record"] for rule in rules_of(RULES)}
    seen: set[str] = set()

    def differences() -> list[str]:
        end_s = time.time() - 30
        one, many = (spans(side.series, '{__name__=~"plumbline:.+"}', end_s) for side in (stack.one, stack.many))
        seen.update(dict(labels)["__name__"] for labels in one)
        print(f"{len(one)} recorded series of {len(seen)} of {len(recorded)} names", flush=True)
        return series_differences(one, many)

    none_left(differences, EQUAL_S)
    assert len(seen) > len(recorded) / 2


def test_every_query_of_every_page_has_the_same_answer(stack: Topology) -> None:
    asked = {}
    for page in map(load, DASHBOARDS):
        server = Server(stack.one.series)
        chosen = opened(page, {}, lambda *of, server=server: values(server, *of))
        for query in queries(page):
            expr = without_choice(substitute(query.expr, {**GRAFANAS, **chosen}))
            asked[f"{query.page} / {query.panel} / {query.letter}"] = expr
    answered = set()

    def differences(where: str) -> list[str]:
        expr = asked[where]
        end_s = time.time() - 30
        one, many = (spans(side.series, expr, end_s) for side in (stack.one, stack.many))
        if one:
            answered.add(where)
        return [f"{where}: {line}" for line in series_differences(one, many)]

    left = list(asked)

    def all_differences() -> list[str]:
        found = {where: differences(where) for where in left}
        left[:] = [where for where, lines in found.items() if lines]
        return [line for lines in found.values() for line in lines]

    none_left(all_differences, EQUAL_S)
    print(f"{len(asked)} queries, {len(answered)} with data", flush=True)
    assert len(answered) > len(asked) / 3


def test_a_shard_alone_judges_the_fleet_wrongly(stack: Topology) -> None:
    """Why the rules are the Ruler's: the share of hosts beyond their baseline is another in each shard."""
    (expr,) = (rule["expr"] for rule in rules_of(RULES) if rule["record"] == "plumbline:nic_role_mtu:bytes")
    kinds = f'count by (cluster, role) (count_values by (cluster, role) ("mtu", {expr})) > 1'
    whole = _vector(stack.many.series, kinds)
    assert [labels["cluster"] for labels, _ in whole] == [fleet.CLUSTER]
    assert [] in [_vector(url, kinds) for url in stack.shards]


def test_without_a_shard_rules_fail_instead_of_judging_half_of_the_fleet(stack: Topology) -> None:
    """The last test: it ends a sidecar. The shards themselves tell of it."""
    before = names(alerts(stack.many.rules), "firing")
    stack.processes.stop_one(stack.sidecars[1])
    failing = eventually(
        lambda: [rule for rule in rules(stack.many.rules) if rule["name"] == "PlumblineDown" and rule.get("lastError")],
        within_s=EQUAL_S,
        every_s=5,
    )
    print(failing[0]["lastError"])
    assert names(alerts(stack.many.rules), "firing") <= before, "nothing new is told of half a fleet"
    for url in stack.shards:
        eventually(partial(_rules_fail, url), within_s=EQUAL_S, every_s=5)


def _rules_fail(shard: str) -> bool:
    """It stays pending for ten minutes."""
    return "PlumblineRuleFailing" in names(alerts(shard), "pending") | names(alerts(shard), "firing")


def _vector(url: str, query: str) -> list[tuple[dict[str, str], float]]:
    found = Server(url).get("query", {"query": query})["result"]
    return [(each["metric"], float(each["value"][1])) for each in found]
