"""Reads this host's :class:`~plumbline.baseline.fingerprint.Fingerprint`. Not for a scrape: it starts processes.

All parts are read in parallel and abandoned after :data:`WITHIN_S`, so a disk that hangs or a cluster that does not
answer delays neither the other parts nor the caller.

A port's line names the driver's version only if it differs from the kernel's release (``ethtool -i`` repeats that for
in-tree drivers): a kernel update is then one change, not one for each port.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeVar

from plumbline.baseline.fingerprint import Fingerprint, Part
from plumbline.config.model import CephConfig
from plumbline.core.answers import ask_side_by_side
from plumbline.core.foreign import parse_json
from plumbline.core.process import Completed, ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.probes.ceph import ceph_task
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.run.tool import FIO
from plumbline.sources.ceph.cephmap import parsing
from plumbline.sources.disk.block import BlockDevice, list_real_disks, read_block_devices
from plumbline.sources.disk.queuesettings import QueueSettings, read_queue_settings
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.sysctl import SysctlReading, read_sysctl
from plumbline.sources.net.ethtool import DriverInfo, Ethtool
from plumbline.sources.net.links import read_links
from plumbline.sources.net.netlink import Netlink
from plumbline.sources.net.portfacts import Transports

T = TypeVar("T")

WITHIN_S = 10.0  # for all parts; a healthy cluster answers in a second, a program prints its version in a tenth
_QUERY_WITHIN_S = 8.0
_MAX_ANSWER = 1 << 20

SETTINGS = (
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
)
"""The kernel settings that the checks judge, except kernel.numa_balancing, which came later: with it every
recorded baseline would count as one of another tuning. Not all exported ones: the kernel computes some
(tcp_mem, file-max) from its free memory at boot, so every reboot would count as a change."""

# Programs of Ceph's packages, the storage nodes' first. Not ``ceph``: it is Python and takes a second of CPU.
_CEPH_PROGRAMS = ("ceph-osd", "rados")
_CEPH_VERSION = re.compile(r"ceph version (\S+)")


def read_fingerprint(roots: Roots, *, environment: Mapping[str, str], ceph: CephConfig | None = None) -> Fingerprint:
    """Everything that can be read within :data:`WITHIN_S`; the rest stays empty. ``ceph``: if this node has a cluster
    and a key, only the cluster is queried for the version of its OSDs: the node's packages may have another
    (containers), which would look like a change."""
    runner = ProcessRunner(environment)
    kernel = sysfs.read_text(roots.proc / "sys/kernel/osrelease") or ""
    readers: dict[Part, Callable[[], Any]] = {
        Part.CEPH: lambda: _ceph(ceph, runner),
        Part.FIO: lambda: FIO.version(runner),
        Part.DISKS: lambda: disks(_real_disks(roots)),
        Part.NICS: lambda: _nics(kernel),
        Part.TUNING: lambda: tuning(
            read_sysctl(roots, numbers=SETTINGS, words=()), read_queue_settings(roots).queues, _real_disks(roots)
        ),
    }
    parts, _ = ask_side_by_side({part: partial(_read, reader) for part, reader in readers.items()}, WITHIN_S)
    return Fingerprint(kernel=kernel, **{part.value: value for part, values in parts.items() for value in values})


def _read(reader: Callable[[], T]) -> list[T]:
    """The value, or nothing: a part that can't be read is not compared."""
    try:
        return [reader()]
    except (PlumblineError, OSError, ValueError):
        return []


def disks(devices: Iterable[BlockDevice]) -> dict[str, str]:
    """Serial number or name → model and firmware."""
    return {
        disk.serial or disk.name: " ".join(filter(None, (disk.model, disk.firmware))) or "unknown" for disk in devices
    }


def tuning(settings: SysctlReading, queues: Iterable[QueueSettings], devices: Iterable[BlockDevice]) -> str:
    """Twelve hex digits of SHA-256 over one line a setting, sorted. Queues count by the class of their disk, not by its
    name, and equal ones count once: names change at a reboot, and another disk with the same settings is no change."""
    classes = {disk.name: disk.device_class or "unknown" for disk in devices}
    lines = {f"{name}={' '.join(map(str, values))}" for name, values in settings.numbers.items()}
    for queue in queues:
        if queue.device in classes:
            lines.add(
                f"{classes[queue.device]}: scheduler={queue.scheduler} write_cache={queue.write_cache}"
                f" requests={queue.requests} read_ahead_kib={queue.read_ahead_kib} rq_affinity={queue.rq_affinity}"
                f" add_random={queue.add_random}"
            )
    import hashlib  # noqa: PLC0415  (see plumbline.web.access)

    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]


def nics(ports: Iterable[tuple[str, DriverInfo]], *, kernel: str) -> dict[str, str]:
    """Port → driver, its version if it differs from the kernel's, firmware."""
    return {
        name: " ".join(filter(None, (info.driver, info.version if info.version != kernel else "", info.firmware)))
        for name, info in ports
        if info.driver
    }


def parse_versions(answer: Any) -> str:
    """From decoded ``ceph versions``: the OSDs' version, or all daemons' if there are no OSDs; several are sorted.
    ``{"osd": {"ceph version 19.2.3 (<commit>) squid (stable)": 3}, "overall": {…}}`` → ``19.2.3``"""
    with parsing("versions"):
        texts = [str(text) for text in answer.get("osd") or answer["overall"]]
    return ", ".join(sorted({_version(text) for text in texts}))


def _version(text: str) -> str:
    match = _CEPH_VERSION.match(text)
    if match is None:
        raise ParseError("ceph versions", f"no version: {text[:60]!r}")
    return match[1]


def _ceph(config: CephConfig | None, runner: ProcessRunner) -> str:
    access = None if config is None else CephAccess.of(config)
    if access is not None and access.usable:
        done = runner.run(
            ceph_task.argv(access.librados(), "versions"), timeout_s=_QUERY_WITHIN_S, max_output_bytes=_MAX_ANSWER
        )
        return parse_versions(parse_json(_output(done), source="ceph versions"))
    program = next((path for name in _CEPH_PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        return ""
    return _version(_output(runner.run((program, "--version"), timeout_s=_QUERY_WITHIN_S)).strip())


def _output(done: Completed) -> str:
    if done.returncode != 0:
        raise Unavailable(f"{done.argv[0]}: no answer")
    return done.stdout.decode("utf-8", "replace")


def _real_disks(roots: Roots) -> tuple[BlockDevice, ...]:
    names = frozenset(list_real_disks(roots))
    return read_block_devices(roots, on_skip=lambda _item, _reason: None, keep=names.__contains__)


def _nics(kernel: str) -> dict[str, str]:
    ports = []
    with closing(Transports.to_kernel()) as transports:
        ethtool = Ethtool(transports.ioctl)
        for link in read_links(Netlink(transports.route, source="netlink route")).values():
            if link.hardware:
                with suppress(PlumblineError):  # a driver without ethtool support has no information
                    ports.append((link.name, ethtool.driver_info(link.raw_name)))
    return nics(ports, kernel=kernel)
