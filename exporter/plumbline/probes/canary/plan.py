"""The plan of a canary, in a file, on a raw disk or elsewhere, and the streams of operations that it means."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from plumbline.config.workloads import BlockWorkload, FileOps, Pattern, S3Ops, Sync
from plumbline.probes.canary import memory
from plumbline.probes.canary.snapshot import StreamPlan
from plumbline.probes.run import guard
from plumbline.probes.run.histogram import edge_ns, latency_edges

# operations per second over all workloads, if the configuration sets no rate
HDD_RATE, DEFAULT_RATE = 1.0, 10.0
MIN_RATE, MAX_RATE = 0.001, 100.0

OWN_DIRECTORY = "record"  # Subdirectory for an interactive run while the daemon's canary has locked the directory

CanaryWorkload: TypeAlias = BlockWorkload | FileOps | S3Ops


class WorkerPlan(Struct, frozen=True, kw_only=True):
    """What all canaries with a worker of :mod:`.crew` have. ``rate`` is in operations per second over all workloads;
    ``None`` means the device class' default. It is lowered if it would keep the device busy for more than
    ``max_busy_ratio`` of the time, judged by the device's healthy latency."""

    name: str
    workloads: tuple[tuple[CanaryWorkload, tuple[tuple[float, ...], ...]], ...]
    """Each with its baseline's bounds in seconds, for each of its operations, or none at all; they become exact bucket
    edges."""
    device_class: str
    rate: float | None = None
    stuck_after_s: float = 10.0  # An operation in flight for longer counts as a failure
    max_busy_ratio: float = 0.01
    target: str = ""  # What is measured; empty for the node itself
    file_size_bytes: int = 0  # 0: there is none, or the worker finds out
    provisional: bool = False  # Made before its target was there: once the canary runs, a new plan is needed

    kind: ClassVar[str]  # The type in the configuration
    reasons: ClassVar[Mapping[str, str]]  # For a refusal
    errors: ClassVar[tuple[str, ...]] = memory.ERRORS
    look_at: ClassVar[str] = "the kernel's log"  # Where to look for the cause of a failed operation
    worker: ClassVar[str] = "plumbline.probes.canary.canary_worker"  # The module that works in a process of its own
    site_packages: ClassVar[bool] = False  # Whether that module needs them
    asked_share: ClassVar[float] = 0.4  # Of the time for its end, until it is killed
    locks: ClassVar[bool] = False  # Whether the worker locks its place, so that no second one works there

    @property
    def where(self) -> str:
        """The place, for messages."""
        raise NotImplementedError

    @property
    def wanted_rate(self) -> float:
        """Operations per second before the load cap."""
        if self.rate is not None:
            return max(MIN_RATE, min(self.rate, MAX_RATE))
        return HDD_RATE if self.device_class == "hdd" else DEFAULT_RATE

    def with_bounds(self, bounds: Mapping[tuple[str, str, str], tuple[float, ...]]) -> Self:
        return replace(
            self,
            workloads=tuple(
                (workload, tuple(bounds.get((self.name, workload.id, each), ()) for each in workload.operations))
                for workload, _ in self.workloads
            ),
        )

    def beside(self, *, spare: bool) -> Self:  # noqa: ARG002
        """The same for an interactive run, where it and the daemon's canary can't disturb each other. ``spare``: see
        :meth:`.ContinuousJob.faster`."""
        return self

    def order(self, members: Sequence[tuple[int, str]]) -> list[str]:
        """The worker's arguments for canaries that share it: descriptor of the memory and target of each."""
        raise NotImplementedError


class CanaryPlan(WorkerPlan, frozen=True, kw_only=True):
    """One canary: single operations of ``workloads`` in one file in ``directory``."""

    directory: Path
    file_size_bytes: int

    kind = "canary"
    reasons = guard.ADVICE
    locks = True

    def beside(self, *, spare: bool) -> Self:
        """Without a load cap: a person waits for it."""
        directory = self.directory / OWN_DIRECTORY if spare else self.directory
        return replace(self, directory=directory, max_busy_ratio=1.0)

    def __post_init__(self) -> None:
        for workload, _ in self.workloads:
            if self.file_size_bytes < block_bytes(workload):
                raise ValueError(f"canary {self.name}: a block of {workload.id} does not fit into its file")

    @property
    def where(self) -> str:
        return str(self.directory)

    def order(self, members: Sequence[tuple[int, str]]) -> list[str]:
        ((memory_fd, _),) = members
        return [str(memory_fd), str(self.directory.absolute())]


def faster_rate(rate: float, factor: float) -> float:
    """``factor`` times the rate, limited to the maximum for a canary."""
    return min(MAX_RATE, factor * rate)


class Stream(Struct, frozen=True):
    """One operation of one workload. ``edges`` stays the same object for ever, as the renderer needs it."""

    workload: CanaryWorkload
    operation: str
    config_hash: str
    bounds: tuple[float, ...]
    edges: tuple[float, ...]
    share: float  # Of the canary's arrivals

    def for_worker(self) -> StreamPlan:
        block = self.workload if isinstance(self.workload, BlockWorkload) else None
        return StreamPlan(
            write=self.operation == "write",
            sequential=block is not None and block.pattern in (Pattern.READ, Pattern.WRITE),
            dsync=block is not None and block.sync is Sync.DSYNC,
            block_bytes=block_bytes(self.workload),
            share=self.share,
            edges_ns=tuple(edge_ns(edge) for edge in self.edges),
        )


def block_bytes(workload: CanaryWorkload) -> int:
    return workload.object_size if isinstance(workload, S3Ops) else workload.block_size


def streams_of(plan: WorkerPlan) -> tuple[Stream, ...]:
    """One stream per operation; a mixed workload is split by its share of reads, others evenly."""
    edges: dict[tuple[float, ...], tuple[float, ...]] = {}
    streams = []
    for workload, bounds in plan.workloads:
        shares = _shares(workload)
        for operation, limits in zip(workload.operations, bounds or ((),) * len(shares), strict=True):
            exact = tuple(sorted({edge_ns(bound) / 10**9 for bound in limits}))
            stream_edges = edges.setdefault(exact, latency_edges(exact))
            share = shares[operation] / len(plan.workloads)
            streams.append(Stream(workload, operation, workload.config_hash(), exact, stream_edges, share))
    return tuple(streams)


def _shares(workload: CanaryWorkload) -> Mapping[str, float]:
    if isinstance(workload, BlockWorkload) and workload.pattern is Pattern.RANDRW:
        return {"read": workload.rwmix_read / 100, "write": 1 - workload.rwmix_read / 100}
    return dict.fromkeys(workload.operations, 1 / len(workload.operations))
