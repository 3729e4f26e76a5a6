"""Agents, VictoriaMetrics and vmalert come to the verdicts of one Prometheus, with rules unchanged.

``make scale VICTORIA=1`` runs it (20 minutes); ``make test`` skips it. What is started is what docs/scale.md says, word
by word (``victoria.py``); the fleet with its faults is that of ``test_thanos.py``. Figures differ there on purpose
(``rate`` takes the sample before its window), so alerts are compared, and not what is recorded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.daemon import eventually
from support.rules import ALERTS, RULES, rules_of

from . import fleet
from .verdicts import Labels, alerts, names, rules, told
from .victoria import Stored, programs, stored

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not os.environ.get("PLUMBLINE_VICTORIA"), reason="needs VictoriaMetrics: make scale VICTORIA=1"),
]

EQUAL_S = 1200.0
NOT_THERE = {"PlumblineNotificationsFailing", "PlumblineRuleFailing", "PlumblineRulesLate", "PlumblineAlertsDropped"}
"""They read Prometheus' own counters, which vmalert has under other names."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """Everything started, the faults found by the one Prometheus."""
    programs()
    folder = tmp_path_factory.mktemp("v")
    with fleet.scraped(tmp_path_factory) as scraped, stored(folder, scraped) as running:
        fleet.wait_settled(running.one.rules)
        yield running


def test_every_rule_is_evaluated_without_a_mistake(stack: Stored) -> None:
    committed = sorted(rule.get("record") or rule["alert"] for file in (RULES, ALERTS) for rule in rules_of(file))
    found = rules(stack.many.rules)
    assert sorted(rule["name"] for rule in found) == committed
    assert [(rule["name"], rule["lastError"]) for rule in found if rule.get("lastError")] == []


def test_every_alert_is_in_the_same_state_with_the_same_labels(stack: Stored) -> None:
    def states(url: str) -> dict[Labels, str]:
        return {_named(labels): state for labels, (state, _) in alerts(url).items()}

    seen = _equal(lambda: (states(stack.one.rules), states(stack.many.rules)))
    assert not fleet.FIRING - names(alerts(stack.many.rules), "firing")
    print(f"{len(seen)} alerts are pending or firing on both sides")


def test_alertmanagers_were_told_the_same(stack: Stored) -> None:
    def states(side: str) -> dict[Labels, str]:
        sent = getattr(stack, side).alertmanager.alerts()
        return {_named(labels): state for labels, state in told(sent).items()}

    print(f"{len(_equal(lambda: (states('one'), states('many'))))} alerts are in both Alertmanagers")


def test_what_it_costs(stack: Stored) -> None:
    """Printed, for docs/scale.md."""
    for name, process in stack.parts.items():
        fields = Path(f"/proc/{process.popen.pid}/stat").read_text().rpartition(")")[2].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        resident = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") >> 20
        print(f"{name}: {cpu_s:.0f} s of CPU, {resident} MiB")
        assert cpu_s > 0


def test_without_the_store_nothing_new_is_told_and_the_watchdog_ends(stack: Stored) -> None:
    """The last test: it ends the store. Who waits for the watchdog is alarmed."""
    before = names(alerts(stack.many.rules), "firing")
    stack.processes.stop_one(stack.parts["store"])
    began = time.monotonic()

    def watched() -> bool:
        return any(each["labels"]["alertname"] == "PlumblineWatchdog" for each in stack.many.alertmanager.alerts())

    eventually(lambda: not watched(), within_s=EQUAL_S, every_s=2)
    print(f"the watchdog ended after {time.monotonic() - began:.0f} s")
    assert names(alerts(stack.many.rules), "firing") <= before


def _named(labels: Labels) -> Labels:
    """Without what vmalert keeps of a label that an alert's own replaces (docs/scale.md)."""
    return frozenset((name, value) for name, value in labels if not name.startswith("exported_"))


def _equal(both: Callable[[], tuple[dict[Labels, str], dict[Labels, str]]]) -> dict[Labels, str]:
    """What both sides have, as soon as they have the same; the last differences are shown."""
    found: dict[Labels, str] = {}

    def none_differs() -> bool:
        one, many = (
            {labels: state for labels, state in side.items() if dict(labels)["alertname"] not in NOT_THERE}
            for side in both()
        )
        different = [
            f"{dict(labels)}: {one.get(labels)} and {many.get(labels)}"
            for labels in one.keys() | many.keys()
            if one.get(labels) != many.get(labels)
        ]
        print(f"{time.strftime('%H:%M:%S')} {len(different)} of {len(one)} differ", flush=True)
        for line in sorted(different)[:20]:
            print(" ", line, flush=True)
        found.clear()
        found.update(one)
        return not different

    eventually(none_differs, within_s=EQUAL_S, every_s=15)
    return found
