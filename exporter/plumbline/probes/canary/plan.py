"""The plan of a canary, in a file of its own or on a raw disk, and the streams of operations that it means."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeAlias

from plumbline.config.workloads import BlockWorkload, Pattern, Sync
from plumbline.probes import guard
from plumbline.probes.canary.snapshot import StreamPlan
from plumbline.probes.disk import raw_device
from plumbline.probes.histogram import edge_ns, latency_edges

# operations per second over all workloads, if the configuration sets no rate
HDD_RATE, DEFAULT_RATE = 1.0, 10.0
MIN_RATE, MAX_RATE = 0.001, 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _DiskPlan:
    """What both kinds of canary have. ``rate`` is in operations per second over all workloads; ``None`` means the
    device class' default. It is lowered if it would keep the device busy for more than ``max_busy_ratio`` of the time,
    judged by the device's healthy latency."""

    name: str
    workloads: tuple[tuple[BlockWorkload, tuple[float, ...]], ...]
    """Each with its baseline's bounds in seconds; they become exact bucket edges."""
    device_class: str
    rate: float | None = None
    stuck_after_s: float = 10.0  # An operation in flight for longer counts as a failure
    max_busy_ratio: float = 0.01

    @property
    def wanted_rate(self) -> float:
        """Operations per second before the load cap."""
        if self.rate is not None:
            return max(MIN_RATE, min(self.rate, MAX_RATE))
        return HDD_RATE if self.device_class == "hdd" else DEFAULT_RATE

    def with_bounds(self, bounds: Mapping[tuple[str, str, str], tuple[float, ...]]) -> Self:
        workloads = [workload for workload, _ in self.workloads]
        limits = [bounds.get((self.name, workload.id, workload.operations[0]), ()) for workload in workloads]
        return replace(self, workloads=tuple(zip(workloads, limits, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryPlan(_DiskPlan):
    """One canary: single operations of ``workloads`` in one file in ``directory``."""

    directory: Path
    file_size_bytes: int

    kind = "canary"
    target = ""
    reasons = guard.ADVICE  # for a refusal

    def __post_init__(self) -> None:
        for workload, _ in self.workloads:
            if self.file_size_bytes < workload.block_size:
                raise ValueError(f"canary {self.name}: a block of {workload.id} does not fit into its file")

    @property
    def where(self) -> str:
        return str(self.directory)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlan(_DiskPlan):
    """One canary on one whole disk: single reads at random places; it never writes."""

    target: str  # The kernel's name of the disk
    dev: Path
    sys: Path

    kind = "raw-canary"
    reasons = raw_device.ADVICE
    file_size_bytes = 0  # unknown before the disk is open; the worker reads it

    def __post_init__(self) -> None:
        for workload, _ in self.workloads:
            if workload.pattern not in (Pattern.READ, Pattern.RANDREAD) or not workload.direct:
                raise ValueError(f"canary {self.name}: {workload.id} is not a direct read")

    @property
    def where(self) -> str:
        return str(self.dev / self.target)


AnyPlan: TypeAlias = CanaryPlan | DevicePlan


def quicker(rate: float, factor: float) -> float:
    """``factor`` times the rate, limited to the maximum for a canary."""
    return min(MAX_RATE, factor * rate)


@dataclass(frozen=True, slots=True)
class Stream:
    """One operation of one workload. ``edges`` stays the same object for ever, as the renderer needs it."""

    workload: BlockWorkload
    operation: str
    config_hash: str
    bounds: tuple[float, ...]
    edges: tuple[float, ...]
    share: float  # Of the canary's arrivals

    def for_worker(self) -> StreamPlan:
        return StreamPlan(
            write=self.operation == "write",
            sequential=self.workload.pattern in (Pattern.READ, Pattern.WRITE),
            dsync=self.workload.sync is Sync.DSYNC,
            block_bytes=self.workload.block_size,
            share=self.share,
            edges_ns=tuple(edge_ns(edge) for edge in self.edges),
        )


def streams_of(plan: AnyPlan) -> tuple[Stream, ...]:
    """One stream per operation; a mixed workload is split by its share of reads."""
    edges: dict[tuple[float, ...], tuple[float, ...]] = {}
    streams = []
    for workload, bounds in plan.workloads:
        exact = tuple(sorted({edge_ns(bound) / 10**9 for bound in bounds}))
        stream_edges = edges.setdefault(exact, latency_edges(exact))
        reads = workload.rwmix_read / 100
        mix = {"read": reads, "write": 1 - reads}
        for operation in workload.operations:
            share = (mix[operation] if len(workload.operations) > 1 else 1.0) / len(plan.workloads)
            streams.append(Stream(workload, operation, workload.config_hash(), exact, stream_edges, share))
    return tuple(streams)
