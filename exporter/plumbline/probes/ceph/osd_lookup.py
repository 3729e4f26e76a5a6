"""Which OSDs a configuration means on this host, and their class: queried during planning, bounded in time.

The cluster's answer comes first; its last answer is stored in case it does not answer. If it never did, this host's own
directories name its OSDs, with the class that the kernel gives their disks; the canary detects the difference when the
cluster is back, and requests a new plan.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plumbline.config.model import CephConfig
from plumbline.config.probes.ceph import OSD_NAME
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.process import ProcessRunner
from plumbline.core.storage_names import OSDS_FILE
from plumbline.errors import FileRefused, ProbeRefused, Unavailable
from plumbline.probes.ceph import ceph_task
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.ceph.cluster_osds import ALL, HOST, ClusterOsds, from_json, to_json
from plumbline.probes.model import Host

log = logging.getLogger(__name__)

ANSWER_WITHIN_S = 5.0
_MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class FoundOsd:
    """An OSD. ``crush_class`` is empty if the cluster did not report it."""

    number: int
    crush_class: str
    device_class: str
    """The class for comparing figures: the configured one, the CRUSH class, the disk's, or ``unknown``."""
    device: str = ""
    """The underlying disk, if it is on this host."""


def look_up(words: Sequence[str], device_class: str | None, host: Host) -> tuple[FoundOsd, ...]:
    """The OSDs, ordered by number; never raises because of the cluster."""
    local = {int(osd.removeprefix("osd.")): disk for disk, osd in host.osd_disks().items() if OSD_NAME.fullmatch(osd)}
    kernel = {disk.name: disk.device_class for disk in host.disks()} if local else {}
    cluster = host.cluster_osds() or remembered(host.storage)
    if cluster is not None:
        numbers = [number for number in cluster.chosen(words, socket.gethostname()) if number in cluster.by_number]
        told = {number: cluster.by_number[number].device_class for number in numbers}
    else:
        named = {int(word.removeprefix("osd.")) for word in words if word not in (HOST, ALL)}
        told = dict.fromkeys(named | (local.keys() if {HOST, ALL} & set(words) else set()), "")
    return tuple(
        FoundOsd(
            number,
            crush_class,
            device_class or crush_class or kernel.get(local.get(number, "")) or "unknown",
            local.get(number, ""),
        )
        for number, crush_class in sorted(told.items())
    )


def only_class(host: Host) -> str:
    """The class of all OSDs of the cluster, if they have only one; otherwise ``unknown``."""
    cluster = host.cluster_osds()
    classes = {osd.device_class for osd in cluster.by_number.values()} if cluster is not None else set()
    return classes.pop() if len(classes) == 1 else "unknown"


def remember(storage: Path, osds: ClusterOsds) -> None:
    """Store for starts and reloads while the cluster does not answer; a read-only storage path is no error."""

    def is_ours(descriptor: int) -> bool:
        return read_osds(read_whole(descriptor, _MAX_BYTES, OSDS_FILE)) is not None

    data = json.dumps(to_json(osds)).encode()
    try:
        with OwnDirectory.at(storage, follow=True) as directory:
            directory.replace(OSDS_FILE, data, mode=0o640, is_ours=is_ours)
    except (OSError, FileRefused) as error:
        log.debug("%s: what the cluster says is not kept: %s", storage, error)


def remembered(storage: Path) -> ClusterOsds | None:
    """What was stored, if anything."""
    try:
        with OwnDirectory.at(storage, owner=storage.stat().st_uid, follow=True) as directory:
            return read_osds(directory.read(OSDS_FILE, _MAX_BYTES))
    except (OSError, FileRefused):
        return None


def read_osds(data: bytes) -> ClusterOsds | None:
    """Parse what :func:`remember` wrote; ``None`` for anything else."""
    try:
        return from_json(json.loads(data))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None


def ask_cluster(config: CephConfig, environment: Mapping[str, str]) -> ClusterOsds | None:
    """The cluster's OSDs; ``None`` without an answer in time."""
    access = CephAccess.of(config)
    try:
        access.check()
        quick = replace(access.librados(), connect_timeout_s=3, operation_timeout_s=3)
        done = ProcessRunner(environment).run(
            ceph_task.argv(quick, "osds"), timeout_s=ANSWER_WITHIN_S, max_output_bytes=_MAX_BYTES
        )
        if done.returncode == 0:
            return from_json(json.loads(done.stdout))
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or "no answer in time"
    except (ProbeRefused, Unavailable, ValueError) as error:
        said = str(error)
    log.warning("OSDs: the cluster does not tell which there are: %s", said)
    return None
