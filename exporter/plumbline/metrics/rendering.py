r"""Rendering a snapshot as Prometheus text format 0.0.4 or OpenMetrics 1.0.0.

https://prometheus.io/docs/instrumenting/exposition_formats/ and https://prometheus.io/docs/specs/om/open_metrics_spec/.
Sample lines are identical in both; the formats differ in the names and escaping of ``# HELP`` and ``# TYPE`` and in
``# EOF``::

    # HELP plumbline_softnet_packets_dropped_total Packets …    # HELP plumbline_softnet_packets_dropped Packets …
    # TYPE plumbline_softnet_packets_dropped_total counter      # TYPE plumbline_softnet_packets_dropped counter
    plumbline_softnet_packets_dropped_total{cpu="0"} 0          plumbline_softnet_packets_dropped_total{cpu="0"} 0

The cache keeps everything of a line but its value for the next scrape, and drops what the last one did not have.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, cast

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.snapshot import Family, Snapshot
from plumbline.metrics.spec import Kind, MetricSpec, le_text

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_EOF = "# EOF\n"


class Format(Enum):
    """Exposition formats. Text 1.0.0 is 0.0.4 plus quoted UTF-8 names; none of our names needs quoting."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"


class Renderer:
    """Renders snapshots. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache: dict[str, _Block] = {}

    def render(self, snapshot: Snapshot, form: Format, names: frozenset[str] | None = None) -> bytes:
        """The whole page, or only the families or samples named in ``names``."""
        with self._lock:
            pages = [self._family(family, form, names) for family in snapshot.families]
            if names is None:
                gone = self._cache.keys() - {family.spec.name for family in snapshot.families}
                for name in gone:
                    del self._cache[name]
        if snapshot.foreign:
            pages.append(_foreign(snapshot.foreign, form, names))
        if form is Format.OPENMETRICS:
            pages.append(_EOF)
        return "".join(pages).encode()

    def _family(self, family: Family, form: Format, names: frozenset[str] | None) -> str:
        spec = family.spec
        selected = _selected(spec, names)
        if selected is not None and not selected:
            return ""
        block = self._cache.get(spec.name)
        if block is None or not block.fits(family):
            block = self._cache[spec.name] = _Block(family)
        lines = block.lines(family.values)
        head = block.head(form)
        return head + (lines if selected is None else _only(lines, selected))


class _Block:
    """The lines of one family with gaps for the values: ``_parts`` is text, value, text, value, …, text."""

    def __init__(self, family: Family) -> None:
        self._spec, self._labels, self._edges = family.spec, family.labels, _edges(family)
        self._heads: dict[Format, str] = {}
        prefixes = list(_prefixes(family))
        self._parts = [""] * (2 * len(prefixes) + 1)
        self._parts[0:-1:2] = [prefixes[0], *("\n" + prefix for prefix in prefixes[1:])]
        self._parts[-1] = "\n"

    def fits(self, family: Family) -> bool:
        same = self._spec is family.spec and (self._labels is family.labels or self._labels == family.labels)
        return same and self._edges == _edges(family)

    def head(self, form: Format) -> str:
        head, spec = self._heads.get(form), self._spec
        if head is None:
            head = self._heads[form] = _head(family_name(spec, form), spec.kind, spec.help, form)
        return head

    def lines(self, values: Sequence[float | HistogramValue]) -> str:
        self._parts[1::2] = _histogram_texts(values) if _is_histogram(self._spec) else _number_texts(values)
        return "".join(self._parts)


def _edges(family: Family) -> list[tuple[float, ...]]:
    return [value.edges for value in _histograms(family.values)] if _is_histogram(family.spec) else []


def _prefixes(family: Family) -> Iterator[str]:
    name = family.spec.name
    if not _is_histogram(family.spec):
        yield from (f"{name}{braces} " for braces in _braces(family))
        return
    for braces, edges in zip(_braces(family), _edges(family), strict=True):
        inner = f"{braces[1:-1]}," if braces else ""
        yield from (f'{name}_bucket{{{inner}le="{le_text(edge)}"}} ' for edge in (*edges, inf))
        yield from (f"{name}_sum{braces} ", f"{name}_count{braces} ")


def _number_texts(values: Sequence[float | HistogramValue]) -> list[str]:
    numbers = cast("Sequence[float]", values)
    # repr gives the shortest text that reads back as the same float; only NaN, the infinities and integers beyond a
    # float's range need another text, and a finite sum rules them out
    return list(map(repr if _all_finite(numbers) else number_text, numbers))


def _histogram_texts(values: Sequence[float | HistogramValue]) -> list[str]:
    texts: list[str] = []
    for value in _histograms(values):
        texts += map(repr, value.cumulative)
        texts += (repr(value.count), number_text(value.sum), repr(value.count))
    return texts


def number_text(value: float) -> str:
    """A sample value: ``NaN``, ``+Inf``, ``-Inf``, or the shortest text that reads back as the same number."""
    try:
        number = float(value)
    except OverflowError:  # every reader takes an integer beyond 1.8e308 for infinite
        number = inf if value > 0 else -inf
    if isnan(number):
        return "NaN"
    if not isfinite(number):
        return "+Inf" if number > 0 else "-Inf"
    return repr(value)


def label_text(value: str) -> str:
    """A label value, escaped for its place between quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def family_name(spec: MetricSpec, form: Format) -> str:
    """The name in ``# HELP`` and ``# TYPE``: OpenMetrics names a counter without ``_total``."""
    return spec.name.removesuffix("_total") if form is Format.OPENMETRICS else spec.name


def _head(name: str, kind: str, text: str, form: Format) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    if form is Format.OPENMETRICS:  # escapes quotes in help too; the text format does not
        text = text.replace('"', r"\"")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _braces(family: Family) -> Iterator[str]:
    """``{device="eth0",direction="receive"}`` for each series, or an empty text without labels."""
    names = family.spec.labels
    for values in family.labels:
        inner = ",".join(f'{name}="{label_text(value)}"' for name, value in zip(names, values, strict=True))
        yield f"{{{inner}}}" if inner else ""


def _all_finite(values: Sequence[float]) -> bool:
    try:
        return isfinite(sum(values))
    except OverflowError:
        return False


def _is_histogram(spec: MetricSpec) -> bool:
    return spec.kind is Kind.HISTOGRAM


def _histograms(values: Iterable[float | HistogramValue]) -> Iterator[HistogramValue]:
    return cast("Iterator[HistogramValue]", iter(values))


def _selected(spec: MetricSpec, names: frozenset[str] | None) -> frozenset[str] | None:
    """The sample names of the family that ``names`` selects; ``None``: all of them."""
    if names is None or not names.isdisjoint((spec.name, spec.name.removesuffix("_total"))):
        return None
    if not _is_histogram(spec):
        return frozenset()
    return names & {f"{spec.name}_{part}" for part in ("bucket", "sum", "count")}


def _only(lines: str, names: frozenset[str]) -> str:
    # split at "\n", the only line end of the formats: str.splitlines also splits at others, which labels may contain
    kept = [line for line in lines.split("\n") if line.partition("{")[0].partition(" ")[0] in names]
    return "".join(f"{line}\n" for line in kept)


def _foreign(metrics: Iterable[Metric], form: Format, names: frozenset[str] | None) -> str:
    """Counters and gauges without labels, as ``prometheus_client``'s ``ProcessCollector`` gives them."""
    page = []
    for metric in metrics:
        lines = [
            f"{sample.name} {number_text(sample.value)}\n"
            for sample in metric.samples
            if names is None or not names.isdisjoint((sample.name, metric.name))
        ]
        suffix = "_total" if metric.type == "counter" and form is Format.TEXT else ""
        page += [_head(f"{metric.name}{suffix}", metric.type, metric.documentation, form), *lines] if lines else []
    return "".join(page)
