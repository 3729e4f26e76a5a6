"""A pool's device class: queried during planning, in a separate process, bounded in time.

The pool's CRUSH rule may take one class (``default~ssd``); a rule without one takes every OSD, which have one class in
most clusters. With several classes the answer is ``mixed``.

https://docs.ceph.com/en/latest/rados/operations/crush-map/#device-classes ·
``ceph osd pool get POOL crush_rule``, ``ceph osd crush rule dump``, ``ceph osd crush class ls``
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace

from plumbline.config.model import CephConfig
from plumbline.core.isolated import argv_of
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused, Unavailable
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.ceph.librados import Access

log = logging.getLogger(__name__)

ANSWER_WITHIN_S = 5.0
_CONNECT_S = 3


def ask_pool_class(pool: str, ceph: CephConfig, environment: Mapping[str, str]) -> str | None:
    """``hdd``, ``ssd``, ``mixed`` …; ``None`` if the cluster does not answer in time."""
    access = CephAccess.of(ceph)
    try:
        access.check()
        quick = replace(access.librados(), connect_timeout_s=_CONNECT_S, operation_timeout_s=_CONNECT_S)
        facts = {"access": {name: getattr(quick, name) for name in Access.__slots__}, "pool": pool}
        done = ProcessRunner(environment).run(
            argv_of("plumbline.probes.ceph.pool_class_task", json.dumps(facts)), timeout_s=ANSWER_WITHIN_S
        )
        if done.returncode == 0:
            found = json.loads(done.stdout)
            return str(found) if found else None
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or "no answer in time"
    except (ProbeRefused, Unavailable, ValueError) as error:
        said = str(error)
    log.warning("pool %s: its device class is unknown until the next reload: %s", pool, said)
    return None
