"""Probe status → samples, with literal values."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.collectors import probe
from plumbline.collectors.probe import ProbesReading, samples
from plumbline.probes.run.histogram import OperationTotals
from plumbline.probes.run.model import Identity
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.schedule import ProbeStatus
from plumbline.probes.run.state import ProbeRecord

RESULT = ProbeResult(
    probe="fio-a",
    layer="disk",
    device_class="ssd",
    workload="randrw75-4k-qd16-j4",
    config_hash="abc",
    tool="fio",
    tool_version="3.33",
    started=1000.0,
    duration=12.5,
    outcome=Outcome.SUCCESS,
    operations=(
        OperationResult(operation="read", iops=300.0, throughput=1228800.0, latency={"mean": 0.002, "p99": 0.004}),
        OperationResult(operation="write", iops=None, throughput=0.0, latency={"max": 0.0}),
    ),
)
FAILED = ProbeResult(
    probe="fio-a",
    layer="disk",
    device_class="ssd",
    workload="randrw75-4k-qd16-j4",
    config_hash="abc",
    tool="fio",
    tool_version="3.33",
    started=1100.0,
    duration=1.0,
    outcome=Outcome.FAILURE,
    message="fio: no space",
)
IDENTITY = Identity(
    probe="fio-a",
    kind="fio",
    layer="disk",
    device_class="ssd",
    workload="randrw75-4k-qd16-j4",
    operations=("read", "write"),
    config_hash="abc",
    tool="fio",
)
OTHER = replace(IDENTITY, config_hash="def")
FRESH = ProbeStatus(IDENTITY, ProbeRecord(), interval_s=100.0)
RECORD = ProbeRecord(
    result=RESULT,
    success=RESULT,
    runs={Outcome.SUCCESS: 4, Outcome.TIMEOUT: 1},
    skipped={"load": 2, "device-busy": 1},
)
GOOD = replace(FRESH, record=RECORD)
PLACE = 'probe="fio-a",layer="disk",device_class="ssd",workload="randrw75-4k-qd16-j4"'
FIGURES = [
    f'plumbline_probe_latency_seconds{{{PLACE},operation="read",statistic="mean"}} 0.002',
    f'plumbline_probe_latency_seconds{{{PLACE},operation="read",statistic="p99"}} 0.004',
    f'plumbline_probe_iops{{{PLACE},operation="read"}} 300.0',
    f'plumbline_probe_throughput_bytes_per_second{{{PLACE},operation="read"}} 1228800.0',
    f'plumbline_probe_latency_seconds{{{PLACE},operation="write",statistic="max"}} 0.0',
    f'plumbline_probe_throughput_bytes_per_second{{{PLACE},operation="write"}} 0.0',
]


def remembering(**fields: object) -> ProbeStatus:
    return replace(GOOD, record=replace(RECORD, **fields))


def lines(status: ProbeStatus, now: float = 1050.0) -> list[str]:
    found = []
    for spec, labels, value in samples(ProbesReading((status,), now)):
        pairs = ",".join(f'{name}="{label}"' for name, label in zip(spec.labels, labels, strict=True))
        found.append(f"{spec.name}{{{pairs}}} {value}")
    return found


def figures(found: list[str]) -> list[str]:
    return [line for line in found if 'operation="' in line]


def test_before_the_first_run():
    assert lines(FRESH) == [
        'plumbline_probe_in_flight_seconds{probe="fio-a"} 0.0',
        'plumbline_probe_info{probe="fio-a",probe_type="fio",tool="fio",tool_version="",layer="disk",device_class="ssd",'
        'workload="randrw75-4k-qd16-j4",config_hash="abc",vantage=""} 1',
        'plumbline_probe_interval_seconds{probe="fio-a"} 100.0',
        'plumbline_probe_runs_total{probe="fio-a",result="success"} 0',
        'plumbline_probe_runs_total{probe="fio-a",result="failure"} 0',
        'plumbline_probe_runs_total{probe="fio-a",result="timeout"} 0',
    ]


def test_after_a_good_run():
    assert lines(GOOD) == [
        'plumbline_probe_success{probe="fio-a"} 1.0',
        'plumbline_probe_last_run_timestamp_seconds{probe="fio-a"} 1012.5',
        'plumbline_probe_last_success_timestamp_seconds{probe="fio-a"} 1012.5',
        'plumbline_probe_in_flight_seconds{probe="fio-a"} 0.0',
        'plumbline_probe_runs_skipped_total{probe="fio-a",reason="device-busy"} 1',
        'plumbline_probe_runs_skipped_total{probe="fio-a",reason="load"} 2',
        'plumbline_probe_info{probe="fio-a",probe_type="fio",tool="fio",tool_version="3.33",layer="disk",'
        'device_class="ssd",workload="randrw75-4k-qd16-j4",config_hash="abc",vantage=""} 1',
        'plumbline_probe_duration_seconds{probe="fio-a"} 12.5',
        'plumbline_probe_interval_seconds{probe="fio-a"} 100.0',
        'plumbline_probe_runs_total{probe="fio-a",result="success"} 4',
        'plumbline_probe_runs_total{probe="fio-a",result="failure"} 0',
        'plumbline_probe_runs_total{probe="fio-a",result="timeout"} 1',
        *FIGURES,
    ]


@pytest.mark.parametrize(("now", "expected"), [(1312.5, FIGURES), (1312.6, [])])
def test_figures_go_when_older_than_three_intervals(now: float, expected: list[str]):
    found = lines(GOOD, now=now)
    assert figures(found) == expected
    assert 'plumbline_probe_last_success_timestamp_seconds{probe="fio-a"} 1012.5' in found


def test_a_clock_that_was_set_back_makes_nothing_stale():
    assert figures(lines(GOOD, now=10.0)) == FIGURES


def test_after_a_failed_run_the_figures_of_the_good_one_stay_until_stale():
    failed = remembering(result=FAILED)
    found = lines(failed, now=1110.0)
    assert 'plumbline_probe_success{probe="fio-a"} 0.0' in found
    assert 'plumbline_probe_last_run_timestamp_seconds{probe="fio-a"} 1101.0' in found
    assert figures(found) == FIGURES
    assert figures(lines(failed, now=1313.0)) == []


def test_a_probe_that_never_succeeded_has_no_figures():
    assert figures(lines(replace(FRESH, record=ProbeRecord(result=FAILED)))) == []


def test_figures_of_other_parameters_are_not_the_probes_own():
    assert figures(lines(replace(GOOD, identity=OTHER))) == []


def test_in_flight():
    assert 'plumbline_probe_in_flight_seconds{probe="fio-a"} 7.5' in lines(replace(GOOD, in_flight_s=7.5))


def over_the_network() -> ProbeStatus:
    answered = OperationResult(operation="transmit", retransmits=119, loss_ratio=0.0, mtu_bytes=9000)
    result = replace(RESULT, operations=(answered,))
    status = remembering(result=result, success=result)
    return replace(status, identity=replace(IDENTITY, target="10.0.0.12"))


def test_the_timeout_the_vantage_and_the_totals_over_runs():
    totals = OperationTotals().plus(((0.0001, 30), (0.002, 10)))
    known = replace(remembering(totals={"read": totals}), timeout_s=60.0, vantage="vm")
    found = {spec.name: (labels, value) for spec, labels, value in samples(ProbesReading((known,), 1050.0))}
    assert found["plumbline_probe_timeout_seconds"] == (("fio-a",), 60.0)
    assert found["plumbline_probe_info"][0][-1] == "vm"
    labels, histogram = found["plumbline_probe_operation_latency_seconds"]
    assert labels == ("fio-a", "disk", "ssd", "randrw75-4k-qd16-j4", "read")
    assert (histogram.count, histogram.sum) == (40, pytest.approx(0.023))


def test_figures_of_the_network_and_the_target():
    found = [line for line in lines(over_the_network()) if "transmit" in line or "target" in line]
    assert found == [
        'plumbline_probe_target_info{probe="fio-a",target="10.0.0.12",device=""} 1',
        f'plumbline_probe_retransmits{{{PLACE},operation="transmit"}} 119',
        f'plumbline_probe_loss_ratio{{{PLACE},operation="transmit"}} 0.0',
        f'plumbline_probe_path_mtu_bytes{{{PLACE},operation="transmit"}} 9000',
    ]


def run(p50: float | None = None, **figures: float) -> tuple[OperationResult, ...]:
    latency = {} if p50 is None else {"p50": p50, "mean": 2 * p50, "p99": 9.0}
    return (OperationResult(operation="read", latency=latency, **figures),)


def recent(*runs: tuple[OperationResult, ...]) -> ProbeStatus:
    return remembering(recent=runs)


def test_the_median_of_the_last_three_runs():
    """The middle one, whatever its place; tails are not judged."""
    status = recent(
        run(0.009, iops=10.0, throughput=5.0, loss_ratio=0.5),
        run(0.001, iops=30.0, throughput=7.0, loss_ratio=0.0),
        run(0.002, iops=20.0, throughput=6.0, loss_ratio=0.1),
    )
    assert [line for line in lines(status) if "median_of_three" in line] == [
        f'plumbline_probe_median_of_three_latency_seconds{{{PLACE},operation="read",statistic="mean"}} 0.004',
        f'plumbline_probe_median_of_three_latency_seconds{{{PLACE},operation="read",statistic="p50"}} 0.002',
        f'plumbline_probe_median_of_three_iops{{{PLACE},operation="read"}} 20.0',
        f'plumbline_probe_median_of_three_throughput_bytes_per_second{{{PLACE},operation="read"}} 6.0',
        f'plumbline_probe_median_of_three_loss_ratio{{{PLACE},operation="read"}} 0.1',
    ]


def test_without_three_runs_there_is_no_median():
    assert not [line for line in lines(recent(run(0.001), run(0.002))) if "median_of_three" in line]
    # one of the three did not tell this figure
    status = recent(run(0.001, iops=1.0), run(None, iops=2.0), run(0.002, iops=3.0))
    assert [line for line in lines(status) if "median_of_three" in line] == [
        f'plumbline_probe_median_of_three_iops{{{PLACE},operation="read"}} 2.0'
    ]


def test_medians_grow_stale_with_the_other_figures():
    status = recent(*(run(0.001, iops=1.0),) * 3)
    assert [line for line in lines(status, now=1312.0) if "median_of_three" in line]
    assert not [line for line in lines(status, now=1313.0) if "median_of_three" in line]
    assert not [line for line in lines(replace(status, identity=OTHER)) if "median_of_three" in line]


def test_every_spec_is_declared_once_and_used():
    assert len({spec.name for spec in probe.COLLECTOR.specs}) == len(probe.COLLECTOR.specs)
    whole = replace(remembering(totals={"read": OperationTotals()}), timeout_s=60.0)
    often = recent(*(run(0.001, iops=1.0, throughput=1.0, loss_ratio=0.0),) * 3)
    assert {spec for spec, _, _ in samples(ProbesReading((whole, over_the_network(), often), 1050.0))} == set(
        probe.COLLECTOR.specs
    )
