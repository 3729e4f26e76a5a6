"""What each kind of probe exports reaches the degradation ratio, from its figures to the recording rule.

Figures come from the probes' own parsers and summaries where there is a captured output, and go through the daemon's
collectors; promtool gets exactly the series that a scrape would give.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from plumbline.baseline.model import BaselineEntry, Source, Target
from plumbline.baseline.selection import select
from plumbline.collectors import baseline, daemon, probe
from plumbline.config.workloads import load_catalogue
from plumbline.core.histogram import HistogramValue
from plumbline.metrics.spec import MetricSpec, le_text
from plumbline.probes.canary.target import Target as CanaryTarget
from plumbline.probes.canary.target import streams_of
from plumbline.probes.fio.fio import operations_of
from plumbline.probes.fio.fio_output import parse_report as parse_fio
from plumbline.probes.network.iperf3_output import parse_report as parse_iperf3
from plumbline.probes.network.rtt import statistics
from plumbline.probes.rados.osd_bench import parse_osd_bench
from plumbline.probes.rados.rados_bench import parse_rados_bench
from plumbline.probes.rbd.rbd_output import parse_rbd_bench
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.model import Identity
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult, summarise
from plumbline.probes.run.schedule import ProbeStatus
from plumbline.probes.run.state import ProbeRecord
from support.promtool import run_tests
from support.rules import ROOT, RULES

FIXTURES = ROOT / "tests" / "fixtures"
CATALOGUE = load_catalogue()
TIMES_NS = [200_000 + 1_000 * n for n in range(100)]
GROUPS = ["plumbline-baseline.rules", "plumbline-canary.rules", "plumbline-probe.rules", "plumbline-degradation.rules"]


def fio(workload: str) -> list[OperationResult]:
    report = parse_fio((FIXTURES / "fio" / "randrw75-4k-qd16-j4.json").read_bytes(), job="plumbline")
    return list(operations_of(CATALOGUE.get(workload, where="test", key="workload"), report))


def throughput(workload: str) -> list[OperationResult]:
    transfer = parse_iperf3((FIXTURES / "iperf3" / "transmit-s1.json").read_bytes()).transfer
    return [
        OperationResult(operation=each, throughput=transfer.bytes_per_second, retransmits=transfer.retransmits)
        for each in operations(workload)
    ]


def round_trips(_workload: str) -> list[OperationResult]:
    latency = statistics([each / 1e9 for each in TIMES_NS])
    return [OperationResult(operation="round-trip", latency=latency, loss_ratio=0.0)]


def osd_bench(workload: str) -> list[OperationResult]:
    report = parse_osd_bench((FIXTURES / "ceph-16.2" / "osd-bench.json").read_text())
    return [
        OperationResult(operation=each, iops=report.iops, throughput=report.bytes_per_second)
        for each in operations(workload)
    ]


def rados_bench(workload: str) -> list[OperationResult]:
    report = parse_rados_bench((FIXTURES / "ceph-16.2" / "rados-bench-write.json").read_text())
    return [
        OperationResult(
            operation=each, iops=report.iops, throughput=report.bytes_per_second, latency={"mean": report.mean_s}
        )
        for each in operations(workload)
    ]


def rbd_bench(workload: str) -> list[OperationResult]:
    report = parse_rbd_bench((FIXTURES / "rbd-bench" / "plain.txt").read_text())
    return [
        OperationResult(operation=each, iops=report.iops, throughput=report.throughput) for each in operations(workload)
    ]


def one_by_one(workload: str) -> list[OperationResult]:
    return [summarise(each, TIMES_NS, bytes_each=4096) for each in operations(workload)]


def operations(workload: str) -> tuple[str, ...]:
    return CATALOGUE.get(workload, where="test", key="workload").operations


KINDS = {
    "fio": ("randrw75-4k-qd16-j4", "disk", fio),
    "iperf3/192.0.2.12": ("tcp-throughput-s1", "network", throughput),
    "rtt/192.0.2.12": ("icmp-rtt-56", "network", round_trips),
    "osd-bench/osd.3": ("osd-bench-4m", "osd", osd_bench),
    "rados-bench": ("rados-write-4m-t16", "rados", rados_bench),
    "rbd-fio": ("rbd-randrw50-4m-qd16-j1", "rbd", fio),
    "rbd-bench": ("rbd-bench-write-4k-t16", "rbd", rbd_bench),
    "filesystem-fio": ("fs-randread-4k-qd1-j1", "filesystem", fio),
    "filesystem-metadata": ("fs-metadata-1k", "filesystem", one_by_one),
    "s3": ("s3-ops-4k", "object", one_by_one),
}


def status(name: str, workload: str, figures: Iterable[OperationResult]) -> ProbeStatus:
    known = CATALOGUE.get(workload, where="test", key="workload")
    result = ProbeResult(
        probe=name, layer=known.layer, device_class="ssd", workload=workload, config_hash=known.config_hash(),
        tool="t", tool_version="1", started=0.0, duration=1.0, outcome=Outcome.SUCCESS, operations=tuple(figures),
    )  # fmt: skip
    identity = Identity(
        probe=name, kind="k", layer=known.layer, device_class="ssd", workload=workload, operations=known.operations,
        config_hash=known.config_hash(), tool="t",
    )  # fmt: skip
    record = ProbeRecord(result=result, success=result, recent=(result.operations,) * 3)
    return ProbeStatus(identity, record, interval_s=3600.0)


def twice_as_good(probed: ProbeStatus) -> list[BaselineEntry]:
    return [
        BaselineEntry(
            layer=probed.identity.layer, device_class="ssd", workload=probed.identity.workload,
            operation=each.operation, source=Source.MEASURED, profile="baseline",
            config_hash=probed.identity.config_hash,
            latency={statistic: seconds / 2 for statistic, seconds in each.latency.items()},
            iops=each.iops and each.iops * 2, throughput=each.throughput and each.throughput * 2,
        )
        for each in probed.record.result.operations
    ]  # fmt: skip


def series(samples: Iterable[tuple[MetricSpec, tuple[str, ...], object]]) -> list[dict[str, str]]:
    found = []
    for spec, labels, value in samples:
        if isinstance(value, int | float):
            pairs = dict(zip((*spec.labels, "instance"), (*labels, "node"), strict=True))
            inside = ",".join(f'{label}="{text}"' for label, text in pairs.items())
            found.append({"series": f"{spec.name}{{{inside}}}", "values": f"{value!r}x10"})
    return found


def rated(results: Iterable[OperationResult], *, judged_only: bool) -> list[tuple[str, str]]:
    found = []
    for each in results:
        found += [
            (each.operation, statistic) for statistic in each.latency if not judged_only or statistic in ("mean", "p50")
        ]
        found += [(each.operation, "iops")] if each.iops is not None else []
        found += [(each.operation, "throughput")] if each.throughput is not None else []
    return found


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_probe_is_judged(name: str, tmp_path: Path) -> None:
    workload, layer, measure = KINDS[name]
    probed = status(name, workload, measure(workload))
    assert probed.identity.layer == layer
    assert {each.operation for each in probed.record.result.operations} <= set(operations(workload))
    targets = [
        Target(name, layer, "ssd", workload, each.operation, probed.identity.config_hash)
        for each in probed.record.result.operations
    ]
    chosen = select(twice_as_good(probed), targets, {})
    assert chosen.missing == ()
    state = daemon.DaemonState(reload_ok=True, since_ts=0.0, state_saved=True)
    given = series(
        (*probe.samples(probe.ProbesReading((probed,), now=10.0)), *baseline.samples(chosen), *daemon.samples(state))
    )

    def expected(judged_only: bool) -> list[dict[str, object]]:
        return [
            {
                "labels": f'{{device_class="ssd",instance="node",layer="{layer}",operation="{operation}",'
                f'probe="{name}",profile="baseline",source="measured",statistic="{statistic}",workload="{workload}"}}',
                "value": 2,
            }
            for operation, statistic in rated(probed.record.result.operations, judged_only=judged_only)
        ]

    assert expected(judged_only=True), "a kind without a figure that judges"
    asked = [
        {"eval_time": "5m", "expr": f"round({record}, 1e-6)", "exp_samples": expected(judged_only)}
        for record, judged_only in (
            ("plumbline:degradation:ratio", False),
            ("plumbline:degradation_median_of_three:ratio", True),
        )
    ]
    asked.append(
        {
            "eval_time": "5m",
            "expr": "round(plumbline:layer_degradation:ratio, 1e-6)",
            "exp_samples": [{"labels": f'{{instance="node",layer="{layer}"}}', "value": 2}],
        }
    )
    file = tmp_path / "layer.yaml"
    file.write_text(
        json.dumps(
            {
                "rule_files": [str(RULES)],
                "evaluation_interval": "1m",
                "group_eval_order": GROUPS,
                "tests": [{"interval": "1m", "input_series": given, "promql_expr_test": asked}],
            }
        )
    )
    assert run_tests(file) == ""


CANARIES = {"mount": ("fs-ops-4k", "filesystem"), "gateway": ("s3-ops-4k", "object")}


@pytest.mark.parametrize("name", CANARIES)
def test_each_kind_of_canary_is_judged(name: str, tmp_path: Path) -> None:
    """Thirty operations a minute, each twice as slow as the baseline says."""
    workload, layer = CANARIES[name]
    known = CATALOGUE.get(workload, where="test", key="workload")
    plan = CanaryTarget(name=name, workloads=((known, ()),), device_class="ssd")  # type: ignore[arg-type]
    streams = streams_of(plan.with_bounds({(name, workload, each): (0.0008,) for each in known.operations}))
    given: list[dict[str, str]] = []
    medians: dict[str, float] = {}
    for stream in streams:
        cumulative = tuple(0 if edge < 0.0004 else 30 for edge in stream.edges)
        medians[stream.operation] = quantile(HistogramValue(stream.edges, cumulative, 30, 0.012), 0.5) or 0.0
        pairs = {"instance": "node", "probe": name, "layer": layer, "device_class": "ssd", "workload": workload}
        place = ",".join(f'{label}="{text}"' for label, text in (pairs | {"operation": stream.operation}).items())
        metric = "plumbline_canary_latency_seconds"
        for edge, count in (*zip(map(le_text, stream.edges), cumulative, strict=True), ("+Inf", 30)):
            given.append({"series": f'{metric}_bucket{{{place},le="{edge}"}}', "values": f"0+{count}x30"})
        given.append({"series": f"{metric}_count{{{place}}}", "values": "0+30x30"})
        given.append({"series": f"{metric}_sum{{{place}}}", "values": "0+0.012x30"})
        hashed = f'{place},config_hash="{stream.config_hash}"'
        given.append({"series": f"plumbline_canary_workload_info{{{hashed}}}", "values": "1x30"})
    targets = [Target(name, layer, "ssd", workload, each, known.config_hash()) for each in known.operations]
    entries = [
        BaselineEntry(
            layer=layer, device_class="ssd", workload=workload, operation=operation, source=Source.MEASURED,
            profile="baseline", config_hash=known.config_hash(), latency={"p50": median / 2},
        )
        for operation, median in medians.items()
    ]  # fmt: skip
    state = daemon.DaemonState(reload_ok=True, since_ts=0.0, state_saved=True)
    given += series((*baseline.samples(select(entries, targets, {})), *daemon.samples(state)))
    for each in given:
        if "values" in each and each["values"].endswith("x10"):
            each["values"] = f"{each['values'].removesuffix('x10')}x30"
    asked = [
        {
            "eval_time": "12m",
            "expr": f'count(abs({record}{{layer="{layer}",statistic="p50"}} - 2) < 0.01)',
            "exp_samples": [{"labels": "{}", "value": len(known.operations)}],
        }
        for record in ("plumbline:degradation:ratio", "plumbline:degradation_fast:ratio")
    ]
    file = tmp_path / "canary.yaml"
    file.write_text(
        json.dumps(
            {
                "rule_files": [str(RULES)],
                "evaluation_interval": "30s",
                "group_eval_order": [*GROUPS, "plumbline-judgement.rules"],
                "tests": [{"interval": "30s", "input_series": given, "promql_expr_test": asked}],
            }
        )
    )
    assert run_tests(file) == ""
