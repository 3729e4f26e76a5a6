"""Agents, VictoriaMetrics and vmalert come to the verdicts of one Prometheus, with rules unchanged.

``make scale VICTORIA=1`` runs it (32 minutes); ``make test`` skips it. What is started is what docs/scale.md says, word
by word (``victoria.py``); the fleet with its faults is that of ``test_thanos.py``. Figures differ there on purpose
(``rate`` takes the sample before its window), so alerts are compared, and not what is recorded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping

import psutil
import pytest

from bench.history_store import cpu_s
from support.daemon import eventually

from . import fleet
from .verdicts import Labels, alert_differences, alerts, evaluation_problems, names, none_left, told
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
    assert evaluation_problems(stack.many.rules) == []


def test_every_alert_is_in_the_same_state_with_the_same_labels(stack: Stored) -> None:
    def states(url: str) -> dict[Labels, str]:
        return {labels: state for labels, (state, _) in alerts(url).items()}

    _same(lambda: (states(stack.one.rules), states(stack.many.rules)))
    assert not fleet.FIRING - names(alerts(stack.many.rules), "firing")


def test_alertmanagers_were_told_the_same(stack: Stored) -> None:
    sides = stack.one.alertmanager, stack.many.alertmanager
    _same(lambda: (told(sides[0].alerts()), told(sides[1].alerts())))


def test_what_it_costs(stack: Stored) -> None:
    """Printed, for docs/scale.md."""
    for name, process in stack.parts.items():
        used_s = cpu_s(process.popen.pid)
        resident = psutil.Process(process.popen.pid).memory_info().rss >> 20
        print(f"{name}: {used_s:.0f} s of CPU, {resident} MiB")
        assert used_s > 0


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


def _comparable(side: Mapping[Labels, str]) -> dict[Labels, str]:
    """Without :data:`NOT_THERE`, and without labels that vmalert keeps beside an alert's own (docs/scale.md)."""
    return {
        frozenset((name, value) for name, value in labels if not name.startswith("exported_")): state
        for labels, state in side.items()
        if dict(labels)["alertname"] not in NOT_THERE
    }


def _same(both: Callable[[], tuple[Mapping[Labels, str], Mapping[Labels, str]]]) -> None:
    def differences() -> list[str]:
        one, many = map(_comparable, both())
        found = alert_differences(one, many, other="VictoriaMetrics")
        print(f"{time.strftime('%H:%M:%S')} {len(found)} of {len(one)} differ", flush=True)
        return found

    none_left(differences, EQUAL_S)
