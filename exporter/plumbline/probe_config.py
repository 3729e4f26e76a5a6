"""The configuration of each kind of probe: one struct a kind, told apart by ``type``.

Every periodic kind shares :class:`Periodic`. What types alone can't say is checked by :func:`check_probe`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta

from plumbline.config_types import Duration, Endpoint, LocalAddress, Schedule, Size, Strict, secret_problem
from plumbline.errors import ConfigError
from plumbline.workloads import (
    BlockWorkload,
    Metadata,
    OsdBench,
    PathMtu,
    RadosBench,
    RadosOps,
    RbdBench,
    RoundTrip,
    S3Ops,
    TcpThroughput,
    Workload,
    WorkloadCatalogue,
)

SHORTEST = {
    "interval": (1.0, "1s"),
    "timeout": (0.1, "100ms"),
    "runtime": (1.0, "1s"),
    "stuck_after": (1.0, "1s"),
    "request_timeout": (0.1, "100ms"),
    "gap": (0.001, "1ms"),
}
"""Below these a probe never rests, or nothing can answer in time."""
PROBE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class CanaryConfig(Strict, frozen=True, kw_only=True, tag_field="type", tag="canary"):
    """The continuous light probe: single operations at Poisson-distributed moments in a file of our own."""

    name: str
    """The `probe` label; lower-case letters, digits, `.`, `_`, `-`."""
    workloads: tuple[str, ...] = ("randread-4k-qd1-j1", "randwrite-4k-qd1-j1-dsync")
    """Catalogue ids, one for each operation; single O_DIRECT operations only (qd1-j1)."""
    directory: str | None = None
    """``None``: a directory of the probe's name in the storage path."""
    device_class: str | None = None
    """``None``: what the kernel says of the device below the directory."""
    file_size: Size | None = None
    """``None``: 1 GiB on rotational disks (more than their own cache), 16 MiB on others."""
    rate: Annotated[float, Meta(gt=0, le=100)] | None = None
    """Operations a second, all workloads together. ``None``: 1 on rotational disks, 10 on others."""
    stuck_after: Duration = Duration(10.0)
    """An operation in flight for longer makes ``plumbline_probe_success`` 0; at least 1s."""
    enabled: bool = True
    """False: as if it were not in the file."""


class Periodic(Strict, frozen=True, kw_only=True):
    """What every periodic probe has. Heavy ones run one at a time in the cluster."""

    name: str
    """The `probe` label; lower-case letters, digits, `.`, `_`, `-`. With several targets `/` and the target follow."""
    interval: Duration = Duration(6 * 3600.0)
    """From start to start, at least 1s; a start that comes while a run is under way is dropped."""
    at: Schedule | None = None
    """Instead of `interval`: moments of the week in local time, e.g. `Sun 03:00` or `daily 02:30`; splayed by host
    over half an hour."""
    timeout: Duration = Duration(60.0)
    """Wall time after which the whole process group is killed; at least 100ms."""
    device_class: str | None = None
    """What it is compared with. ``None``: what is found out about the target."""
    max_load_per_cpu: Annotated[float, Meta(gt=0)] = 2.0
    """Skip while the one-minute load average per CPU is above this."""
    max_device_busy: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """Skip while the disk or the network port below was busy for more than this share of the last moments."""
    enabled: bool = True
    """False: as if it were not in the file."""


class FioConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="fio"):
    """A periodic fio run of one catalogue workload in a directory, or read-only on a raw device."""

    workload: str
    """Its id in the catalogue, e.g. `randread-4k-qd16-j1`."""
    directory: str | None = None
    """``None``: a directory of the probe's name in the storage path."""
    devices: tuple[str, ...] = ()
    """Instead of a directory: raw disks by kernel name, or `osd` for every disk that holds an OSD; volumes stand for
    the whole disks below. Only read, never written: workloads that write are refused."""
    runtime: Duration = Duration(10.0)
    """Of the measured part, at least 1s; laying out the files comes before, once."""
    file_size: Size = Size(64 * 2**20)
    """Of each job's file."""
    rate_iops: Annotated[int, Meta(gt=0)] | None = None
    """Cap on operations per second of each job; a capped run is compared only with baselines of the same cap."""


class RawCanaryConfig(Strict, frozen=True, kw_only=True, tag_field="type", tag="raw-canary"):
    """The canary over raw devices: single O_DIRECT reads at random places, opened so that writing is impossible."""

    name: str
    """The `probe` label; `/` and the device follow."""
    devices: tuple[str, ...] = ("osd",)
    """Disks by kernel name, or `osd` for every disk that holds an OSD of this host. Volumes, multipath and encrypted
    devices stand for the whole disks below. A disk that is named is kept awake: name none that is to sleep."""
    workload: str = "randread-4k-qd1-j1"
    """A catalogue id; single O_DIRECT reads only (qd1-j1), as ioping does them."""
    device_class: str | None = None
    """``None``: what the kernel says of each device."""
    rate: Annotated[float, Meta(gt=0, le=100)] | None = None
    """Operations a second on each device. ``None``: 1 on rotational disks, 10 on others, at most 1 % of its time."""
    stuck_after: Duration = Duration(10.0)
    """An operation in flight for longer makes ``plumbline_probe_success`` 0; at least 1s."""
    enabled: bool = True
    """False: as if it were not in the file."""


NETWORK_SERVER_PORT = 10048
"""Where `network_server` listens unless a target says otherwise; beside our own 10047."""
PEER_ANSWERS_WITHIN_S = 3.0
"""A peer in the same network that has not answered by then is not there."""


class IperfConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="iperf3"):
    """TCP throughput and retransmits to other nodes, by iperf3. The other side runs a server: see `network_server`."""

    targets: tuple[Endpoint, ...]
    """Hosts or addresses, `host` or `host:port`; port 10048 where none is named."""
    workload: str = "tcp-throughput-s1"
    """A catalogue id of kind `tcp-throughput`."""
    bind: LocalAddress | None = None
    """Local address: which network is measured. ``None``: what routing says."""
    runtime: Duration = Duration(5.0)
    """Of each direction; whole seconds, at least 1s."""
    rate: Size | None = None
    """Cap in bytes per second over all streams; a capped run is compared only with baselines of the same cap."""


class RttConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="rtt"):
    """Round-trip times to other nodes: many small packets, percentiles and loss."""

    targets: tuple[Endpoint, ...]
    """Hosts or addresses; with `tcp-rtt` as `host:port` of something that listens."""
    workload: str = "icmp-rtt-56"
    """A catalogue id of kind `round-trip`."""
    bind: LocalAddress | None = None
    """Local address: which network is measured. ``None``: what routing says."""
    packets: Annotated[int, Meta(ge=3, le=10000)] = 100
    """Per run."""
    gap: Duration = Duration(0.05)
    """Between packets, at least 1ms."""


class PathMtuConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="path-mtu"):
    """The biggest packet that reaches other nodes unfragmented: finds the one switch without jumbo frames."""

    targets: tuple[Endpoint, ...]
    """Hosts or addresses."""
    workload: str = "path-mtu"
    """A catalogue id of kind `path-mtu`."""
    bind: LocalAddress | None = None
    """Local address: which network is measured. ``None``: what routing says."""


class OsdBenchConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="osd-bench"):
    """Ceph's own bench of one OSD after the other, within Ceph's own limits, caches dropped first.

    By the OSD's admin socket in `/run/ceph` where this service's user may write to it; else by `ceph tell`, as
    `ceph.osd_bench_user`: Ceph grants that only to users with `osd 'allow *'`, which is all of the cluster's data.
    """

    osds: tuple[str, ...] = ("host",)
    """`osd.N`, or `host` for every OSD of this host."""
    workload: str = "osd-bench-4m"
    """A catalogue id of kind `osd-bench`."""


class RadosCanaryConfig(Strict, frozen=True, kw_only=True, tag_field="type", tag="rados-canary"):
    """The canary in RADOS: small objects written, read, removed, so chosen that each OSD is primary for some.

    A read is answered by the primary alone, a write and a removal by its replicas too: where writes to several OSDs
    are slow and reads of one, that one is to blame. The pool needs at least as many placement groups as OSDs.
    """

    name: str
    """The `probe` label; `/` and the OSD follow."""
    pool: str | None = None
    """``None``: `ceph.pool`."""
    workload: str = "rados-ops-4k"
    """A catalogue id of kind `rados-ops`."""
    osds: tuple[str, ...] = ("host",)
    """`osd.N`, `host` for every OSD of this host, or `all`."""
    device_class: str | None = None
    """``None``: each OSD's CRUSH device class."""
    rate: Annotated[float, Meta(gt=0, le=100)] = 1.0
    """Operations a second on each OSD."""
    stuck_after: Duration = Duration(30.0)
    """An operation in flight for longer makes ``plumbline_probe_success`` 0; at least 1s."""
    enabled: bool = True
    """False: as if it were not in the file."""


class RadosBenchConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="rados-bench"):
    """`rados bench` in our own pool and namespace; its objects are removed after each run.

    Without `device_class` it is that of all OSDs, if they have but one, else `unknown`. Reads write first, so give
    `timeout` more than twice the `runtime`.
    """

    workload: str = "rados-write-4m-t16"
    """A catalogue id of kind `rados-bench`."""
    pool: str | None = None
    """``None``: `ceph.pool`."""
    runtime: Duration = Duration(10.0)
    """Of the measured part, at least 1s; reads write their objects before."""
    max_objects: Annotated[int, Meta(ge=16, le=100_000)] = 256
    """At most so many objects are written."""


class RbdFioConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="rbd-fio"):
    """fio's rbd engine on an image of our own."""

    workload: str = "rbd-randwrite-4k-qd1-j1"
    """A catalogue id of a block workload in the layer `rbd`."""
    pool: str | None = None
    """``None``: `ceph.rbd_pool`."""
    image_size: Size = Size(2**30)
    """Of the image, which is made and written full once, and reused. A change needs the old image removed."""
    runtime: Duration = Duration(10.0)
    """Of the measured part, at least 1s."""
    rate_iops: Annotated[int, Meta(gt=0)] | None = None
    """Cap on operations per second of each job."""


class RbdBenchConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="rbd-bench"):
    """`rbd bench` on an image of our own: throughput only, it tells no latency."""

    workload: str = "rbd-bench-write-4k-t16"
    """A catalogue id of kind `rbd-bench`."""
    pool: str | None = None
    """``None``: `ceph.rbd_pool`."""
    image_size: Size = Size(2**30)
    """Of the image, which is made and written full once, and reused. A change needs the old image removed."""
    total: Size = Size(64 * 2**20)
    """Read or written in one run; at most the image's size."""


class FilesystemConfig(Periodic, frozen=True, kw_only=True, tag_field="type", tag="filesystem"):
    """A mounted file system (CephFS, GlusterFS, LizardFS, Lustre, ZFS, NFS …): fio, or files made and removed."""

    directory: str
    """A directory of our own on it: new, empty, or marked by an earlier run."""
    filesystem: str | None = None
    """Its type as the kernel lists it (`ceph`, `fuse.glusterfs`, `nfs4`, `lustre`, `zfs`, `xfs` …): the probe is
    refused while the directory lies on any other. ``None``: any but the root file system."""
    workload: str = "fs-randwrite-4k-qd1-j1"
    """A catalogue id of a block workload in the layer `filesystem`, or of kind `metadata`."""
    runtime: Duration = Duration(10.0)
    """Of the measured part, at least 1s."""
    file_size: Size = Size(64 * 2**20)
    """Of each job's file."""
    rate_iops: Annotated[int, Meta(gt=0)] | None = None
    """Cap on operations per second of each job."""


class S3Config(Periodic, frozen=True, kw_only=True, tag_field="type", tag="s3"):
    """Put, get, list and delete of objects at an S3 endpoint (RGW or any other), in a bucket of our own.

    Needs `plumbline[s3]`. Where small gets take 40 ms: with RGW's frontend option `tcp_nodelay=1` they took 10
    instead of 46 here."""

    endpoint: str
    """`https://rgw.example.org` or `http://127.0.0.1:7480`."""
    bucket: str
    """Made when it is missing; refused when it holds objects that are not ours."""
    credentials_file: str
    """Two lines: `access_key = …`, `secret_key = …`. Readable by this user alone; or `credential:NAME`, a file that
    systemd hands the service."""
    workload: str = "s3-ops-4k"
    """A catalogue id of kind `s3-ops`."""
    region: str = "default"
    """Part of the signature."""
    ca_file: str | None = None
    """Certificates to trust for `https`. ``None``: the system's."""
    operations: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """Of each kind in one run."""
    request_timeout: Duration = Duration(10.0)
    """Of one request; a slower one fails the run. Nothing is tried again."""


ProbeConfig = (
    CanaryConfig
    | RawCanaryConfig
    | FioConfig
    | IperfConfig
    | RttConfig
    | PathMtuConfig
    | OsdBenchConfig
    | RadosCanaryConfig
    | RadosBenchConfig
    | RbdFioConfig
    | RbdBenchConfig
    | FilesystemConfig
    | S3Config
)

WORKLOADS: dict[type, tuple[Any, str]] = {
    RawCanaryConfig: (BlockWorkload, "disk"),
    FioConfig: (BlockWorkload, "disk"),
    IperfConfig: (TcpThroughput, "network"),
    RttConfig: (RoundTrip, "network"),
    PathMtuConfig: (PathMtu, "network"),
    OsdBenchConfig: (OsdBench, "osd"),
    RadosCanaryConfig: (RadosOps, "rados"),
    RadosBenchConfig: (RadosBench, "rados"),
    RbdFioConfig: (BlockWorkload, "rbd"),
    RbdBenchConfig: (RbdBench, "rbd"),
    FilesystemConfig: (BlockWorkload | Metadata, "filesystem"),
    S3Config: (S3Ops, "object"),
}
"""Type of probe → kind and layer of the workloads it can run."""
_FITTING_SHOWN = 8
"""Of the workloads that would fit, in one line of an error."""
_FILESYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_ENDPOINT = re.compile(r"https?://(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?/?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")  # Amazon's rules for bucket names; RGW takes more
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9!_-]{0,31}")


def check_probe(probe: ProbeConfig, where: str, key: str, catalogue: WorkloadCatalogue) -> None:
    """What types alone can't say; :class:`ConfigError` names the probe's key."""
    _check_durations(probe, where, key)
    if isinstance(probe, CanaryConfig):
        _check_canary(probe, where, key, catalogue)
        return
    kind, layer = WORKLOADS[type(probe)]
    workload = catalogue.get(probe.workload, where=where, key=f"{key}.workload")
    if not isinstance(workload, kind) or (layer and workload.layer != layer):
        fitting = [each.id for each in catalogue.by_id.values() if isinstance(each, kind) and layer in ("", each.layer)]
        some = ", ".join(fitting[:_FITTING_SHOWN]) + (
            ", … (docs/workloads.md)" if len(fitting) > _FITTING_SHOWN else ""
        )
        raise ConfigError(
            where, f"not for this type of probe; fitting: {some}", key=f"{key}.workload", value=probe.workload
        )
    if isinstance(probe, Periodic):
        _check_periodic(probe, where, key)
    block = workload.block_size if isinstance(workload, BlockWorkload) else 0
    if isinstance(probe, FioConfig | FilesystemConfig) and probe.file_size < block:
        raise ConfigError(
            where, "smaller than the workload's block", key=f"{key}.file_size", value=int(probe.file_size)
        )
    if isinstance(probe, RbdFioConfig | RbdBenchConfig):
        _check_image(probe, workload, where, key)
    if isinstance(probe, FioConfig) and probe.devices:
        _check_raw(probe.devices, workload, where, key)
        if probe.directory is not None:
            raise ConfigError(where, "name a directory or devices, not both", key=f"{key}.devices")
    if isinstance(probe, IperfConfig | RttConfig | PathMtuConfig):
        _check_network(probe, workload, where, key)
    if isinstance(probe, FilesystemConfig):
        _check_filesystem(probe, where, key)
    if isinstance(probe, S3Config):
        _check_s3(probe, where, key)
    if isinstance(probe, RawCanaryConfig):
        _check_raw(probe.devices, workload, where, key)
        if not _single_direct(workload):
            raise ConfigError(
                where,
                "the canary does single O_DIRECT operations: a disk workload with qd1-j1",
                key=f"{key}.workload",
                value=workload.id,
            )


def _check_canary(probe: CanaryConfig, where: str, key: str, catalogue: WorkloadCatalogue) -> None:
    if not probe.workloads:
        raise ConfigError(where, "name at least one workload", key=f"{key}.workloads", value=[])
    operations: set[str] = set()
    for workload_id in probe.workloads:
        workload = catalogue.get(workload_id, where=where, key=f"{key}.workloads")
        if not _single_direct(workload):
            raise ConfigError(
                where,
                "the canary does single O_DIRECT operations: a disk workload with qd1-j1",
                key=f"{key}.workloads",
                value=workload_id,
            )
        if operations & set(workload.operations):
            raise ConfigError(where, "two workloads with the same operation", key=f"{key}.workloads", value=workload_id)
        operations |= set(workload.operations)
    if probe.file_size is not None and probe.file_size < 2**20:
        raise ConfigError(where, "at least 1MiB", key=f"{key}.file_size", value=int(probe.file_size))


def _single_direct(workload: Workload) -> bool:
    return (
        isinstance(workload, BlockWorkload)
        and workload.layer == "disk"
        and workload.iodepth * workload.jobs == 1
        and workload.direct
    )


def _check_durations(probe: ProbeConfig, where: str, key: str) -> None:
    for name, (least_s, shown) in SHORTEST.items():
        value = getattr(probe, name, None)
        if value is not None and value < least_s:
            raise ConfigError(where, f"at least {shown}", key=f"{key}.{name}", value=f"{float(value):g}s")


def _check_periodic(probe: Periodic, where: str, key: str) -> None:
    runtime = getattr(probe, "runtime", None)
    if runtime is not None and probe.timeout <= runtime:
        raise ConfigError(
            where, "must be longer than runtime", key=f"{key}.timeout", value=f"{float(probe.timeout):g}s"
        )
    if probe.interval < 2 * probe.timeout:
        raise ConfigError(
            where,
            "must be at least twice the timeout, or the probe never rests",
            key=f"{key}.interval",
            value=f"{float(probe.interval):g}s",
        )


def _check_network(probe: IperfConfig | RttConfig | PathMtuConfig, workload: Workload, where: str, key: str) -> None:
    if not probe.targets or len(set(probe.targets)) != len(probe.targets):
        raise ConfigError(where, "name at least one target, each once", key=f"{key}.targets", value=[*probe.targets])
    needs_port = isinstance(workload, RoundTrip) and workload.protocol == "tcp"
    for target in probe.targets:
        if needs_port and target.port is None:
            raise ConfigError(where, "a TCP handshake needs host:port", key=f"{key}.targets", value=target)
        if not (needs_port or isinstance(probe, IperfConfig)) and target.port is not None:
            raise ConfigError(
                where, "this probe knows no ports: name the host alone", key=f"{key}.targets", value=target
            )
    if isinstance(probe, IperfConfig):
        _check_iperf(probe, workload, where, key)
    elif isinstance(probe, RttConfig) and probe.packets * probe.gap >= probe.timeout:
        raise ConfigError(
            where, "packets × gap takes longer than the timeout", key=f"{key}.packets", value=int(probe.packets)
        )


def _check_iperf(probe: IperfConfig, workload: Workload, where: str, key: str) -> None:
    if probe.runtime < 1 or probe.runtime % 1:
        raise ConfigError(where, "whole seconds, at least 1", key=f"{key}.runtime", value=f"{float(probe.runtime):g}s")
    takes = len(workload.operations) * (probe.runtime + PEER_ANSWERS_WITHIN_S)
    if probe.timeout < takes:
        raise ConfigError(
            where,
            f"both directions take up to {takes:g} s",
            key=f"{key}.timeout",
            value=f"{float(probe.timeout):g}s",
        )
    if probe.rate is not None and probe.rate < 2**10:
        raise ConfigError(where, "at least 1KiB a second", key=f"{key}.rate", value=int(probe.rate))


def _check_filesystem(probe: FilesystemConfig, where: str, key: str) -> None:
    if not probe.directory.startswith("/") or ".." in probe.directory.split("/"):
        raise ConfigError(where, "an absolute path", key=f"{key}.directory", value=probe.directory)
    if probe.filesystem is not None and not _FILESYSTEM.fullmatch(probe.filesystem):
        raise ConfigError(
            where, "a type as in /proc/filesystems or mount's output", key=f"{key}.filesystem", value=probe.filesystem
        )


def _check_s3(probe: S3Config, where: str, key: str) -> None:
    if not _ENDPOINT.fullmatch(probe.endpoint):
        # without the value: a password may stand in it
        raise ConfigError(where, "http:// or https:// with a host and nothing else", key=f"{key}.endpoint")
    if not _BUCKET.fullmatch(probe.bucket):
        raise ConfigError(
            where, "3 to 63 lower-case letters, digits, '.' and '-'", key=f"{key}.bucket", value=probe.bucket
        )
    for name in ("credentials_file", "ca_file"):
        path = getattr(probe, name)
        if path is not None and (problem := secret_problem(path)):
            raise ConfigError(where, problem, key=f"{key}.{name}", value=path)


def _check_image(probe: RbdFioConfig | RbdBenchConfig, workload: Workload, where: str, key: str) -> None:
    if probe.image_size < 2**20:
        raise ConfigError(where, "at least 1MiB", key=f"{key}.image_size", value=int(probe.image_size))
    block = workload.io_size if isinstance(workload, RbdBench) else getattr(workload, "block_size", 0)
    sizes = {"image_size": probe.image_size} | ({"total": probe.total} if isinstance(probe, RbdBenchConfig) else {})
    for name, size in sizes.items():
        if size < block:
            raise ConfigError(where, "smaller than the workload's block", key=f"{key}.{name}", value=int(size))


def _check_raw(devices: tuple[str, ...], workload: Workload, where: str, key: str) -> None:
    for device in devices:
        if not _DEVICE.fullmatch(device):
            raise ConfigError(where, "a kernel name such as sdb or nvme0n1, or osd", key=f"{key}.devices", value=device)
    if workload.operations != ("read",):
        raise ConfigError(where, "raw devices are only ever read", key=f"{key}.workload", value=workload.id)
    if not isinstance(workload, BlockWorkload) or not workload.direct:
        raise ConfigError(where, "raw devices are read with O_DIRECT", key=f"{key}.workload", value=workload.id)
