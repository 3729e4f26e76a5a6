"""What the tests of the rules share: the rendered groups, the promtool test files, the label sets in them."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.native_histograms import NATIVE_FILES, converted, has_histograms
from support.promtool import need_prometheus_3, run_tests
from support.proven import proven
from support.proven import unit_tests as every_unit_test
from support.rulefiles import RuleSet, cut, load
from support.rules import ALERTS, NATIVE, RULES, TEST_FILES, rules_of


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
def promtool_results(request, tmp_path_factory):
    """File → what promtool said about each part of it that failed; side by side, each takes a CPU. Only of the files
    whose tests were selected."""
    files = _selected(request.session) or TEST_FILES
    return _failed(RuleSet.read(RULES, ALERTS), {file: file for file in files}, tmp_path_factory.mktemp("promtool"))


def _selected(session):
    tests = (item for item in session.items if "promtool_results" in getattr(item, "fixturenames", ()))
    return [item.callspec.params["file"] for item in tests if hasattr(item, "callspec")]


@pytest.fixture(scope="session")
def native_results(tmp_path_factory):
    """The same of the rules that read native histograms, for each file that has histograms at all."""
    need_prometheus_3()
    folder = tmp_path_factory.mktemp("native")
    files = {}
    for file in NATIVE_FILES:
        content = load(file)
        tests = [converted(test) for test in content["tests"] if has_histograms(test)]
        files[file] = folder / file.name
        # a quantile's last digits depend on the order in which buckets are added up
        files[file].write_text(json.dumps(content | {"tests": tests, "fuzzy_compare": True}), "utf-8")
    return _failed(RuleSet.read(*NATIVE), files, folder)


def _failed(rules, files, folder):
    """``files``: the test file → the one to run in its place."""
    parts = [(file, part) for file, run_file in files.items() for part in cut(rules, run_file, folder)]
    failed = {file: [] for file in files}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (file, _), said in zip(parts, pool.map(run_tests, [part for _, part in parts]), strict=True):
            if said:
                failed[file].append(said)
    return failed
