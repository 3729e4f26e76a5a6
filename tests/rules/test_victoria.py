"""The rules' tests in VictoriaMetrics' own rule tester: what comes out otherwise than with promtool is what
``engines/victoria.yaml`` says, no less and no more. ``make test-victoria`` runs it; elsewhere it is skipped."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.paces import seconds
from support.rulefiles import RuleSet, cut, load
from support.rules import ALERTS, ROOT, RULES, TEST_FILES
from support.victoria import differences, translated

PROGRAM = os.environ.get("PLUMBLINE_VMALERT_TOOL", "")
KNOWN = load(ROOT / "tests" / "rules" / "engines" / "victoria.yaml")
MOST = 11_100
"""Evaluations of rules in a test: each takes it a millisecond of a CPU. Longer tests are left out."""


@pytest.fixture(scope="session")
def victoria_results(request, tmp_path_factory):
    """File → test → what differs, of the files whose tests were selected."""
    folder = tmp_path_factory.mktemp("victoria")
    rules = RuleSet.read(RULES, ALERTS)
    items = (item for item in request.session.items if "victoria_results" in getattr(item, "fixturenames", ()))
    files = [item.callspec.params["file"] for item in items]
    questions = []
    for file, part in [(each, part) for each in files for part in cut(rules, each, folder)]:
        content, own = load(part), load(part.with_suffix(".rules.json"))
        rules_here = sum(len(group["rules"]) for group in own["groups"])
        for number, test in enumerate(content["tests"]):
            if not 0 < rules_here * (_steps(content, test) + 1) <= MOST:  # it refuses a file without rules
                continue
            target = part.with_suffix(f".{number}.json")
            translated(content, own, test, target)
            questions.append((file, test, target))

    def run(question):
        _, test, target = question
        return differences(PROGRAM, target, test.get("external_labels", {}))

    found = {file: {} for file in files}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (file, test, _), different in zip(questions, pool.map(run, questions), strict=True):
            if different:
                found[file][test["name"]] = different
    return found


def _steps(content, test):
    cases = [*test.get("alert_rule_test", []), *test.get("promql_expr_test", [])]
    return max(seconds(case["eval_time"]) for case in cases) / seconds(content["evaluation_interval"])


@pytest.mark.skipif(not PROGRAM, reason="takes minutes and a Go: make test-victoria")
@pytest.mark.timeout(7200)  # the first waits for all of them
@pytest.mark.parametrize("file", TEST_FILES, ids=lambda path: path.stem)
def test_what_differs_is_known(victoria_results, file):
    assert victoria_results[file] == _known(file.stem)


def _known(stem):
    return {name: sorted(different) for why in KNOWN for name, different in why["differs"].get(stem, {}).items()}


def test_what_is_known_names_tests_and_what_they_ask():
    files = {file.stem: file for file in TEST_FILES}
    for why in KNOWN:
        for stem, tests in why["differs"].items():
            named = {test["name"]: test for test in load(files[stem])["tests"]}
            for name, different in tests.items():
                asked = {case.get("alertname") for case in named[name].get("alert_rule_test", [])}
                asked |= {case["expr"] for case in named[name].get("promql_expr_test", [])}
                assert {what.rpartition(", ")[0] for what in different} <= asked
