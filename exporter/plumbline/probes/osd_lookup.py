"""Which OSDs a configuration means on this host, and of which class: asked while probes are planned, and bounded.

The cluster knows best. Where it does not answer in time, this host's own directories name its OSDs, with the class the
kernel gives their disks; the canary sees the difference as soon as the cluster is back, and asks to be planned anew.
"""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plumbline.errors import ConfigError, ProbeRefused, Unavailable
from plumbline.probes import ceph_task
from plumbline.probes.ceph_access import CephAccess
from plumbline.probes.cluster_osds import ALL, HOST
from plumbline.probes.model import Host
from plumbline.probes.runner import ProcessRunner

log = logging.getLogger(__name__)

ANSWER_WITHIN_S = 5.0
_NAME = re.compile(r"osd\.(0|[1-9]\d{0,5})")


@dataclass(frozen=True, slots=True)
class FoundOsd:
    """``crush_class`` is empty where the cluster did not tell."""

    number: int
    crush_class: str
    device_class: str
    """What figures are compared by: the configured one, the CRUSH class, the disk's, or ``unknown``."""
    device: str = ""
    """The disk below, if it is one of this host."""


def check_words(words: Sequence[str], *, allowed: Sequence[str], key: str) -> None:
    """:class:`ConfigError` for what names no OSD."""
    for word in words:
        if word not in allowed and not _NAME.fullmatch(word):
            raise ConfigError("configuration", f"osd.N, or {' or '.join(allowed)}", key=key, value=word)
    if not words:
        raise ConfigError("configuration", f"name OSDs: osd.N, or {' or '.join(allowed)}", key=key, value=[])


def look_up(words: Sequence[str], device_class: str | None, host: Host) -> tuple[FoundOsd, ...]:
    """The OSDs, in order of their numbers; never raises for what the cluster does."""
    local = {int(osd.removeprefix("osd.")): disk for disk, osd in host.osd_disks().items() if _NAME.fullmatch(osd)}
    kernel = {disk.name: disk.device_class for disk in host.disks()} if local else {}
    told = _ask(words, host)
    if told is None:
        named = {int(word.removeprefix("osd.")) for word in words if word not in (HOST, ALL)}
        told = dict.fromkeys(sorted(named | (set(local) if {HOST, ALL} & set(words) else set())), "")
    return tuple(
        FoundOsd(
            number,
            crush_class,
            device_class or crush_class or kernel.get(local.get(number, ""), None) or "unknown",
            local.get(number, ""),
        )
        for number, crush_class in sorted(told.items())
    )


def _ask(words: Sequence[str], host: Host) -> Mapping[int, str] | None:
    access = CephAccess.of(host.ceph)
    try:
        access.check()
        quick = replace(access.librados(), connect_timeout_s=3, operation_timeout_s=3)
        command = ceph_task.argv(quick, "osds", words=list(words), host=socket.gethostname())
        done = ProcessRunner(host.environment).run(command, timeout_s=ANSWER_WITHIN_S)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            log.warning("OSDs: the cluster was not asked: %s", said or "no answer in time")
            return None
        return {int(number): str(crush_class) for number, crush_class in json.loads(done.stdout)}
    except (ProbeRefused, Unavailable, ValueError) as error:
        log.warning("OSDs: the cluster was not asked: %s", error)
        return None
