"""Our metrics in a ``prometheus_client`` registry, to check our renderer against theirs."""

from collections.abc import Iterator
from typing import cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector as PrometheusCollector

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.snapshot import Family
from plumbline.metrics.spec import Kind, MetricSpec, le_text


class PrometheusClientBridge(PrometheusCollector):
    """Register it in a ``CollectorRegistry``. ``process_*`` is left out: registries have their own collector for it."""

    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition

    def describe(self) -> Iterator[Metric]:
        """Every family that can appear, without samples and I/O, so that ``name[]`` and clash detection work."""
        for spec in self._exposition.specs:
            yield _empty(spec)

    def collect(self) -> Iterator[Metric]:
        """The families of one scrape."""
        for family in self._exposition.scrape().families:
            yield _filled(family)


_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_KINDS: dict[Kind, type[_Family]] = {
    Kind.COUNTER: CounterMetricFamily,
    Kind.GAUGE: GaugeMetricFamily,
    Kind.HISTOGRAM: HistogramMetricFamily,
}


def _empty(spec: MetricSpec) -> _Family:
    return _KINDS[spec.kind](spec.name, spec.help, labels=spec.labels)


def _filled(family: Family) -> Metric:
    metric = _empty(family.spec)
    for labels, value in zip(family.labels, family.values, strict=True):
        if isinstance(metric, HistogramMetricFamily):
            histogram = cast("HistogramValue", value)
            buckets = [(le_text(edge), float(n)) for edge, n in zip(histogram.edges, histogram.cumulative, strict=True)]
            metric.add_metric(labels, [*buckets, ("+Inf", float(histogram.count))], histogram.sum)
        else:
            metric.add_metric(labels, cast("float", value))
    return metric
