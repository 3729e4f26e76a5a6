"""The rules for native histograms give the verdicts of those for classic ones: nothing but the expressions over
histograms differs, and promtool's tests of the classic ones hold with the same figures in native ones.
"""

import json
import re
import subprocess
from math import isnan

import pytest

from support.native_histograms import HISTOGRAMS, NATIVE_FILES, converted, expanded, has_histograms
from support.programs import need
from support.promtool import failures, known_differences, need_prometheus_3, run_tests
from support.rulefiles import RuleSet, cut, load
from support.rules import ALERTS, NATIVE, ROOT, RULES, rules_of

CLASSIC_PART = re.compile(rf"\b(?:{'|'.join(sorted(HISTOGRAMS))})_(?:bucket|sum|count)\b")
NATIVE_NAME = re.compile(rf"\b(?:{'|'.join(sorted(HISTOGRAMS))})\b(?!_)")


@pytest.fixture
def prometheus_3():
    need_prometheus_3()


# --- the rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classic", "native"), list(zip((RULES, ALERTS), NATIVE, strict=True)), ids=["rules", "alerts"]
)
def test_only_expressions_over_histograms_differ(classic, native):
    different = 0
    for one, other in zip(rules_of(classic), rules_of(native), strict=True):
        if one == other:
            assert not CLASSIC_PART.search(one["expr"])
            continue
        different += 1
        assert one | {"expr": ""} == other | {"expr": ""}
        lines = zip(one["expr"].splitlines(), other["expr"].splitlines(), strict=True)
        changed = [pair for pair in lines if pair[0] != pair[1]]
        for before, after in changed:
            assert CLASSIC_PART.search(before) or re.search(r"by \([^)]*, le\)", before)
            assert not CLASSIC_PART.search(after)
            assert NATIVE_NAME.search(after) or before.replace(", le)", ")") == after
    assert different


def test_the_classic_rules_read_no_native_histogram():
    for path in (RULES, ALERTS):
        assert not NATIVE_NAME.search(path.read_text("utf-8"))


@pytest.mark.usefixtures("prometheus_3")
def test_promtool_accepts_them():
    argv = [need("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *NATIVE]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(1800)  # the first waits for all of them
@pytest.mark.parametrize("file", NATIVE_FILES, ids=lambda path: path.stem)
def test_the_same_expectations_hold(native_results, file):
    said = "\n".join(native_results[file])
    assert failures(said) == known_differences().get(file.stem, set()), said
    assert bool(said) == bool(failures(said)), said


@pytest.mark.usefixtures("prometheus_3")
def test_a_wrong_expectation_is_noticed(tmp_path):
    file = ROOT / "tests" / "rules" / "disk_edges.yaml"
    content = load(file)
    right = "p99: 1.195ms"
    tests = [converted(test) for test in content["tests"] if right in json.dumps(test)]
    assert tests
    (tmp_path / file.name).write_text(json.dumps(content | {"tests": tests}).replace(right, "p99: 1ms"))
    (part,) = cut(RuleSet.read(*NATIVE), tmp_path / file.name, tmp_path)
    assert right in run_tests(part)


@pytest.mark.usefixtures("prometheus_3")
def test_a_limit_that_moves_is_no_canary_that_stands_still(tmp_path):
    """A new baseline's bound is a limit of its canary's histogram, and Prometheus 3.5 gives no ``increase`` across the
    change. The canary that completes nothing is overdue all the same."""
    before, after = "custom_values:[0.001 0.01]", "custom_values:[0.001 0.002 0.01]"
    growing = (
        f"{{{{schema:-53 count:0 sum:0 {before} buckets:[0 0 0]}}}}"
        f"+{{{{schema:-53 count:60 sum:1 {before} buckets:[60 0 0]}}}}x20"
        f" {{{{schema:-53 count:1260 sum:21 {after} buckets:[1260 0 0 0]}}}}"
        f"+{{{{schema:-53 count:60 sum:1 {after} buckets:[60 0 0 0]}}}}x10"
    )
    standing = f"{{{{schema:-53 count:60 sum:1 {after} buckets:[60 0 0 0]}}}}x40"
    place = 'cluster="north",instance="stor01",layer="disk",device_class="nvme",workload="w"'

    def canary(probe, values):
        return [
            {"series": f'plumbline_probe_info{{{place},probe="{probe}",probe_type="canary"}}', "values": "1x40"},
            {
                "series": f'plumbline_canary_latency_seconds{{{place},probe="{probe}",operation="read"}}',
                "values": values,
            },
        ]

    test = {
        "interval": "1m",
        "input_series": canary("moves", growing) + canary("stands", standing),
        "promql_expr_test": [
            {
                "expr": 'count by (probe) (ALERTS{alertname="PlumblineCanaryOverdue",alertstate="firing"})',
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": '{probe="stands"}', "value": 1}],
            }
            for minute in (22, 25, 28, 30)
        ],
    }
    file = tmp_path / "moves.yaml"
    file.write_text(json.dumps({"evaluation_interval": "1m", "rule_files": list(map(str, NATIVE)), "tests": [test]}))
    assert run_tests(file) == ""


# --- the same figures in native histograms --------------------------------------------------------------------------


def test_notation_is_expanded_as_promtool_does():
    assert expanded("0+10x2 5 _ _x2 7x1 10-2x1") == [0, 10, 20, 5, None, None, None, 7, 7, 10, 8]
    assert isnan(expanded("stale")[0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a value: 1y2"):
        expanded("1y2")


def test_a_classic_histogram_becomes_one_series():
    name = "plumbline_disk_queue_seconds"
    test = {
        "input_series": [
            {"series": "up", "values": "1x9"},
            {"series": f'{name}_bucket{{device="sda",le="0.5"}}', "values": "0+1x2 stale"},
            {"series": f'{name}_bucket{{le="+Inf",device="sda"}}', "values": "0+3x2 stale"},
            {"series": f'{name}_sum{{device="sda"}}', "values": "0+2x2 stale"},
        ]
    }
    assert has_histograms(test)
    assert converted(test)["input_series"] == [
        {"series": "up", "values": "1x9"},
        {
            "series": f'{name}{{device="sda"}}',
            "values": "{{schema:-53 count:0.0 sum:0.0 custom_values:[0.5] buckets:[0.0 0.0]}}"
            "+{{schema:-53 count:3.0 sum:2.0 custom_values:[0.5] buckets:[1.0 2.0]}}x2 stale",
        },
    ]


@pytest.mark.parametrize(
    ("upto", "every", "count", "why"),
    [
        ("5x3", "4x3", "4x3", "a bucket below the one before it"),
        ("1x3", "4x2", "4x3", "no value where others have one"),
        ("1x3", "4x3", "5x3", "not in its last bucket"),
    ],
)
def test_what_no_page_could_have_is_refused(upto, every, count, why):
    name = "plumbline_disk_queue_seconds"
    rows = {'_bucket{le="1"}': upto, '_bucket{le="+Inf"}': every, "_count": count}
    with pytest.raises(ValueError, match=why):
        converted({"input_series": [{"series": name + part, "values": values} for part, values in rows.items()]})
