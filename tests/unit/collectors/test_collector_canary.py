"""A canary's reading as samples, literally."""

from __future__ import annotations

from msgspec.structs import replace

from plumbline import __version__
from plumbline.collectors import canary
from plumbline.collectors.canary import CanariesReading
from plumbline.core.histogram import HistogramValue
from plumbline.probes.run.reading import CanaryReading, CanaryState, WorkloadReading

LATENCY = HistogramValue((0.0005, 0.001), (3, 4), 5, 0.0125)
WRITE = WorkloadReading(
    layer="disk",
    workload="randwrite-4k-qd1-j1-dsync",
    operation="write",
    config_hash="abcdef012345",
    bounds=(0.001,),
    latency=LATENCY,
    charged=2,
    errors={"EIO": 1, "ENOSPC": 0},
    in_flight_s=0.25,
    last_completion_ts=1700000001.5,
    last_success_ts=1700000000.5,
)
READING = CanaryReading(
    probe="canary",
    device_class="nvme",
    state=CanaryState.RUNNING,
    reason="",
    message="",
    workloads=(WRITE,),
    in_flight_s=0.25,
    rate_per_s=10.0,
    runs=1,
    skips={"no-space": 1, "locked": 0},
    success=True,
)
PLACE = ("canary", "disk", "nvme", "randwrite-4k-qd1-j1-dsync", "write")


def text(reading: CanaryReading) -> list[tuple[str, tuple[str, ...], object]]:
    return [(spec.name, labels, value) for spec, labels, value in canary.samples(CanariesReading((reading,)))]


def test_everything_that_is_known() -> None:
    assert text(READING) == [
        ("plumbline_probe_success", ("canary",), 1.0),
        ("plumbline_probe_last_run_timestamp_seconds", ("canary",), 1700000001.5),
        ("plumbline_probe_last_success_timestamp_seconds", ("canary",), 1700000000.5),
        ("plumbline_probe_in_flight_seconds", ("canary",), 0.25),
        ("plumbline_probe_runs_skipped_total", ("canary", "locked"), 0),
        ("plumbline_probe_runs_skipped_total", ("canary", "no-space"), 1),
        ("plumbline_probe_info", ("canary", "canary", "plumbline", __version__, "disk", "nvme", "", "", ""), 1),
        ("plumbline_canary_workload_info", (*PLACE, "abcdef012345"), 1),
        ("plumbline_canary_latency_seconds", PLACE, LATENCY),
        ("plumbline_canary_operations_charged_total", ("canary", "write"), 2),
        ("plumbline_canary_errors_total", ("canary", "write", "EIO"), 1),
        ("plumbline_canary_errors_total", ("canary", "write", "ENOSPC"), 0),
        ("plumbline_canary_slow_operations_total", (*PLACE, "0.001"), 1),
    ]


def test_what_is_not_known_has_no_series() -> None:
    quiet = replace(WRITE, bounds=(), last_completion_ts=None, last_success_ts=None)
    names = [name for name, _, _ in text(replace(READING, workloads=(quiet,), success=None))]
    for absent in (
        "plumbline_probe_success",
        "plumbline_probe_last_run_timestamp_seconds",
        "plumbline_probe_last_success_timestamp_seconds",
        "plumbline_canary_slow_operations_total",
    ):
        assert absent not in names


def test_the_bound_is_written_as_the_bucket_is() -> None:
    latency = HistogramValue((1.745e-05, 0.001, 1.0), (3, 4, 8), 10, 4.5)
    tiny = replace(WRITE, bounds=(1.745e-05, 1.0), latency=latency)
    samples = text(replace(READING, workloads=(tiny,)))
    slow = [(labels[-1], value) for name, labels, value in samples if name.endswith("_slow_operations_total")]
    assert slow == [("1.745e-05", 7), ("1.0", 2)]


def test_samples_fit_their_specs() -> None:
    for spec, labels, _ in canary.samples(CanariesReading((READING,))):
        assert spec in canary.COLLECTOR.specs
        assert len(labels) == len(spec.labels)


def test_a_target_of_its_own_has_every_label_that_the_metric_has() -> None:
    readings = [
        replace(READING, target="sdb", device="sdb"),
        replace(READING, target="osd.3"),
        replace(READING, device="sdc"),
    ]
    samples = [
        sample
        for sample in canary.samples(CanariesReading(tuple(readings)))
        if sample[0].name == "plumbline_probe_target_info"
    ]
    assert [labels for _, labels, _ in samples] == [
        ("canary", "sdb", "sdb"),
        ("canary", "osd.3", ""),
        ("canary", "", "sdc"),
    ]
    assert all(len(labels) == len(spec.labels) for spec, labels, _ in samples)
