"""The rules hold what they promise, and every promise is tested: promtool's verdict, and that nothing lacks a test."""

import importlib.util
import json
import pkgutil
import re
import subprocess
import sys

import pytest

from plumbline import baseline
from plumbline.baseline import selection
from plumbline.collectors import probe
from plumbline.collectors.registry import every_spec
from support.metrics import FOREIGN, known_metrics
from support.offenders import for_every
from support.paces import seconds
from support.programs import need
from support.promtool import failures, known_differences, run_tests
from support.rulefiles import RuleSet, cut, load
from support.rules import ALERTS, ROOT, RULES, TEST_FILES

SEVERITIES = {"critical", "warning", "info"}
LAYERS = {"network", "disk", "osd", "rados", "rbd", "filesystem", "object", "client", "self"}
SIGNALS = {"latency", "loss", "saturation", "error", "health", "capacity"}
ALWAYS_FIRING = {"PlumblineWatchdog"}
"""No test can find it quiet: that is what it is for."""

# set by Prometheus, not by the daemon
TARGET_LABELS = {"instance", "job", "cluster"}


# --- promtool ---------------------------------------------------------------------------------------------------


def test_promtool_accepts_the_rules():
    argv = [need("promtool"), "check", "rules", "--lint=all", "--lint-fatal", RULES, ALERTS]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout


@pytest.mark.timeout(1800)  # the first waits for all of them
@pytest.mark.parametrize("file", TEST_FILES, ids=lambda path: path.stem)
def test_promtool_unit_tests(promtool_results, file):
    said = "\n".join(promtool_results[file])
    assert failures(said) == known_differences().get(file.stem, set()), said
    assert bool(said) == bool(failures(said)), said


def test_a_known_difference_is_one_of_the_tests():
    files = {file.stem: file for file in TEST_FILES}
    for why in load(ROOT / "tests" / "rules" / "engines" / "prometheus3.yaml"):
        for stem, expected in why["differs"].items():
            tests = load(files[stem])["tests"]
            cases = [
                case
                for test in tests
                for kind in ("alert_rule_test", "promql_expr_test")
                for case in test.get(kind, [])
            ]
            asked = {(case.get("alertname") or case["expr"], seconds(case["eval_time"])) for case in cases}
            named = (each.rpartition(", ") for each in expected)
            assert {(what, seconds(time)) for what, _, time in named} <= asked, stem


def test_each_test_is_asked_once(tmp_path):
    rules = RuleSet.read(RULES, ALERTS)
    for file in TEST_FILES:
        asked = [test for part in cut(rules, file, tmp_path) for test in load(part)["tests"]]
        assert sorted(map(json.dumps, asked)) == sorted(map(json.dumps, load(file)["tests"]))


def test_a_wrong_expectation_is_noticed(tmp_path):
    """Rules that nobody finds would pass everything, in the way the tests above are run, too."""
    right = "Nothing else on this node can be judged."
    parts = cut(RuleSet.read(RULES, ALERTS), ROOT / "tests" / "rules" / "self_alerts.yaml", tmp_path)
    file = next(part for part in parts if right in part.read_text("utf-8"))
    content = json.loads(file.read_text("utf-8"))
    content["tests"] = [test for test in content["tests"] if right in json.dumps(test)][:1]
    file.write_text(json.dumps(content).replace(right, "Something else."))
    assert right in run_tests(file)


# --- nothing without a test ---------------------------------------------------------------------------------------


def test_every_alert_is_seen_firing_and_quiet(alerts, unit_tests):
    cases = [case for test in unit_tests for case in test.get("alert_rule_test", [])]
    names = {rule["alert"] for rule in alerts}
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == names
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == names - ALWAYS_FIRING


def test_every_alert_is_tested_in_each_of_its_severities(alerts, firing):
    written = {(rule["alert"], rule["labels"]["severity"]) for rule in alerts}
    seen = {(labels["alertname"], labels["severity"]) for sets in firing.values() for labels in sets}
    assert seen == written


def test_every_alert_has_a_transient_or_boundary_test(alerts, unit_tests):
    """Quiet with the very metrics present that fire it elsewhere: not only quiet for want of data."""
    for name in {rule["alert"] for rule in alerts} - ALWAYS_FIRING - {"PlumblineTargetsAbsent"}:
        quiet = [
            test
            for test in unit_tests
            if test["input_series"]
            and any(case["alertname"] == name and not case["exp_alerts"] for case in test.get("alert_rule_test", []))
        ]
        assert len(quiet) >= 2, name


def test_every_recording_rule_is_asked_for_by_a_test(recording_rules, unit_tests):
    asked = "\n".join(case["expr"] for test in unit_tests for case in test.get("promql_expr_test", []))
    missing = {rule["record"] for rule in recording_rules if rule["record"] not in asked}
    assert missing == set()


# --- what a rule must look like -------------------------------------------------------------------------------------


def test_groups_are_small_and_named():
    names = []
    for file in (RULES, ALERTS):
        for group in load(file)["groups"]:
            names.append(group["name"])
            assert len(group["name"]) <= 40
            assert len(group["rules"]) <= 20, group["name"]
    assert len(set(names)) == len(names), "promtool orders groups by name alone"


def test_names_labels_and_annotations(alerts, firing):
    for rule in alerts:
        name, labels, annotations = rule["alert"], rule["labels"], rule["annotations"]
        assert re.fullmatch(r"Plumbline([A-Z][a-z0-9]+)+", name)
        assert len(name) <= 40
        assert labels["severity"] in SEVERITIES
        assert labels["signal"] in SIGNALS
        assert "{{" not in "".join(labels.values()), "a value in a label is another alert at every evaluation"
        assert "{{" in annotations["description"], name
        assert re.search(r"[.?](\{\{ end \}\})*$", annotations["description"]), name
        for seen in firing[name]:
            assert seen["layer"] in LAYERS, name


def test_descriptions_render_completely(unit_tests):
    for test in unit_tests:
        for case in test.get("alert_rule_test", []):
            for alert in case["exp_alerts"]:
                text = " ".join(alert["exp_annotations"].values())
                assert "<no value>" not in text
                assert "  " not in text, case["alertname"]


def test_joins_name_their_labels_and_never_the_job():
    for file in (RULES, ALERTS):
        text = file.read_text("utf-8")
        assert "ignoring" not in text
        for labels in re.findall(r"\b(?:on|by|group_left|group_right) \(([^)]*)\)", text):
            assert "job" not in labels.split(", ")


def test_bucket_edges_are_never_written_down():
    """Prometheus 3 writes ``le="5"`` as ``le="5.0"``: a rule with a literal edge finds nothing after the upgrade."""
    for file in (RULES, ALERTS):
        assert not re.search(r"\ble\s*(=|!)", file.read_text("utf-8"))


@for_every(
    "file", sorted((ROOT / "alerts").glob("[ra]*s/*.libsonnet")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_numbers_stand_in_the_configuration_alone(file):
    code = re.sub(r"//.*", "", file.read_text("utf-8"))
    code = re.sub(r"(?m)^  _firstSteps\+::.*?^  }", "", code, flags=re.DOTALL)  # commands and their arguments
    code = re.sub(r"p50|p99|%%?\.\d", "", code)
    numbers = set(re.findall(r"(?<![\w$.])\d+(?:\.\d+)?", code))
    # 0 and 1 are the neutral elements, 2 halves the votes, 0.5 and 0.99 are what p50 and p99 mean, 100 is percent
    assert numbers <= {"0", "1", "2", "0.5", "0.99", "100"}


# --- rules and daemon agree ----------------------------------------------------------------------------------------


def test_every_metric_in_a_rule_exists(alerts, recording_rules):
    used = set()
    for rule in alerts + recording_rules:
        used |= set(re.findall(r"\bplumbline[_:][a-z0-9_:]+", rule["expr"]))
    assert used <= known_metrics(), used - known_metrics()


def test_numbers_that_rules_and_daemon_share_are_the_same():
    """The daemon drops stale figures, bounds the canary and writes tolerances; the rules must mean the same."""
    code = (ROOT / "alerts" / "config" / "probe.libsonnet").read_text("utf-8")
    numbers = {name: float(value) for name, value in re.findall(r"^\s+(\w+): ([\d.]+),$", code, re.MULTILINE)}
    assert numbers["staleIntervals"] == probe.STALE_AFTER_INTERVALS
    assert numbers["defaultTolerance"] == selection.DEFAULT_TOLERANCE
    found = pkgutil.walk_packages(baseline.__path__, "plumbline.baseline.")
    modules = [importlib.import_module(each.name) for each in found]
    floors = {module.TOLERANCE_FLOOR for module in modules if hasattr(module, "TOLERANCE_FLOOR")}
    assert floors == {numbers["minimumTolerance"]}


def test_test_series_have_the_labels_the_daemon_exports(unit_tests):
    """A rule proven on a label that does not exist is proven on nothing."""
    labels_of = {spec.name: set(spec.labels) for spec in every_spec()}
    for spec in every_spec():
        if spec.kind.value == "histogram":
            labels_of |= {spec.name + "_bucket": {*spec.labels, "le"}}
            labels_of |= {spec.name + suffix: set(spec.labels) for suffix in ("_sum", "_count")}
    checked = 0
    for test in unit_tests:
        for series in test["input_series"]:
            name, _, rest = series["series"].partition("{")
            expected = labels_of[name] if name.startswith("plumbline_") else FOREIGN.get(name)
            if expected is None:
                continue  # of others, with whatever labels
            labels = set(re.findall(r'([A-Za-z_]+)="', rest))
            assert labels - TARGET_LABELS == expected - TARGET_LABELS, series["series"]
            checked += 1
    assert checked > 100


def test_the_canarys_test_files_are_what_their_script_writes():
    folder = ROOT / "tests" / "rules"
    spec = importlib.util.spec_from_file_location("write_canary", folder / "write_canary.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    for name, how in module.FILES.items():
        assert (folder / name).read_text("utf-8") == module.render(*how), f"run tests/rules/write_canary.py ({name})"
