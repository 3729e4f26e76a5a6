"""Every kind of probe there is, literally: its struct in the configuration → what it means on a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plumbline.config_types import FieldError
from plumbline.probe_configs import ProbeConfig, ceph, disk, network
from plumbline.probe_configs.filesystem import FilesystemConfig
from plumbline.probe_configs.object import S3Config
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

KINDS: dict[type[ProbeConfig], Callable[[Any, Any, Host], Plan]] = {
    disk.CanaryConfig: canary_job.build,
    disk.FioConfig: fio_raw.build,
    disk.RawCanaryConfig: raw_canary_job.build,
    network.IperfConfig: iperf3.build,
    network.RttConfig: rtt.build,
    network.PathMtuConfig: path_mtu.build,
    FilesystemConfig: filesystem.build,
    S3Config: s3.build,
    ceph.OsdBenchConfig: osd_bench.build,
    ceph.RadosCanaryConfig: rados_canary_job.build,
    ceph.RadosBenchConfig: rados_bench.build,
    ceph.RbdBenchConfig: rbd_bench.build,
    ceph.RbdFioConfig: rbd_fio.build,
}
"""``Any``: each builder takes the struct it stands beside, and what :meth:`.ProbeBase.chosen` of it gives."""


def plan_probe(config: ProbeConfig, host: Host) -> Plan:
    """What one entry of the configuration means on this host; :class:`ConfigError` for what no host could run."""
    try:
        workload = config.chosen(host.catalogue)
    except FieldError as error:
        raise error.at("configuration", config.name) from None
    return KINDS[type(config)](config, workload, host)
