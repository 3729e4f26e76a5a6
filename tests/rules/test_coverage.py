"""Every alert has been seen firing, quiet just below its threshold, quiet on a transient, and quiet without data.

That there is a test of such a name proves nothing. So the rule is changed as somebody might by mistake, its `for` left
out or its threshold moved, and a test that expects silence has to notice. That takes minutes for all alerts:
`make test` does it for those of ``CHEAP`` and asks of the others only that such tests stand there; `make prove-rules`
does it for all.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.mutants import Mutant
from support.mutation import Suite, eager, looser, only_quiet, survivors
from support.offenders import for_every
from support.programs import need
from support.rulefiles import load, metric_of
from support.rules import ALERTS

NAMES = sorted({rule["alert"] for group in load(ALERTS)["groups"] for rule in group["rules"]})
ANNOTATIONS = {"description"}
ALWAYS = {"PlumblineWatchdog": "always fires"}
WITHOUT_THRESHOLD = {
    "PlumblineTargetsAbsent": "fires on what is absent; with a target it is quiet",
    "PlumblineBaselineMismatch": "its metric is there for a mismatch only; `make mutate-rules` has its `for`",
    "PlumblineDiskMissing": "a flag of 0 or 1, and `unless` takes out every 1: turned round, it still says nothing",
}
"""What has no number to be just below of, and why."""
ALL = os.environ.get("PLUMBLINE_PROVE_RULES") == "1"
CHEAP = (
    "AlertsDropped", "ArrayDegraded", "BaselineMissing", "BondMisaggregated", "BondSlaveDown", "CephUnreachable",
    "CollectorFailing", "ConfigReloadFailed", "DiskFailing", "DiskHot", "MountDead", "MultipathPathLost", "NetworkLoss",
    "PathMtuBelowInterface",
)  # fmt: skip
"""A second of CPU time each, or less, and of every kind: flags, shares, counters, sums of two."""
PROVEN = NAMES if ALL else [f"Plumbline{name}" for name in CHEAP]


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite.read()


@pytest.fixture(scope="module")
def unnoticed(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Mutant]]:
    """Alert → mutants that fire too early or too easily and that no test expecting silence notices."""
    need("promtool")
    quiet = only_quiet(suite)
    base = tmp_path_factory.mktemp("mutants")  # here, because several threads at once would each make what it lies in

    def folder(name: str) -> Path:
        made = base / name
        made.mkdir()
        return made

    def run(name: str) -> tuple[str, list[Mutant]]:
        wanted = eager(suite, name)
        return name, survivors(quiet, wanted, folder(name)) if wanted else []

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(run, PROVEN))


def cases(suite: Suite, name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(test, case) of every time that an alert is asked for."""
    return [
        (test, case)
        for _, file in suite.files
        for test in file["tests"]
        for case in test.get("alert_rule_test", [])
        if case["alertname"] == name
    ]


def _given(test: dict[str, Any]) -> set[str]:
    """Metrics a test puts in; some begin at what rules record."""
    return {metric_of(each["series"]) for each in test["input_series"]}


@for_every("name", NAMES)
def test_it_fires_with_all_its_annotations(suite: Suite, name: str) -> None:
    seen = [alert for _, case in cases(suite, name) for alert in case["exp_alerts"]]
    assert seen, f"no test in tests/rules/*.yaml in which {name} fires"
    assert all(set(alert["exp_annotations"]) == ANNOTATIONS and alert["exp_labels"]["severity"] for alert in seen)


@for_every("name", [name for name in NAMES if name not in ALWAYS])
def test_it_is_quiet_without_data(suite: Suite, name: str) -> None:
    """Quiet while something that it reads isn't there, which must not be taken for zero."""
    if name == "PlumblineTargetsAbsent":  # fires without data
        return
    assert any(
        not case["exp_alerts"] and suite.rules.leaves(name, given) - given
        for test, case in cases(suite, name)
        for given in [_given(test)]
    ), (
        f"write a test of {name} that expects exp_alerts: [] and whose input_series, all together, lack one of "
        f"{sorted(suite.rules.leaves(name, ()))}"
    )


@for_every("name", [name for name in NAMES if name not in ALWAYS])
def test_it_is_quiet_with_all_its_data(suite: Suite, name: str) -> None:
    """What is the least that the two tests below need, and costs nothing to see."""
    assert any(
        not case["exp_alerts"] and suite.rules.leaves(name, given) & given
        for test, case in cases(suite, name)
        for given in [_given(test)]
    ), f"write a test of {name} that expects exp_alerts: [] with input_series of {sorted(suite.rules.leaves(name, ()))}"


@pytest.mark.parametrize("name", [name for name in PROVEN if name not in ALWAYS])
def test_it_is_quiet_on_a_transient(suite: Suite, unnoticed: dict[str, list[Mutant]], name: str) -> None:
    rules = [rule for rule in suite.rules.rules() if rule.get("alert") == name]
    patient = [which for which, rule in enumerate(rules) if "for" in rule]
    missed = [mutant.which for mutant in unnoticed[name] if mutant.kind == "for"]
    assert not set(patient) & set(missed), f"without its `for` no test would notice: {name}{sorted(set(missed))}"


@pytest.mark.parametrize("name", [name for name in PROVEN if name not in ALWAYS.keys() | WITHOUT_THRESHOLD.keys()])
def test_it_is_quiet_just_below_its_threshold(suite: Suite, unnoticed: dict[str, list[Mutant]], name: str) -> None:
    loosened = [mutant for mutant in suite.mutants(name) if looser(mutant)]
    if not loosened:  # the threshold stands in a recorded ratio or flag, whose own mutants the mutation run has
        assert suite.rules.below([name]) - {name}, name
        return
    missed = {mutant.label for mutant in unnoticed[name]}
    assert any(mutant.label not in missed for mutant in loosened), [mutant.label for mutant in loosened]
