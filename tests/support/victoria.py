"""VictoriaMetrics' programs from the Go proxy, and what its rule tester says of our tests (``make test-victoria``).

Usage: python -m support.victoria [NAME]: builds vmalert-tool or the one that is named, and prints where it is

promtool's test files are vmalert-tool's but for a few words. It evaluates with MetricsQL, in its own storage, and what
a rule records is seen by the groups after it and, one evaluation later, by the rules of its own, as with vmalert:
https://docs.victoriametrics.com/victoriametrics/vmalert-tool/
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from math import isclose, isnan
from pathlib import Path
from typing import Any

from .debian_host import BASES

VERSION = "v1.151.0"
EPOCH = 946684800
"""2000, when its tests begin; promtool's begin with 1970."""
NEAR = 0.1
"""Figures may differ by this share: MetricsQL takes the sample before a window and doesn't extrapolate."""

_FAR = re.compile(r"(?:[5-9]|\d\d+)m|\d+h")
"""Steps after which no rule sees what another of its group recorded a step before: here each rule has its own."""
_END = r"(?= \n|\](?:\d{4}/|\n|$))"
_ALERT = re.compile(
    r"groupname: , alertname: (?P<alert>\w+), time: (?P<time>\w+), \n +exp:(?P<expected>.*?), \n +got:(?P<got>.*?)"
    + _END,
    re.DOTALL,
)
_LABELS = re.compile(r"^ *Labels:(.*)", re.MULTILINE)
_FIGURE = re.compile(
    r'expr: (?P<expr>"(?:\\.|[^"\\])*"), time: (?P<time>\w+),\n +exp: (?P<expected>.*)\n +got: (?P<got>.*?)' + _END
)
_ERROR = re.compile(r'(?:expr: "(?:\\.|[^"\\])*", time: \w+, err|failed to exec group): .*')
_SAMPLE = re.compile(r'(?P<labels>\{(?:[^"}]|"(?:\\.|[^"\\])*")*\}) (?P<value>\S+?)(?:,|$)')
_FIRST = re.compile(r"(?<!\S)-?\d[\d.]*")
_NAME = re.compile(r'(?:__name__|alertgroup)="[^"]*"(?:, )?')


def program(name: str = "vmalert-tool") -> Path:
    """It, kept: the first time minutes of Go's compiler. CalledProcessError: that has said why."""
    folder = BASES.resolve() / f"victoria-{VERSION}"
    if not (folder / name).exists():
        module = f"github.com/VictoriaMetrics/VictoriaMetrics/app/{name}@{VERSION}"
        environment = os.environ | {"GOBIN": str(folder), "CGO_ENABLED": "0"}
        subprocess.run(["go", "install", "-ldflags=-s -w", module], env=environment, check=True)
    return folder / name


def translated(part: Mapping[str, Any], rules: Mapping[str, Any], test: Mapping[str, Any], file: Path) -> None:
    """Write a test file of vmalert-tool, and its rules beside it, with one test of a file of promtool."""
    groups = rules["groups"]
    if _FAR.fullmatch(part["evaluation_interval"]):
        groups = [
            {"name": f"{group['name']} {number}", "rules": [rule]}
            for group in groups
            for number, rule in enumerate(group["rules"])
        ]
    rule_file = file.with_suffix(".rules.json")
    rule_file.write_text(json.dumps({"groups": groups}))
    figures = [
        case | {"exp_samples": [sample | {"labels": _labels(sample["labels"])} for sample in case["exp_samples"]]}
        for case in test.get("promql_expr_test", [])
    ]
    outside = test.get("external_labels", {})
    alerts = [
        case | {"exp_alerts": [alert | {"exp_labels": outside | alert["exp_labels"]} for alert in case["exp_alerts"]]}
        for case in test.get("alert_rule_test", [])
    ]
    ours = {key: test[key] for key in ("name", "interval") if key in test}
    ours |= {"input_series": [_since_2000(series) for series in test["input_series"]]}
    ours |= {"alert_rule_test": alerts, "metricsql_expr_test": figures}
    content = {
        "rule_files": [str(rule_file)],
        "evaluation_interval": part["evaluation_interval"],
        "group_eval_order": [group["name"] for group in groups],
        "tests": [ours],
    }
    file.write_text(json.dumps(content))


def _since_2000(series: dict[str, str]) -> dict[str, str]:
    """promtool's tests begin with 1970, these with 2000, and so do the moments that metrics give."""
    if not series["series"].partition("{")[0].endswith("_timestamp_seconds"):
        return series
    return {**series, "values": _FIRST.sub(lambda number: str(float(number[0]) + EPOCH), series["values"])}


def _labels(text: str) -> str:
    return "" if text == "{}" else text


def differences(vmalert_tool: str, file: Path, outside: Mapping[str, str]) -> list[str]:
    """``alert or expression, time`` of every expectation of a translated file that does not hold, in order. An alert's
    labels have to be those expected, figures are near, in its text any. ``outside``: the external labels."""
    argv = [vmalert_tool, "unittest", "--disableAlertgroupLabel", f"--files={file}"]
    argv += [f"--external.label={name}={value}" for name, value in outside.items()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=3600, check=False)
    return found_in(done.stdout)


def found_in(said: str) -> list[str]:
    """What :func:`differences` gives, from what vmalert-tool prints. ValueError: it failed for another reason."""
    alerts, figures = list(_ALERT.finditer(said)), list(_FIGURE.finditer(said))
    if _ERROR.search(said) or ("SUCCESS" not in said and not alerts and not figures):
        raise ValueError(said)
    different = [match for match in alerts if _labels_of(match["expected"]) != _labels_of(match["got"])]
    found = {f"{match['alert']}, {match['time']}" for match in different}
    found |= {
        f"{json.loads(match['expr'])}, {match['time']}"
        for match in figures
        if not _near(_samples(match["expected"]), _samples(match["got"]))
    }
    return sorted(found)


def _labels_of(alerts: str) -> list[str]:
    return sorted(_LABELS.findall(alerts))


def _samples(text: str) -> list[tuple[str, float]]:
    return sorted((_NAME.sub("", match["labels"]), float(match["value"])) for match in _SAMPLE.finditer(text))


def _near(expected: list[tuple[str, float]], got: list[tuple[str, float]]) -> bool:
    return [labels for labels, _ in expected] == [labels for labels, _ in got] and all(
        isclose(one, two, rel_tol=NEAR) or (isnan(one) and isnan(two))
        for (_, one), (_, two) in zip(expected, got, strict=True)
    )


if __name__ == "__main__":
    print(program(*sys.argv[1:]))
