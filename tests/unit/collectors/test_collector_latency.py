"""Latency histograms as samples, and the check that asks for them."""

from __future__ import annotations

from pathlib import Path

from plumbline.checks.disk_latency import CHECKS, DROP_IN
from plumbline.checks.model import judge
from plumbline.collectors import latency
from plumbline.collectors.latency import EDGES_S
from plumbline.core.histogram import HistogramValue, coarser
from plumbline.metrics.spec import le_text
from plumbline.sources.disk.blocklatency import DiskLatency, LatencyReading
from plumbline.sources.disk.latencymaps import OPERATIONS, Histogram, Times

ROOT = Path(__file__).parents[3]
NONE = Histogram((0,) * 28, 0)


def test_edges() -> None:
    assert [le_text(edge) for edge in (EDGES_S[0], EDGES_S[7], EDGES_S[10], EDGES_S[26])] == [
        "1e-06", "0.000128", "0.001024", "67.108864",
    ]  # fmt: skip


def test_a_disk_in_seconds() -> None:
    counts = (0, 2, 1, *[0] * 24, 1)
    times = dict.fromkeys(OPERATIONS, Times(NONE, NONE))
    times["write"] = Times(Histogram(counts, 70_000_004_000), Histogram((4, *[0] * 27), 1000))
    reading = LatencyReading((DiskLatency("sda", times),), {"interrupted": 0}, queue_buckets=True)
    got = {(spec.name, *labels): value for spec, labels, value in latency.samples(reading)}
    assert got == {
        ("plumbline_disk_latency_seconds", "sda", "read"): HistogramValue(EDGES_S, (0,) * 27, 0, 0.0),
        ("plumbline_disk_queue_seconds", "sda", "read"): HistogramValue(EDGES_S, (0,) * 27, 0, 0.0),
        ("plumbline_disk_latency_seconds", "sda", "write"): HistogramValue(EDGES_S, (0, 2, *[3] * 25), 4, 70.000004),
        ("plumbline_disk_queue_seconds", "sda", "write"): HistogramValue(EDGES_S, (4,) * 27, 4, 1e-6),
        ("plumbline_disk_latency_ios_untimed_total", "interrupted"): 0,
        ("plumbline_disk_latency_restart_required",): 0,
        ("plumbline_disk_latency_disks_without_room",): 0,
    }


def test_the_queue_has_buckets_only_where_they_are_wanted() -> None:
    times = dict.fromkeys(OPERATIONS, Times(NONE, Histogram((3, *[0] * 27), 1000)))
    reading = LatencyReading((DiskLatency("sda", times),), {})
    (queue,) = [
        value for spec, labels, value in latency.samples(reading) if (spec, labels[-1:]) == (latency.QUEUE, ("read",))
    ]
    assert queue == HistogramValue((), (), 3, 1e-6)


def test_the_default_page_has_every_edge_where_tails_are_judged_the_same_of_every_operation() -> None:
    times = dict.fromkeys(OPERATIONS, Times(Histogram((1,) * 28, 5), NONE))
    found = {
        labels[1]: coarser(value).edges
        for spec, labels, value in latency.samples(LatencyReading((DiskLatency("sda", times),), {}))
        if spec is latency.LATENCY and isinstance(value, HistogramValue)
    }
    assert found == dict.fromkeys(OPERATIONS, (*EDGES_S[5:21], EDGES_S[23]))


def test_flushes_appear_with_the_first() -> None:
    times = dict.fromkeys(OPERATIONS, Times(NONE, NONE)) | {"flush": Times(Histogram((1, *[0] * 27), 5), NONE)}
    got = latency.samples(LatencyReading((DiskLatency("sda", times),), {}))
    assert {labels[1] for _, labels, _ in got if labels} == {"read", "write", "flush"}


def test_the_check() -> None:
    assert judge(CHECKS, None) == ()
    assert judge(CHECKS, "the kernel was built without CONFIG_DEBUG_INFO_BTF") == ()
    (met,) = judge(CHECKS, LatencyReading((), {}))
    assert met.met
    (missing,) = judge(CHECKS, "CAP_BPF and CAP_PERFMON missing")
    assert not missing.met
    assert missing.actual == "CAP_BPF and CAP_PERFMON missing"
    assert missing.fix is not None


def test_disks_that_wait_for_a_restart() -> None:
    reading = LatencyReading((), {}, restart_required=True)
    assert (latency.RESTART, (), 1) in list(latency.samples(reading))
    (finding,) = judge(CHECKS, reading)
    assert not finding.met
    assert finding.fix is not None
    assert finding.fix.now == "systemctl restart plumbline.service"


def test_the_drop_in_is_the_file_s() -> None:
    text = (ROOT / "systemd/drop-ins/disk-latency.conf").read_text()
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == DROP_IN.splitlines()
