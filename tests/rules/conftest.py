"""What the tests of the rules share: the rendered groups, the promtool test files, the label sets in them."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.programs import need
from support.proven import proven
from support.proven import unit_tests as every_unit_test
from support.rulefiles import RuleSet, cut
from support.rules import ALERTS, RULES, TEST_FILES, rules_of


@pytest.fixture(scope="session")
def alerts():
    return [rule for rule in rules_of(ALERTS) if "alert" in rule]


@pytest.fixture(scope="session")
def recording_rules():
    return [rule for rule in rules_of(RULES) if "record" in rule]


@pytest.fixture(scope="session")
def unit_tests():
    """Every test of every promtool file."""
    return every_unit_test()


@pytest.fixture(scope="session")
def firing(unit_tests):
    """The label sets that promtool has proven: what Alertmanager will really see, alert by alert."""
    return proven(unit_tests)


@pytest.fixture(scope="session")
def promtool_results(tmp_path_factory):
    """File → what promtool said about each part of it that failed; side by side, each takes a CPU."""
    promtool, rules = need("promtool"), RuleSet.read(RULES, ALERTS)
    folder = tmp_path_factory.mktemp("promtool")

    def run(file):
        return subprocess.run(
            [promtool, "test", "rules", file], capture_output=True, text=True, timeout=900, check=False
        )

    parts = [(file, part) for file in TEST_FILES for part in cut(rules, file, folder)]
    failed = {file: [] for file in TEST_FILES}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (file, _), done in zip(parts, pool.map(run, [part for _, part in parts]), strict=True):
            if done.returncode != 0:
                failed[file].append(done.stdout + done.stderr)
    return failed
