"""One query to the cluster, or one clean-up of it, through librados in a short-lived process.

This keeps librados and its threads out of the daemon, and a process that hangs is killed. ``ceph`` and ``rados`` could
do most of it, but the first takes a second of CPU to start, and the second can't remove anything from a full pool.

Started by ``osd_lookup.py``, ``rados_bench.py``, ``background/fingerprint.py`` and ``background/ceph_map.py`` as
``… <task as JSON>``; the answer is one JSON line. On error: one line on stderr, exit status 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from plumbline.core.isolated import argv_of
from plumbline.core.kernel import read_kernel
from plumbline.core.memory import LIBRADOS, limit_memory
from plumbline.core.privacy import keep_memory_private
from plumbline.errors import PlumblineError
from plumbline.probes.ceph.cluster_map import ask_map
from plumbline.probes.ceph.cluster_osds import ask_osds, to_json
from plumbline.probes.ceph.librados import Access, connect
from plumbline.probes.rados.rados_sweep import sweep


def argv(access: Access, task: str, **arguments: object) -> tuple[str, ...]:
    """The command line; it contains no secret."""
    facts = {"access": {name: getattr(access, name) for name in access.__slots__}, "task": task, **arguments}
    return argv_of("plumbline.probes.ceph.ceph_task", json.dumps(facts))


def main(argv: list[str]) -> int:
    """Run the task and print the answer."""
    keep_memory_private()  # it will hold a key
    limit_memory(LIBRADOS)
    facts = json.loads(argv[0])
    tasks: dict[str, Callable[..., object]] = {
        "osds": osds,
        "map": cluster_map,
        "sweep": sweep_bench,
        "versions": versions,
    }
    task = tasks[facts.pop("task")]
    try:
        print(json.dumps(task(Access(**facts.pop("access")), **facts)))
    except (PlumblineError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def osds(access: Access) -> dict[str, Any]:
    """All OSDs of the cluster, for :func:`.cluster_osds.from_json`."""
    with connect(access) as cluster:
        return to_json(ask_osds(cluster))


def cluster_map(access: Access) -> dict[str, Any]:
    """The map's parts, for :func:`plumbline.sources.ceph.cephmap.parse_cephmap`."""
    with connect(access) as cluster:
        return ask_map(cluster)


def versions(access: Access) -> Any:
    """Daemons by version, as in ``ceph versions``."""
    with connect(access) as cluster:
        return cluster.mon_command("versions")


def sweep_bench(access: Access, *, pool: str, namespace: str, names: list[str], prefix: str) -> Mapping[str, Any]:
    """Remove the objects ``names``, and the benchmark objects whose process no longer runs."""
    running: dict[str, bool] = {}

    def is_ours(name: str) -> bool:
        if name in names:
            return True
        if not name.startswith(prefix):
            return False
        number = name.removeprefix(prefix).partition("_")[0]
        if not number.isdigit():
            return False
        if number not in running:
            running[number] = _is_bench(number)
        return not running[number]

    with connect(access) as cluster, cluster.pool(pool, namespace=namespace) as found:
        removed, left = sweep(found, is_ours, within_s=60.0)
    return {"removed": removed, "left": left}


def _is_bench(number: str) -> bool:
    """Whether this process is a running ``rados``: another probe's, or a person's."""
    try:
        return read_kernel(f"/proc/{number}/comm").strip() == b"rados"
    except OSError:
        return False
