"""Our metrics in somebody else's registry."""

import logging

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.exposition import Exposition, SkipHook
from plumbline.metrics.spec import Kind, MetricSpec, Samples
from support.fake_collectors import fake
from support.prometheus_bridge import PrometheusClientBridge

DROPS = MetricSpec("plumbline_nic_drops_total", Kind.COUNTER, "Drops.", ("device",))
LATENCY = MetricSpec("plumbline_latency_seconds", Kind.HISTOGRAM, "Latency.", ("operation",))


class Counting:
    def __init__(self) -> None:
        self.runs = 0

    def collect(self, _skip: SkipHook) -> Samples:
        self.runs += 1
        return [(DROPS, ("eth0",), 3), (LATENCY, ("read",), HistogramValue((0.5,), (1,), 2, 1.5))]


@pytest.fixture
def source() -> Counting:
    return Counting()


@pytest.fixture
def registry(source: Counting) -> CollectorRegistry:
    exposition = Exposition(
        [fake("test", (DROPS, LATENCY), source.collect)], None, clock=lambda: 0.0, logger=logging.getLogger("test")
    )
    registry = CollectorRegistry()
    registry.register(PrometheusClientBridge(exposition))
    return registry


def test_registering_collects_nothing_and_clashes_are_noticed(registry: CollectorRegistry, source: Counting) -> None:
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        Gauge("plumbline_nic_drops_total", "Another.", registry=registry)
    assert source.runs == 0


def test_samples(registry: CollectorRegistry) -> None:
    assert registry.get_sample_value("plumbline_nic_drops_total", {"device": "eth0"}) == 3
    bucket = {"operation": "read", "le": "0.5"}
    assert registry.get_sample_value("plumbline_latency_seconds_bucket", bucket) == 1
    assert registry.get_sample_value("plumbline_latency_seconds_bucket", bucket | {"le": "+Inf"}) == 2
    assert registry.get_sample_value("plumbline_latency_seconds_sum", {"operation": "read"}) == 1.5
    assert registry.get_sample_value("plumbline_collector_success", {"collector": "test"}) == 1


def test_names_can_be_asked_for(registry: CollectorRegistry) -> None:
    page = generate_latest(registry.restricted_registry(["plumbline_nic_drops_total"])).decode()  # type: ignore[arg-type]
    assert 'plumbline_nic_drops_total{device="eth0"} 3.0\n' in page
    assert "plumbline_latency" not in page
