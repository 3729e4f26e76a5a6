"""The cluster's OSDs and the device class of a pool: queried during planning, bounded in time. The list of OSDs is
stored, for starts while the cluster does not answer."""

import dataclasses
import json
import logging
from collections.abc import Mapping
from pathlib import Path

from plumbline.config.model import CephConfig
from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.foreign import parse_json, shaped
from plumbline.core.isolated import last_line
from plumbline.core.process import ProcessRunner
from plumbline.core.proofs import Content
from plumbline.core.storage_names import OSDS_FILE
from plumbline.errors import FileRefused, ParseError, ProbeRefused, Unavailable
from plumbline.probes.ceph import ceph_task
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.sources.ceph.cluster_osds import ClusterOsds, from_json, to_json

log = logging.getLogger(__name__)

ANSWER_WITHIN_S = 5.0
_CONNECT_S = 3
_MAX_BYTES = 16 << 20


def remember(storage: Path, osds: ClusterOsds) -> None:
    """Store for starts and reloads while the cluster does not answer; a read-only storage path is no error."""
    data = json.dumps(to_json(osds)).encode()
    try:
        with OwnDirectory.at(storage, follow=True) as directory:
            directory.replace(OSDS_FILE, data, Content(is_osds), mode=0o640)
    except (OSError, FileRefused) as error:
        log.debug("%s: the cluster's list of OSDs is not stored: %s", storage, error)


def remembered(storage: Path) -> ClusterOsds | None:
    try:
        with OwnDirectory.at(storage, owner=storage.stat().st_uid, follow=True) as directory:
            return read_osds(directory.read(OSDS_FILE, _MAX_BYTES))
    except (OSError, FileRefused):
        return None


def is_osds(descriptor: int) -> bool:
    return read_osds(read_whole(descriptor, _MAX_BYTES, OSDS_FILE)) is not None


def read_osds(data: bytes) -> ClusterOsds | None:
    """Parse what :func:`remember` wrote; ``None`` for anything else."""
    try:
        return _from_json(data, OSDS_FILE)
    except ParseError:
        return None


def ask_cluster(config: CephConfig, environment: Mapping[str, str]) -> ClusterOsds | None:
    """The cluster's OSDs; ``None`` without an answer in time."""
    answer = _ask(config, environment, "the cluster did not report its OSDs", "osds")
    return None if answer is None else _from_json(answer, "the cluster's OSDs")


def _from_json(data: bytes, source: str) -> ClusterOsds:
    facts = parse_json(data, source=source)
    with shaped(source):
        return from_json(facts)


def ask_pool_class(pool: str, config: CephConfig, environment: Mapping[str, str]) -> str | None:
    """A pool's device class: ``hdd``, ``ssd``, ``mixed`` …; ``None`` without one, or without an answer in time."""
    problem = f"pool {pool}: its device class is unknown until the next reload"
    answer = _ask(config, environment, problem, "pool-class", pool=pool)
    device_class = None if answer is None else parse_json(answer, source=f"pool {pool}")
    return device_class if isinstance(device_class, str) and device_class else None


def _ask(config: CephConfig, environment: Mapping[str, str], problem: str, task: str, **arguments: str) -> bytes | None:
    access = CephAccess.of(config)
    try:
        access.check()
        quick = dataclasses.replace(access.librados(), connect_timeout_s=_CONNECT_S, operation_timeout_s=_CONNECT_S)
        done = ProcessRunner(environment).run(
            ceph_task.argv(quick, task, **arguments), timeout_s=ANSWER_WITHIN_S, max_output_bytes=_MAX_BYTES
        )
        if done.returncode == 0:
            return done.stdout
        reason = last_line(done) or "no answer in time"
    except (ProbeRefused, Unavailable) as error:
        reason = str(error)
    log.warning("%s: %s", problem, reason)
    return None
