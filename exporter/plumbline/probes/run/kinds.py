"""A literal list of all kinds of probes: configuration struct → the function that plans it on a host."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from plumbline.config.probes import ProbeConfig, ceph, disk, network
from plumbline.config.probes.filesystem import FilesystemCanaryConfig, FilesystemConfig
from plumbline.config.probes.object import S3CanaryConfig, S3Config
from plumbline.config.types import FieldError
from plumbline.probes.run.model import Host, Plan

KINDS: dict[type[ProbeConfig], str] = {
    disk.CanaryConfig: "disk.canaries.build",
    disk.FioConfig: "disk.fio_probe.build",
    disk.RawCanaryConfig: "disk.canaries.build_raw",
    network.IperfConfig: "network.iperf3.build",
    network.QperfConfig: "network.qperf.build",
    network.RttConfig: "network.rtt.build",
    network.PathMtuConfig: "network.path_mtu.build",
    FilesystemConfig: "filesystem.filesystem.build",
    FilesystemCanaryConfig: "filesystem.filesystem_canary.build",
    S3Config: "object.s3.build",
    S3CanaryConfig: "object.s3_canary.build",
    ceph.OsdBenchConfig: "rados.osd_bench.build",
    ceph.RadosCanaryConfig: "rados.rados_canary.build",
    ceph.RadosBenchConfig: "rados.rados_bench.build",
    ceph.RbdBenchConfig: "rbd.rbd_bench.build",
    ceph.RbdFioConfig: "rbd.rbd_fio.build",
}
"""Named by room, module and function in `plumbline.probes`: kinds that are not configured stay out of memory."""


def plan_probe(config: ProbeConfig, host: Host) -> Plan:
    """What one entry of the configuration means on this host; :class:`ConfigError` for what no host could run."""
    try:
        workload = config.chosen(host.catalogue)
    except FieldError as error:
        raise error.at("configuration", config.name) from None
    return _builder(KINDS[type(config)])(config, workload, host)


def _builder(name: str) -> Callable[[Any, Any, Host], Plan]:
    """``Any``: each takes the struct it is listed with, and the return value of its :meth:`.ProbeBase.chosen`."""
    module, _, function = name.rpartition(".")
    return cast("Callable[[Any, Any, Host], Plan]", getattr(import_module(f"plumbline.probes.{module}"), function))
