"""The workload catalogue: every measurement defined once, shared by probes and baselines.

A block workload's id describes it: ``<pattern>-<block size>-qd<queue depth>-j<jobs>[-dsync|-buffered]``, after the
layer if that is not the disk (``rbd-``, ``fs-``); other kinds have similar ids. A probe result and a baseline entry are
comparable only if layer, device class, workload, operation *and* ``config_hash`` agree.
"""

import functools
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import msgspec
import yaml

from plumbline.core.jsontext import convert
from plumbline.errors import ConfigError

LAYERS = ("network", "disk", "osd", "rados", "rbd", "filesystem", "object", "client")
STATISTICS = ("mean", "p50", "p95", "p99", "p999", "max")


class Pattern(StrEnum):
    """Access pattern, in fio's terms (``rw=``), and two of IOzone's: records read from the end to the start, and every
    17th record (its default stride)."""

    READ = "read"
    BACKREAD = "backread"
    STRIDEREAD = "strideread"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    RANDRW = "randrw"


class Sync(StrEnum):
    """Durability of every write: nothing beyond O_DIRECT, or O_DSYNC (data on stable media on return)."""

    NONE = "none"
    DSYNC = "dsync"


_OPERATIONS = {
    Pattern.READ: ("read",),
    Pattern.BACKREAD: ("read",),
    Pattern.STRIDEREAD: ("read",),
    Pattern.WRITE: ("write",),
    Pattern.RANDREAD: ("read",),
    Pattern.RANDWRITE: ("write",),
    Pattern.RANDRW: ("read", "write"),
}


_SKIPPED = {Pattern.BACKREAD: -2, Pattern.STRIDEREAD: 16}
"""Blocks from the end of one read to the start of the next. At an end of the file fio goes on from the other one."""


class _Common(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """Fields of every workload."""

    id: str
    layer: str
    description: str = ""

    @property
    def operations(self) -> tuple[str, ...]:
        raise NotImplementedError

    def config_hash(self, *, rate_iops: float | None = None) -> str:
        """Twelve hex digits over all parameters that affect a result; ``rate_iops`` is the probe's cap. A capped run is
        not comparable with an uncapped one. Id and description are not included."""
        facts = {name: value for name, value in msgspec.to_builtins(self).items() if name not in ("id", "description")}
        parts = [f"{name}={facts[name]}" for name in sorted(facts)] + [f"{rate_iops:g}" if rate_iops else "-"]
        return _digest(parts)


class BlockWorkload(_Common, frozen=True, tag="block"):
    """Reads and writes of blocks: ``block_size`` in bytes, ``jobs`` processes with ``iodepth`` in flight each."""

    pattern: Pattern
    block_size: int
    iodepth: int = 1
    jobs: int = 1
    direct: bool = True
    sync: Sync = Sync.NONE
    rwmix_read: int = 50
    """Share of reads in percent; only for ``randrw``."""

    @property
    def operations(self) -> tuple[str, ...]:
        return _OPERATIONS[self.pattern]

    @property
    def rw(self) -> str:
        """The pattern as fio takes it: ``randread``, ``read:-8192``."""
        blocks = _SKIPPED.get(self.pattern)
        return self.pattern.value if blocks is None else f"{Pattern.READ.value}:{blocks * self.block_size}"

    def config_hash(self, *, rate_iops: float | None = None) -> str:
        """As for every workload, but of an older text form, which recorded baselines contain. File size and run time
        are not included: they only limit the probe, and the documented runs of the seeds differ in them by design. Nor
        is the canary's rate: at queue depth 1 every operation meets an idle queue, whatever the rate."""
        parts = [
            self.layer,
            self.pattern.value,
            str(self.block_size),
            str(self.iodepth),
            str(self.jobs),
            "direct" if self.direct else "buffered",
            self.sync.value,
            str(self.rwmix_read) if self.pattern is Pattern.RANDRW else "-",
            f"{rate_iops:g}" if rate_iops else "-",
        ]
        return _digest(parts)


class TcpThroughput(_Common, frozen=True, tag="tcp-throughput"):
    """One TCP transfer at full speed. Operations are named from this node's view: transmit, receive."""

    streams: int = 1
    both: bool = True
    """Receive after transmit; False: only transmit."""

    @property
    def operations(self) -> tuple[str, ...]:
        return ("transmit", "receive") if self.both else ("transmit",)


class Messages(_Common, frozen=True, tag="messages"):
    """One of qperf's tests: messages of ``message_bytes`` by TCP, or written into the peer's memory by RDMA verbs over
    a reliable connection. A latency is one way; ``poll``: both sides ask for it instead of waiting for an interrupt."""

    test: Literal["tcp_lat", "tcp_bw", "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat"]
    message_bytes: int

    @property
    def rdma(self) -> bool:
        return self.test.startswith("rc_")

    @property
    def operations(self) -> tuple[str, ...]:
        return ("transmit",) if self.test.endswith("_bw") else ("one-way",)


class RoundTrip(_Common, frozen=True, tag="round-trip"):
    """Small packets and their replies, one in flight. ``payload_bytes`` excludes headers; ``tcp`` is a handshake."""

    protocol: Literal["icmp", "tcp"]
    payload_bytes: int = 0

    operations: ClassVar[tuple[str, ...]] = ("round-trip",)


class PathMtu(_Common, frozen=True, tag="path-mtu"):
    """The biggest packet with don't-fragment that gets a reply."""

    operations: ClassVar[tuple[str, ...]] = ("path-mtu",)


class OsdBench(_Common, frozen=True, tag="osd-bench"):
    """``ceph tell osd.N bench TOTAL BLOCK [OBJECT OBJECTS]``; sizes in bytes."""

    total_bytes: int
    block_size: int
    object_size: int = 0
    objects: int = 0

    operations: ClassVar[tuple[str, ...]] = ("write",)


class RadosBench(_Common, frozen=True, tag="rados-bench"):
    """``rados bench``: ``mode`` with ``concurrent`` operations of ``object_size`` bytes in flight."""

    mode: Literal["write", "seq", "rand"]
    object_size: int
    concurrent: int = 16

    @property
    def operations(self) -> tuple[str, ...]:
        return ("write",) if self.mode == "write" else ("read",)


class RadosOps(_Common, frozen=True, tag="rados-ops"):
    """Single object operations, one in flight: a write of ``object_size`` bytes, its read, its removal."""

    object_size: int

    operations: ClassVar[tuple[str, ...]] = ("write", "read", "remove")


class RbdBench(_Common, frozen=True, tag="rbd-bench"):
    """``rbd bench``: ``io_size`` bytes, ``threads`` in flight. ``readwrite``: half of them reads (the tool's default),
    both counted together, as in the tool's last line."""

    operation: Literal["read", "write", "readwrite"]
    io_size: int
    threads: int = 16
    random: bool = False

    @property
    def operations(self) -> tuple[str, ...]:
        return (self.operation,)


class Metadata(_Common, frozen=True, tag="metadata"):
    """Files of ``file_size`` bytes created, then stat'ed, then removed, one at a time."""

    files: int
    file_size: int = 0

    operations: ClassVar[tuple[str, ...]] = ("create", "stat", "unlink")


class FileOps(_Common, frozen=True, tag="file-ops"):
    """Single operations in one file, one in flight: ``block_size`` bytes at a random place written through the page
    cache and made durable by ``fsync``, or read. ``direct``: the read takes O_DIRECT, otherwise its page leaves the
    cache first."""

    block_size: int
    direct: bool = True

    operations: ClassVar[tuple[str, ...]] = ("write", "read")


class S3Ops(_Common, frozen=True, tag="s3-ops"):
    """Single object requests, one in flight: put of ``object_size`` bytes, get, list, delete."""

    object_size: int

    operations: ClassVar[tuple[str, ...]] = ("put", "get", "list", "delete")


class VolumeClaim(_Common, frozen=True, tag="volume-claim"):
    """A new volume of Kubernetes, once: a pod claims ``volume_bytes``, waits for the volume, and writes ``block_size``
    bytes with fsync. ``bind``: from the pod's creation until the claim is bound; ``mount``: from then until the pod's
    container has started; ``write``: in the container; ``total``: from the pod's creation until the write is known."""

    volume_bytes: int
    block_size: int

    operations: ClassVar[tuple[str, ...]] = ("bind", "mount", "write", "total")


Workload: TypeAlias = (
    BlockWorkload
    | TcpThroughput
    | Messages
    | RoundTrip
    | PathMtu
    | OsdBench
    | RadosBench
    | RadosOps
    | RbdBench
    | Metadata
    | FileOps
    | S3Ops
    | VolumeClaim
)


def _digest(parts: list[str]) -> str:
    import hashlib  # noqa: PLC0415  (see plumbline.web.access)

    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:12]


class WorkloadCatalogue(msgspec.Struct, frozen=True):
    """All known workloads by id."""

    by_id: dict[str, Workload]

    def get(self, workload_id: str, *, where: str, key: str) -> Workload:
        """The workload; an unknown id raises :class:`ConfigError` with ``where``, ``key`` and similar ids."""
        try:
            return self.by_id[workload_id]
        except KeyError:
            raise ConfigError(where, self.unknown(workload_id), key=key, value=workload_id) from None

    def unknown(self, workload_id: str) -> str:
        """The error text for an unknown id, with similar known ids."""
        import difflib  # only on the error path  # noqa: PLC0415

        similar = difflib.get_close_matches(workload_id, self.by_id, n=3, cutoff=0.4)
        return "no such workload in the catalogue" + (f"; similar: {', '.join(similar)}" if similar else "")


@functools.cache  # part of the package: it does not change
def load_catalogue() -> WorkloadCatalogue:
    """The catalogue in the package (``workloads.yaml``); an error in it raises :class:`ConfigError`."""
    text = Path(__file__).with_name("workloads.yaml").read_text("utf-8")
    try:
        # libyaml is 10× faster
        written = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        rows = convert([{"kind": "block", **row} for row in written], list[Workload])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError("workloads.yaml", str(error)) from error
    by_id: dict[str, Workload] = {}
    for row in rows:
        if row.id in by_id or row.layer not in LAYERS:
            raise ConfigError("workloads.yaml", "repeated id or unknown layer", key=row.id, value=row.layer)
        by_id[row.id] = row
    return WorkloadCatalogue(by_id)
