"""The configuration of probes of a Ceph cluster: OSDs, pools, images."""

import re
from typing import Annotated, ClassVar

from msgspec import Meta

from plumbline.config.probes.base import OneWorkload, Periodic
from plumbline.config.types import Duration, FieldError, Size
from plumbline.config.workloads import BlockWorkload, OsdBench, RadosBench, RadosOps, RbdBench, Workload

OSD_NAME = re.compile(r"osd\.(0|[1-9]\d{0,5})")


class OsdBenchConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="osd-bench"):
    """Ceph's own bench of one OSD after the other, within Ceph's own limits, with caches dropped first.

    Uses the OSD's admin socket in `/run/ceph` if this service's user may write to it; otherwise `ceph tell`, as
    `ceph.osd_bench_user`: Ceph grants that only to users with `osd 'allow *'`, which is all of the cluster's data.
    """

    layer: ClassVar[str] = "osd"
    runs: ClassVar[tuple[type[Workload], ...]] = (OsdBench,)

    osds: tuple[str, ...] = ("host",)
    """`osd.N`, or `host` for every OSD of this host."""
    workload: str = "osd-bench-4m"
    """A catalogue id of kind `osd-bench`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_osds(self.osds, "host")


class RadosCanaryConfig(OneWorkload, frozen=True, kw_only=True, tag_field="type", tag="rados-canary"):
    """The canary in RADOS: small objects written, read and removed, chosen so that each OSD is primary for some.

    A read involves only the primary, a write or removal also its replicas: if writes to several OSDs are slow but reads
    from only one, that OSD is to blame. The pool needs at least as many placement groups as OSDs.
    """

    layer: ClassVar[str] = "rados"
    runs: ClassVar[tuple[type[Workload], ...]] = (RadosOps,)

    pool: str | None = None
    """``None``: `ceph.pool`."""
    workload: str = "rados-ops-4k"
    """A catalogue id of kind `rados-ops`."""
    osds: tuple[str, ...] = ("host",)
    """`osd.N`, `host` for every OSD of this host, or `all`."""
    rate: Annotated[float, Meta(gt=0, le=100)] = 1.0
    """Operations a second on each OSD."""
    stuck_after: Duration = Duration(30.0)
    """An operation in flight for longer sets ``plumbline_probe_success`` to 0; at least 1s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_osds(self.osds, "host", "all")


class RadosBenchConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="rados-bench"):
    """`rados bench` in our own pool and namespace; its objects are removed after each run.

    Without `device_class` it is the class of all OSDs if they share one, else `unknown`. Reads write first, so set
    `timeout` to more than twice the `runtime`.
    """

    layer: ClassVar[str] = "rados"
    runs: ClassVar[tuple[type[Workload], ...]] = (RadosBench,)
    whole_seconds: ClassVar[bool] = True

    workload: str = "rados-write-4m-t16"
    """A catalogue id of kind `rados-bench`."""
    pool: str | None = None
    """``None``: `ceph.pool`."""
    runtime: Duration = Duration(10.0)
    """Duration of the measured part, at least 1s; reads write their objects before that."""
    max_objects: Annotated[int, Meta(ge=16, le=100_000)] = 256
    """Maximum number of objects written."""


class OnImage(Periodic, frozen=True, kw_only=True):
    """Fields of every probe of an image."""

    layer: ClassVar[str] = "rbd"

    pool: str | None = None
    """``None``: `ceph.rbd_pool`."""
    image_size: Size = Size(2**30)
    """Size of the image, which is created and filled once, then reused. To change it, remove the old image."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size < 2**20:
            raise self.mistake("image_size", "at least 1MiB")


class RbdFioConfig(OnImage, frozen=True, kw_only=True, tag_field="type", tag="rbd-fio"):
    """fio's rbd engine on an image of our own."""

    workload: str = "rbd-randwrite-4k-qd1-j1"
    """A catalogue id of a block workload in the layer `rbd`."""
    runtime: Duration = Duration(10.0)
    """Duration of the measured part, at least 1s."""
    rate_iops: Annotated[int, Meta(gt=0)] | None = None
    """Cap on operations per second of each job."""

    def check_workload(self, workload: BlockWorkload) -> None:
        self.check_holds_block("image_size", workload.block_size)


class RbdBenchConfig(OnImage, frozen=True, kw_only=True, tag_field="type", tag="rbd-bench"):
    """`rbd bench` on an image of our own: throughput only, no latency."""

    runs: ClassVar[tuple[type[Workload], ...]] = (RbdBench,)

    workload: str = "rbd-bench-write-4k-t16"
    """A catalogue id of kind `rbd-bench`."""
    total: Size = Size(64 * 2**20)
    """Bytes read or written in one run; at most the image's size."""

    def check_workload(self, workload: RbdBench) -> None:
        self.check_holds_block("image_size", workload.io_size)
        self.check_holds_block("total", workload.io_size)


CephProbe = OsdBenchConfig | RadosCanaryConfig | RadosBenchConfig | RbdFioConfig | RbdBenchConfig


def _check_osds(words: tuple[str, ...], *allowed: str) -> None:
    reason = f"osd.N, or {' or '.join(allowed)}"
    if not words:
        raise FieldError("osds", f"name OSDs: {reason}", [])
    for word in words:
        if word not in allowed and not OSD_NAME.fullmatch(word):
            raise FieldError("osds", reason, word)
