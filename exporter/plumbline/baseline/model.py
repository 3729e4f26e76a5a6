"""One set of baseline figures: what one operation of a workload achieved, where, and how far it may deviate.

Sources, strongest first: ``measured`` (recorded on this node), ``class`` (what nodes of this one's model and role were
accepted with, until its own is recorded: ``plumbline fleet``), ``site`` (a file the site wrote), ``documented`` (a
profile shipped with Plumbline, from another site's hardware: always shown, but it judges only where the configuration
chooses it).
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec


class Source(StrEnum):
    """Where a baseline comes from; the order is the precedence."""

    MEASURED = "measured"
    CLASS = "class"
    SITE = "site"
    DOCUMENTED = "documented"


class BaselineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one operation of one workload, in base units; what was not measured is ``None`` or absent.
    ``latency`` is in seconds by statistic (mean, p50, p95, p99, p999, max), ``throughput`` in bytes per second.
    ``tolerance_ratio`` is the baseline's own measured spread as a factor ≥ 1: the worst run against the median
    (highest latency, lowest rate). ``level_spread`` (by span), ``calm_seconds`` and the load are as in the file.
    ``measured`` is Unix seconds. ``profile`` names the documented profile or the file."""

    layer: str
    device_class: str
    workload: str
    operation: str
    source: Source
    profile: str
    config_hash: str
    latency: dict[str, float] = {}
    iops: float | None = None
    throughput: float | None = None
    tolerance_ratio: float | None = None
    level_spread: dict[str, float] = {}
    calm_seconds: float | None = None
    load_ops_per_second: float | None = None
    load_bytes_per_second: float | None = None
    measured: float | None = None
    note: str = ""
    doubt: str = ""
    """Why these figures are shown but never judge: the document contradicts itself by more than a factor of two."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Layer, device class, workload and operation: figures are comparable if these and ``config_hash`` agree."""
        return (self.layer, self.device_class, self.workload, self.operation)


class Target(msgspec.Struct, frozen=True):
    """One thing that this node's probes measure, with its parameters. ``rate_iops`` is the rate limit of each job,
    already part of ``config_hash``; ``device`` is the block device below."""

    probe: str
    layer: str
    device_class: str
    workload: str
    operation: str
    config_hash: str
    rate_iops: float | None = None
    device: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.layer, self.device_class, self.workload, self.operation)


def figures(latency: Mapping[str, float], iops: float | None, throughput: float | None) -> Iterator[tuple[str, float]]:
    """By name: ``latency.p50``, ``iops``, ``throughput``; what was not measured is left out."""
    for statistic, seconds in latency.items():
        yield f"latency.{statistic}", seconds
    if iops is not None:
        yield "iops", iops
    if throughput is not None:
        yield "throughput", throughput


Experiment = tuple[tuple[str, str, str, str], str]


def experiment(entry: BaselineEntry | Target) -> Experiment:
    """Figures are comparable if this is equal."""
    return entry.key, entry.config_hash
