"""A canary's target: a file, a raw disk, a mount, an endpoint or an OSD, and the streams of operations on it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from plumbline.config.workloads import BlockWorkload, FileOps, Pattern, RadosOps, S3Ops, Sync
from plumbline.core.storage_names import MARKER, MARKER_TEXT
from plumbline.probes.canary import memory
from plumbline.probes.canary.snapshot import StreamPlan
from plumbline.probes.run import guard
from plumbline.probes.run.histogram import edge_ns, latency_edges
from plumbline.probes.run.reading import WorkloadReading

# operations per second over all workloads, if the configuration sets no rate
HDD_RATE, DEFAULT_RATE = 1.0, 10.0
MIN_RATE, MAX_RATE = 0.001, 100.0

OWN_DIRECTORY = "record"  # Subdirectory for an interactive run while the daemon's canary has locked the directory
INTERACTIVE = "@now"  # Appended to a name in an interactive run beside the daemon; no name contains @

CanaryWorkload: TypeAlias = BlockWorkload | FileOps | S3Ops | RadosOps
Bounds: TypeAlias = Mapping[tuple[str, str, str], tuple[float, ...]]


class Target(Struct, frozen=True, kw_only=True):
    """What all targets of canaries have. ``rate`` is in operations per second over all workloads; ``None`` means the
    device class' default. It is lowered if it would keep the device busy for more than ``max_busy_ratio`` of the time,
    judged by the device's healthy latency."""

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
    attended: bool = False  # A person waits for it, and gets its refusal as the result: nothing of it is logged
    provisional: bool = False  # Made before its target was there: once the canary runs, a new plan is needed

    kind: ClassVar[str]  # The type in the configuration
    worker: ClassVar[str]  # The module that works in a process of its own
    reasons: ClassVar[Mapping[str, str]]  # For a refusal
    errors: ClassVar[tuple[str, ...]] = memory.ERRORS
    notes: ClassVar[Mapping[str, str]] = {}
    """Why a target has no operations while the others of its worker have: a word, and the sentence for it. The worker
    sets the position, from 1 on."""
    look_at: ClassVar[str] = "the kernel's log"  # Where to look for the cause of a failed operation
    prepares: ClassVar[str] = "preparing"  # What the worker does before the first operation
    hangs_until: ClassVar[str] = "the device below answers or is removed"
    site_packages: ClassVar[bool] = False  # Whether the worker needs them
    asked_share: ClassVar[float] = 0.4  # Of the time for its end, until it is killed
    locks: ClassVar[bool] = False  # Whether the worker locks its place, so that no second one works there
    end_together: ClassVar[bool] = False  # Whether the worker ends with the first of its targets
    cluster: ClassVar[bool] = False  # Whether it loads the Ceph cluster

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

    def with_bounds(self, bounds: Bounds) -> Self:
        return replace(
            self,
            workloads=tuple(
                (
                    workload,
                    tuple(bounds.get((self.name, workload.id, operation), ()) for operation in workload.operations),
                )
                for workload, _ in self.workloads
            ),
        )

    def faster(self, factor: float, *, spare: bool) -> Self:
        """See :meth:`.ContinuousJob.faster`."""
        rate = min(MAX_RATE, factor * self.wanted_rate)
        return replace(self.interactive(spare=spare), rate=rate, attended=True)

    def interactive(self, *, spare: bool) -> Self:  # noqa: ARG002
        """The same where an interactive run and the daemon's canary can't disturb each other."""
        return self

    def order(self) -> dict[str, Any]:
        """What the worker needs to know besides each target's memory and name, as JSON; no secrets."""
        raise NotImplementedError

    def failed(self, stream: WorkloadReading) -> str:
        """The message for an operation that failed the last time."""
        return f"{self.where}: the last {stream.operation} failed; see {self.look_at}"


class FileTarget(Target, frozen=True, kw_only=True):
    """A file of ours in ``directory``."""

    directory: Path
    file_size_bytes: int
    in_storage: bool = False  # The directory is created only if its parent still has the storage path's mark

    kind = "canary"
    worker = "plumbline.probes.canary.canary_worker"
    reasons = guard.ADVICE
    locks = True

    def __post_init__(self) -> None:
        for workload, _ in self.workloads:
            if self.file_size_bytes < block_bytes(workload):
                raise ValueError(f"canary {self.name}: a block of {workload.id} does not fit into its file")

    @property
    def where(self) -> str:
        return str(self.directory)

    def interactive(self, *, spare: bool) -> Self:
        """Without a load cap: a person waits for it."""
        place = replace(self, directory=self.directory / OWN_DIRECTORY, in_storage=False) if spare else self
        return replace(place, max_busy_ratio=1.0)

    def order(self) -> dict[str, Any]:
        below = [MARKER, MARKER_TEXT.decode()] if self.in_storage else []
        return {"directory": str(self.directory.absolute()), "below": below}


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
    return workload.object_size if isinstance(workload, S3Ops | RadosOps) else workload.block_size


def streams_of(target: Target) -> tuple[Stream, ...]:
    """One stream per operation; a mixed workload is split by its share of reads, others evenly."""
    streams = []
    for workload, bounds in target.workloads:
        shares = _shares(workload)
        for operation, limits in zip(workload.operations, bounds or ((),) * len(shares), strict=True):
            exact, edges = edges_of(limits)
            share = shares[operation] / len(target.workloads)
            streams.append(Stream(workload, operation, workload.config_hash(), exact, edges, share))
    return tuple(streams)


@cache
def edges_of(bounds: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bounds as they are counted, and all edges: the same objects for ever."""
    exact = tuple(sorted({edge_ns(bound) / 10**9 for bound in bounds}))
    return exact, latency_edges(exact)


def _shares(workload: CanaryWorkload) -> Mapping[str, float]:
    if isinstance(workload, BlockWorkload) and workload.pattern is Pattern.RANDRW:
        return {"read": workload.rwmix_read / 100, "write": 1 - workload.rwmix_read / 100}
    return dict.fromkeys(workload.operations, 1 / len(workload.operations))
