"""Exact pages for a fixed set of samples, each accepted by the reference tools."""

from __future__ import annotations

import logging
import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.exposition import Exposition, SkipHook
from plumbline.metrics.rendering import Format, Renderer
from plumbline.metrics.spec import Kind, MetricSpec, Samples
from support.fake_collectors import fake
from support.golden import VARIABLE, check_golden

HERE = Path(__file__).parent / "exposition"

DROPS = MetricSpec(
    "plumbline_nic_drops_total",
    Kind.COUNTER,
    'Packets dropped by cause; "ring": no descriptor, the host was too slow. A backslash: \\.',
    ("device", "direction", "cause"),
)
UP = MetricSpec("plumbline_nic_up", Kind.GAUGE, "1: the link is up.", ("device",))
INFO = MetricSpec("plumbline_disk_info", Kind.GAUGE, "Facts about a disk, always 1.", ("device", "model"))
RATIO = MetricSpec("plumbline_test_value_ratio", Kind.GAUGE, "Every kind of number.", ("case",))
UNLABELLED = MetricSpec("plumbline_config_last_reload_successful", Kind.GAUGE, "1: the last reload was taken.")
LATENCY = MetricSpec(
    "plumbline_canary_latency_seconds", Kind.HISTOGRAM, "Latency of single operations.", ("probe", "operation")
)
EDGES = (0.00001, 0.00025, 0.005, 1.0, 10.0)


def collect(_skip: SkipHook) -> Samples:
    yield DROPS, ("eth0", "receive", "ring"), 48123
    yield UP, ("eth0",), True
    yield DROPS, ("eth0", "transmit", "other"), 0
    yield UP, ('"><script>',), 0
    yield DROPS, ("back\\slash\n", "receive", "ring"), 2**63
    yield INFO, ("nvme0n1", 'Größe 3,84TB "Ü" '), 1
    yield INFO, ("sda", b"\xffST16000".decode("utf-8", "surrogateescape")), 1
    yield INFO, ("sdb", ""), 1
    for case, value in (
        ("nan", math.nan), ("inf", math.inf), ("minus inf", -math.inf), ("zero", 0), ("minus zero", -0.0),
        ("third", 1 / 3), ("smallest", 5e-324), ("largest", 1.7976931348623157e308), ("million", 1e6), ("whole", 5.0),
    ):  # fmt: skip
        yield RATIO, (case,), value
    yield UNLABELLED, (), 1
    yield LATENCY, ("canary", "read"), HistogramValue(EDGES, (0, 12, 340, 341, 341), 342, 1.2345678)
    yield LATENCY, ("canary", "write"), HistogramValue(EDGES, (0, 0, 0, 0, 0), 0, 0.0)


def page(form: Format) -> bytes:
    specs = (DROPS, UP, INFO, RATIO, UNLABELLED, LATENCY)
    exposition = Exposition(
        [fake("fixed", specs, collect, listed=False)], None, clock=lambda: 0.0, logger=logging.getLogger("test")
    )
    renderer = Renderer()
    names = frozenset(spec.name for spec in specs)  # not the build's, which changes with Python
    first = renderer.render(exposition.scrape(), form, names)
    assert renderer.render(exposition.scrape(), form, names) == first
    return first


@pytest.mark.parametrize(("form", "file"), [(Format.TEXT, "samples.prom"), (Format.OPENMETRICS, "samples.openmetrics")])
def test_golden(form: Format, file: str) -> None:
    check_golden(HERE / file, page(form))


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_accepts_the_text_page() -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=(HERE / "samples.prom").read_bytes(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_openmetrics_parser_accepts_the_other() -> None:
    families = {
        family.name: family
        for family in text_string_to_metric_families((HERE / "samples.openmetrics").read_text("utf-8"))
    }
    assert families["plumbline_nic_drops"].type == "counter"
    assert families["plumbline_nic_drops"].samples[2].labels["device"] == "back\\slash\\n"
    assert len(families["plumbline_canary_latency_seconds"].samples) == 2 * (len(EDGES) + 3)


def test_golden_files_are_not_rewritten_under_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, VARIABLE, "write")
    monkeypatch.setitem(os.environ, "CI", "true")
    with pytest.raises(AssertionError, match="refused under CI"):
        check_golden(tmp_path / "x", b"")
    monkeypatch.setitem(os.environ, "CI", "")
    check_golden(tmp_path / "x", b"a\n")
    assert (tmp_path / "x").read_bytes() == b"a\n"
