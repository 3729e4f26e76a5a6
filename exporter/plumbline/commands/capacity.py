"""``plumbline capacity what-if``: what more hardware, other pools, growth or a loss would mean, from Prometheus."""

import argparse
import time
from collections.abc import Sequence

from rich.console import Console

from plumbline.capacity import scenarios, words
from plumbline.capacity.facts import facts_of, only, queries
from plumbline.capacity.figures import class_figures, pool_figures
from plumbline.capacity.model import Facts
from plumbline.capacity.retention import forecast_note
from plumbline.capacity.scenarios import Scenario
from plumbline.commands.shared import asking_prometheus, show
from plumbline.core.console import line, table
from plumbline.sources.prometheus.api import read_retention


def run(options: argparse.Namespace) -> int:
    scenario = scenario_of(options)
    with asking_prometheus(options) as server:
        answers = server.answers(tuple(queries(time.time(), options.cluster)))
        kept_s = read_retention(server.url, timeout_s=server.timeout_s, access=server.access)
    now = only(facts_of(answers), cluster=options.cluster, url=options.prometheus)
    more = [note] if (note := forecast_note(kept_s)) else []
    if scenario is None:
        standard = scenarios.standard(now)
        show(
            options,
            _standard_json(now, standard, more),
            lambda console: _print_standard(console, now, standard, more),
        )
    else:
        then = scenario.of(now)
        show(options, _json(scenario, now, then, more), lambda console: _print(console, scenario, now, then, more))
    return 0


def scenario_of(options: argparse.Namespace) -> Scenario | None:
    """All that is asked as one, in this order: hardware, pools, growth, and a loss last. ``None``: nothing."""
    parts = [
        *map(scenarios.hosts, options.add_hosts),
        *map(scenarios.disks, options.add_disks),
        *map(scenarios.retire, options.retire),
        *map(scenarios.pool, options.pool),
        *map(scenarios.growth, options.growth),
        *map(scenarios.lose, options.lose),
    ]
    if not parts:
        return None
    return Scenario("; ".join(part.name for part in parts), tuple(change for part in parts for change in part.changes))


def _print(console: Console, scenario: Scenario, now: Facts, then: Facts, more: Sequence[str]) -> None:
    line(console, f"What if: {scenario.name}" + (f" (cluster {now.cluster})" if now.cluster else ""), "bold")
    for name in words.changed(now, then):
        line(console, "")
        table(console, (name or "all devices", "now", "then"), words.class_rows(now, then, name))
    changed = [row for row in words.pool_rows(then) if row not in words.pool_rows(now)]
    if changed:
        line(console, "")
        table(console, words.POOL_HEADS, changed)
    _notes(console, [*words.notes(then, words.changed(now, then)), *more])


def _print_standard(console: Console, now: Facts, standard: Sequence[Scenario], more: Sequence[str]) -> None:
    table(console, words.SCENARIO_HEADS, words.scenario_rows(now, standard))
    if now.pools:
        line(console, "")
        table(console, words.POOL_HEADS, words.pool_rows(now))
    _notes(console, [*words.notes(now, now.classes), *more])


def _notes(console: Console, notes: Sequence[str]) -> None:
    if notes:
        line(console, "")
    for text in notes:
        line(console, f"- {text}", "yellow")


def _json(scenario: Scenario, now: Facts, then: Facts, more: Sequence[str]) -> dict[str, object]:
    notes = [*words.notes(then, words.changed(now, then)), *more]
    return {
        "cluster": now.cluster,
        "what_if": scenario.name,
        "now": _figures(now),
        "then": _figures(then),
        "notes": notes,
    }


def _standard_json(now: Facts, standard: Sequence[Scenario], more: Sequence[str]) -> dict[str, object]:
    figures = {scenario.name: _figures(scenario.of(now)) for scenario in standard}
    return {
        "cluster": now.cluster,
        "now": _figures(now),
        "scenarios": figures,
        "notes": [*words.notes(now, now.classes), *more],
    }


def _figures(facts: Facts) -> dict[str, object]:
    return {
        "classes": [class_figures(facts, name) for name in facts.classes],
        "pools": [pool_figures(facts, pool) for pool in facts.pools],
    }
