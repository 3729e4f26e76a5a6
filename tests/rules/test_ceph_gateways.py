"""The rules of gateways on pages of a real RGW and a real metadata server at work, of 16.2, 18.2 and 20.2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.ceph_pages import LOAD_S, Page, captured, growing, scraped, served
from support.promtool import run_tests
from support.rulefiles import load
from support.rules import ALERTS, RULES

MANAGER = {"instance": "mgr-x:9283", "job": "ceph", "cluster": "north"}
EXPORTER = {"instance": "stor01", "job": "ceph-exporter", "cluster": "north"}
STEP_S, MINUTES = 30, 40
OPERATIONS = {"object": {"get", "put"}, "filesystem": {"create", "lookup", "unlink"}}
"""What the clients did on each of the clusters, at the least."""


def from_start(page: Page) -> Page:
    """As when the daemons started: what they count is at zero, what they are is not."""
    return {key: value if key[0].endswith("_metadata") else 0.0 for key, value in page.items()}


def gateways(page: Page) -> Page:
    return {key: value for key, value in page.items() if key[0].startswith(("ceph_rgw_", "ceph_mds_"))}


def pages() -> dict[str, tuple[Page, Page, str]]:
    """What was captured → the first page, the last, the name that RGW gets."""
    counters = scraped(gateways(served(20, "mgr-metrics-counters")), **MANAGER)
    exporter = scraped(gateways(served(20, "exporter-metrics-load")), **EXPORTER)
    named = {key: value for key, value in counters.items() if key[0].endswith("_metadata")}
    return {
        "16, manager": (
            scraped(captured("gateways-1"), **MANAGER), scraped(captured("gateways-2"), **MANAGER), "rgw.a",
        ),
        "18, manager": (
            scraped(served(18, "mgr-metrics-gateways-1"), **MANAGER),
            scraped(served(18, "mgr-metrics-gateways-2"), **MANAGER), "rgw.a",
        ),
        "20, manager": (from_start(counters), counters, "rgw.a"),
        # it gives RGW a number that the manager does not know
        "20, ceph-exporter": (from_start(exporter) | named, exporter | named, "rgw.94379305531672"),
        "20, both": (from_start(exporter | counters), exporter | counters, "rgw.a"),
    }  # fmt: skip


PAGES = pages()


@pytest.mark.parametrize("what", PAGES)
def test_a_gateway_and_a_metadata_server_have_their_figures_and_nothing_fires(tmp_path: Path, what: str) -> None:
    first, last, rgw = PAGES[what]
    series = growing(first, last, LOAD_S, STEP_S, MINUTES * 60 // STEP_S)
    cases: list[dict[str, Any]] = [
        {"expr": 'count(ALERTS{alertname=~"PlumblineGateway.*"}) or vector(0)', "eval_time": f"{MINUTES}m",
         "exp_samples": [{"labels": "{}", "value": 0}]},
        {"expr": "count(plumbline:gateway_failed:rate5m / plumbline:gateway_requests:rate5m < 0.1)",
         "eval_time": "20m", "exp_samples": [{"labels": "{}", "value": 1}]},
        {"expr": f'count(plumbline:gateway_operations:rate5m{{layer="object",gateway!="{rgw}"}}) or vector(0)',
         "eval_time": "20m", "exp_samples": [{"labels": "{}", "value": 0}]},
        {"expr": 'count(plumbline:mds_journal_latency:mean5m{gateway="mds.a"} < 1)', "eval_time": "20m",
         "exp_samples": [{"labels": "{}", "value": 1}]},
    ]  # fmt: skip
    for layer, gateway in (("object", rgw), ("filesystem", "mds.a")):
        for operation in OPERATIONS[layer]:
            of = f'{{cluster="north",gateway="{gateway}",layer="{layer}",operation="{operation}"}}'
            # between a microsecond and a second: no unit is a thousand times off
            cases.append({"expr": f"(plumbline:gateway_latency:mean5m{of} > 1e-6) < bool 1", "eval_time": "20m",
                          "exp_samples": [{"labels": of, "value": 1}]})  # fmt: skip
            cases.append({"expr": f"plumbline:gateway_operations:rate5m{of} > bool 0.05", "eval_time": "20m",
                          "exp_samples": [{"labels": of, "value": 1}]})  # fmt: skip
    assert not proven(tmp_path, series, cases)


def proven(folder: Path, series: list[dict[str, str]], cases: list[dict[str, Any]]) -> str:
    """What promtool has against it."""
    groups = [
        each
        for file in (RULES, ALERTS)
        for each in load(file)["groups"]
        if each["name"].startswith("plumbline-gateway")
    ]
    assert len(groups) == 4
    (folder / "rules.yaml").write_text(json.dumps({"groups": groups}), "utf-8")
    test = {"interval": f"{STEP_S}s", "input_series": series, "promql_expr_test": cases}
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "2m", "tests": [test],
               "group_eval_order": [each["name"] for each in groups]}  # fmt: skip
    (folder / "test.yaml").write_text(json.dumps(content), "utf-8")
    return run_tests(folder / "test.yaml")
