"""A literal list of all kinds of probes: configuration struct → the function that plans it on a host."""

from collections.abc import Callable
from typing import Any

from plumbline.config.probes import ProbeConfig, ceph, disk, network
from plumbline.config.probes.filesystem import FilesystemConfig
from plumbline.config.probes.object import S3Config
from plumbline.config.types import FieldError
from plumbline.probes.canary import job
from plumbline.probes.ceph import osd_bench
from plumbline.probes.disk import fio_probe
from plumbline.probes.filesystem import filesystem
from plumbline.probes.model import Host, Plan
from plumbline.probes.network import iperf3, path_mtu, rtt
from plumbline.probes.object import s3
from plumbline.probes.rados import rados_bench, rados_canary_job
from plumbline.probes.rbd import rbd_bench, rbd_fio

KINDS: dict[type[ProbeConfig], Callable[[Any, Any, Host], Plan]] = {
    disk.CanaryConfig: job.build,
    disk.FioConfig: fio_probe.build,
    disk.RawCanaryConfig: job.build_raw,
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
"""``Any``: each builder takes the struct it is listed with, and the return value of its :meth:`.ProbeBase.chosen`."""


def plan_probe(config: ProbeConfig, host: Host) -> Plan:
    """What one entry of the configuration means on this host; :class:`ConfigError` for what no host could run."""
    try:
        workload = config.chosen(host.catalogue)
    except FieldError as error:
        raise error.at("configuration", config.name) from None
    return KINDS[type(config)](config, workload, host)
