"""Every kind of probe there is, literally: type in the configuration → what it means on a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plumbline.probe_config import (
    CanaryConfig,
    FilesystemConfig,
    FioConfig,
    IperfConfig,
    OsdBenchConfig,
    PathMtuConfig,
    RadosBenchConfig,
    RadosCanaryConfig,
    RawCanaryConfig,
    RbdBenchConfig,
    RbdFioConfig,
    RttConfig,
    S3Config,
)
from plumbline.probes import (
    canary_job,
    filesystem,
    fio_raw,
    iperf3,
    osd_bench,
    path_mtu,
    rados_bench,
    rados_canary_job,
    raw_canary_job,
    rbd_bench,
    rbd_fio,
    rtt,
    s3,
)
from plumbline.probes.model import Host, Plan

KINDS: dict[type, Callable[[Any, Host], Plan]] = {
    CanaryConfig: canary_job.build,
    FioConfig: fio_raw.build,
    RawCanaryConfig: raw_canary_job.build,
    IperfConfig: iperf3.build,
    RttConfig: rtt.build,
    PathMtuConfig: path_mtu.build,
    FilesystemConfig: filesystem.build,
    S3Config: s3.build,
    OsdBenchConfig: osd_bench.build,
    RadosCanaryConfig: rados_canary_job.build,
    RadosBenchConfig: rados_bench.build,
    RbdBenchConfig: rbd_bench.build,
    RbdFioConfig: rbd_fio.build,
}
"""``Any``: each builder takes the struct it stands beside. :class:`ConfigError` is for what no host could run."""
