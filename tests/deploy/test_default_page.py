"""The default page and the full one give the same alerts, and the same figures on the first two levels of dashboards.

promtool evaluates all rules over one host with faults, in two clusters at once: in one with its full page, in the
other with its default one. What both have is compared by PromQL itself. One host, some of its disks and OSDs: promtool
loads no more than 10,000 samples for one rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deploy.prometheus import keeplist

from scale.fleet import FAULTS
from support import ceph_pages
from support.dashboards import DASHBOARDS, expressions, load, substitute
from support.hosts import NOW
from support.metrics import ROOT
from support.moving_page import MovingPage, fault, of_exposition
from support.native_histograms import converted
from support.promtool import need_prometheus_3, run_tests
from support.rulefiles import RuleSet, names_in
from support.rules import ALERTS, NATIVE, RULES
from support.storage_host import storage_host

EVERY_S, STEPS = 30, 30
# Fewer disks, OSDs and canaries, alike in both clusters.
LEFT_OUT = re.compile(r'device="sd[f-k]"|osd\.[4-9]|canary.*operation="read"')
WRONG = (
    *FAULTS["stor02"],
    *FAULTS["stor03"][1:],
    # a disk that hangs with its volume, and a volume whose disk does not
    fault('plumbline_disk_queue_length{device="(sdd|dm-2|dm-12)"', value=3.0),
    fault('plumbline_disk_ios_total{device="(sdd|dm-2|dm-12)"', per_s=0.0),
    # what the default page has the sum of
    fault(r'plumbline_softnet_packets_dropped_total(\{cpu="7"|$)', per_s=50.0),
    fault("plumbline_osd_slow_operations", value=0.0),
    fault(r'plumbline_osd_slow_operations\{(ceph_daemon="osd.1",)?stage="queue"', value=3.0),
    fault('plumbline_softnet_time_squeezes_total{cpu="7"', per_s=500.0),
    fault('plumbline_osd_blocked_operation_age_seconds{ceph_daemon="osd.1"', value=90.0),
    fault('plumbline_disk_health_available{device="sde"', value=0.0),
)
FIRING = {
    "PlumblineCanaryLatencyHigh", "PlumblineDiskHung", "PlumblineDiskLatencyOutlier", "PlumblineNicRingDrops",
    "PlumblineOsdOperationsBlocked", "PlumblineSoftnetBacklogOverflow", "PlumblineSoftnetTimeSqueeze",
}  # fmt: skip
"""At least these; some wait for longer and are pending."""
SAME, WITHIN_BUCKETS = 0.0005, 0.6
"""How far two figures may be apart, as a share of their sum: next to nothing; fourfold, where buckets give them."""
OTHERWISE = {
    "plumbline:disk_model:figure": "volumes have none on the default page",
    "plumbline:budget_device:seconds": "without the wait in a volume's queue",
    "plumbline-disks / Disks": "volumes are counted on the full page",
    "plumbline-disks / Models and firmware": "volumes are counted on the full page",
    "plumbline-osds / Suspects, and the slowest writers": "any one of an OSD's devices",
}
"""Recorded series, with the panels that show them, and single panels that differ, and why."""
BY_LIMIT = "plumbline:disk_class_latency_bucket:ops_per_second"
"""Has fewer limits on the default page."""
RULE_SET = RuleSet.read(RULES, ALERTS)


def series(page: MovingPage, cluster: str, job: str) -> Iterator[dict[str, str]]:
    """In promtool's notation. Its clock begins at 0, so moments are counted from then."""
    for index, line in enumerate(page.lines):
        value, growth = (line.value - NOW, 1.0) if index in page.stamps else (line.value, line.per_s)
        name, _, labels = line.series.partition("{")
        own = {"cluster": cluster, "instance": "stor02", "job": job}
        given = ",".join(f'{label}="{text}"' for label, text in own.items() if f'{label}="' not in labels)
        begins = {"inf": "Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(value), repr(value))
        values = f"{begins}{growth * EVERY_S:+}x{STEPS}" if begins == repr(value) else f"{begins}x{STEPS}"
        yield {"series": f"{name}{{{given}{',' + labels[:-1] if labels else ''}}}", "values": values}


def compared(full: str, default: str, *, volumes: bool = False) -> list[str]:
    """Queries that have a result where the two differ; ``volumes``: also in what they say of volumes."""
    names = names_in(full)
    if BY_LIMIT in names and "histogram_quantile" not in names:
        full = f"({full}) and on (le) ({default})"
    share = WITHIN_BUCKETS if names & bucketed() else SAME
    without = "" if volumes else " unless on (device) group by (device) (plumbline_disk_relation_info)"
    one, other = f"({full})", f"({default})"
    return [
        f"({one} unless ignoring (cluster) {other}){without}",
        f"({other} unless ignoring (cluster) {one}){without}",
        f"(abs({one} - ignoring (cluster) {other}) > {share:g} * abs({one} + ignoring (cluster) {other})){without}",
    ]


def bucketed() -> set[str]:
    """Recorded series that are read off buckets, directly or not."""
    read = {rule.get("record", "") for rule in RULE_SET.rules() if "_bucket" in rule["expr"]} - {""}
    return set().union(*(RULE_SET.above(name) for name in read))


def panels() -> Iterator[tuple[str, str]]:
    """(where, query) of the first two levels, whole lists in the place of the first ten."""
    for path in DASHBOARDS:
        page = load(path)
        if not keeplist.UPPER.isdisjoint(page["tags"]):
            for where, expr in expressions(page):
                yield where, re.sub(r"\btopk\(\s*\d+,", "topk(1000,", expr.replace("$topk", "1000"))


def asked() -> dict[str, str]:
    """Query → what it is about."""
    _, read = keeplist.read_above(ROOT)
    found = dict.fromkeys(compared('ALERTS{cluster="full"}', 'ALERTS{cluster="default"}', volumes=True), "alerts")
    for name in sorted(read):
        if name not in OTHERWISE:
            found |= dict.fromkeys(compared(*(f'{name}{{cluster="{each}"}}' for each in ("full", "default"))), name)
    for where, expr in panels():
        if where not in OTHERWISE and names_in(expr).isdisjoint(OTHERWISE):
            one, other = (
                substitute(expr, cluster=each, instance="stor02", __rate_interval="5m") for each in ("full", "default")
            )
            found |= dict.fromkeys(compared(one, other), where)
    return found


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The input of the test: the same host and the same cluster twice."""
    found = []
    manager = of_exposition((ceph_pages.CAPTURED / "load-2" / "mgr-metrics.txt").read_text("utf-8"))
    for cluster in ("full", "default"):
        text = storage_host(tmp_path_factory.mktemp("h"), full=cluster == "full")
        fewer = "".join(line for line in text.splitlines(keepends=True) if not LEFT_OUT.search(line))
        found += [*series(of_exposition(fewer, WRONG), cluster, "plumbline"), *series(manager, cluster, "ceph")]
    return found


@pytest.mark.parametrize("flavour", ["classic", "native"])
def test_alerts_and_figures_are_the_same(flavour: str, given: list[dict[str, str]], tmp_path: Path) -> None:
    rules = [RULES, ALERTS]
    if flavour == "native":
        need_prometheus_3()
        rules = list(NATIVE)
    differ = asked()
    assert len(differ) > 1500
    firing = f'count(count by (alertname) (ALERTS{{alertname=~"{"|".join(FIRING)}", cluster="default"}}))'
    at = f"{EVERY_S * STEPS}s"
    test: dict[str, Any] = {
        "interval": f"{EVERY_S}s",
        "input_series": given,
        "promql_expr_test": [
            *({"expr": query, "eval_time": at, "exp_samples": []} for query in differ),
            {"expr": firing, "eval_time": at, "exp_samples": [{"labels": "{}", "value": len(FIRING)}]},
        ],
    }
    file = tmp_path / "test.yaml"
    content = {
        "rule_files": list(map(str, rules)),
        "evaluation_interval": f"{EVERY_S}s",
        "tests": [converted(test) if flavour == "native" else test],
    }
    file.write_text(json.dumps(content), "utf-8")
    said = run_tests(file)
    failed = re.findall(r'^ +expr: ("(?:\\.|[^"\\])*"), time: .*\n.*\n +got: (.*)$', said, re.MULTILINE)
    assert [(differ.get(json.loads(expr), expr), got[:300]) for expr, got in failed] == []
    assert said[:2000] == ""
