"""A canary's plan as streams: one per operation of each workload, with its share of arrivals and its edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.config.workloads import BlockWorkload, Pattern, Sync
from plumbline.probes.canary.plan import AnyPlan
from plumbline.probes.canary.snapshot import StreamPlan
from plumbline.probes.histogram import edge_ns, latency_edges


@dataclass(frozen=True, slots=True)
class Stream:
    """One operation of one workload. ``edges`` stays the same object for ever, as the renderer needs it."""

    workload: BlockWorkload
    operation: str
    config_hash: str
    bounds: tuple[float, ...]
    edges: tuple[float, ...]
    share: float


def streams_of(plan: AnyPlan) -> tuple[Stream, ...]:
    """One stream per operation; a mixed workload is split by its share of reads."""
    edges: dict[tuple[float, ...], tuple[float, ...]] = {}
    streams = []
    for workload, bounds in plan.workloads:
        exact = tuple(sorted({edge_ns(bound) / 10**9 for bound in bounds}))
        mine = edges.setdefault(exact, latency_edges(exact))
        reads = workload.rwmix_read / 100
        mix: Mapping[str, float] = {"read": reads, "write": 1 - reads}
        for operation in workload.operations:
            share = (mix[operation] if len(workload.operations) > 1 else 1.0) / len(plan.workloads)
            streams.append(Stream(workload, operation, workload.config_hash(), exact, mine, share))
    return tuple(streams)


def stream_plan(stream: Stream) -> StreamPlan:
    """What the worker needs to know about a stream."""
    return StreamPlan(
        write=stream.operation == "write",
        sequential=stream.workload.pattern in (Pattern.READ, Pattern.WRITE),
        dsync=stream.workload.sync is Sync.DSYNC,
        block_bytes=stream.workload.block_size,
        share=stream.share,
        edges_ns=tuple(edge_ns(edge) for edge in stream.edges),
    )
