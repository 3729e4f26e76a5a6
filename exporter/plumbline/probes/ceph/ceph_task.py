"""One query to the cluster, or one clean-up of it, through librados in a short-lived process.

This keeps librados and its threads out of the daemon, and a process that hangs is killed. ``ceph`` and ``rados`` could
do most of it, but the first takes a second of CPU to start, and the second can't remove anything from a full pool.

Started as ``… <task as JSON>``; the answer is one JSON line. On error: one line on stderr, exit status 1. It imports
light modules only, so that it starts in a tenth of a second.
"""

import errno
import json
import sys
from collections.abc import Callable
from typing import Any

from plumbline.core.foreign import one_line, parse_json, shaped
from plumbline.core.isolated import argv_of
from plumbline.core.kernel import read_kernel
from plumbline.core.memory import LIBRADOS, keep_memory_private, limit_memory
from plumbline.errors import ParseError, PlumblineError
from plumbline.probes.ceph.librados import Access, Cluster, connect
from plumbline.probes.ceph.rados_sweep import sweep
from plumbline.sources.ceph.cephmap import ADDRESSES
from plumbline.sources.ceph.cluster_osds import ask_osds, to_json

# keys of ``osd dump``, and of its OSDs; the rest, such as exceptions of placement groups, is megabytes on a big cluster
_DUMP_KEYS = (
    "pools",
    "erasure_code_profiles",
    "full_ratio",
    "backfillfull_ratio",
    "nearfull_ratio",
    "require_osd_release",
)
_OSD_KEYS = ("osd", "up", *ADDRESSES)
_AVAILABILITY_SINCE = "tentacle"  # Ceph 20; releases are named in the order of the alphabet


def argv(access: Access, task: str, **arguments: object) -> tuple[str, ...]:
    facts = {"access": {name: getattr(access, name) for name in access.__slots__}, "task": task, **arguments}
    return argv_of("plumbline.probes.ceph.ceph_task", json.dumps(facts))


def main(argv: list[str]) -> int:
    """Run the task and print the answer."""
    keep_memory_private()  # it will hold a key
    limit_memory(LIBRADOS)
    facts = parse_json(argv[0], source="the task")
    tasks: dict[str, Callable[..., object]] = {
        "osds": lambda cluster: to_json(ask_osds(cluster)),
        "map": ask_map,
        "versions": lambda cluster: cluster.mon_command("versions"),
        "pool-class": ask_pool_class,
        "sweep": sweep_bench,
    }
    task = tasks[facts.pop("task")]
    try:
        with connect(Access(**facts.pop("access"))) as cluster:
            with shaped("the cluster"):
                answer = json.dumps(task(cluster, **facts))
            print(answer)
    except (PlumblineError, OSError) as error:
        print(one_line(error), file=sys.stderr)
        return 1
    return 0


def ask_map(cluster: Cluster) -> dict[str, Any]:
    """The decoded answers by command, for :func:`plumbline.sources.ceph.cephmap.parse_cephmap`.

    Topology, pools and limits come from the monitors. Usage comes from the manager: the monitors forward ``osd df`` to
    it, while ``df`` is what it last reported to them, however long ago. So both are returned, or neither: if no manager
    answers, ``use`` is ``None`` and ``unread`` says why. ``OSError`` if the monitors don't answer.

    Needs ``mon 'allow service mon r, allow service osd r'``, which `plumbline ceph setup` grants.
    """
    dump = cluster.mon_command("osd dump")
    answers = {
        "osd tree": cluster.mon_command("osd tree"),
        "osd dump": {key: dump[key] for key in _DUMP_KEYS if key in dump}
        | {"osds": [{key: osd[key] for key in _OSD_KEYS if key in osd} for osd in dump.get("osds", ())]},
        "osd crush rule dump": cluster.mon_command("osd crush rule dump"),
        "mon dump": {"mons": [{"name": mon["name"]} for mon in cluster.mon_command("mon dump")["mons"]]},
        "availability": _ask_availability(cluster, dump),
    }
    try:
        use = {command: cluster.mon_command(command) for command in ("osd df", "df")}
    except (OSError, ParseError) as error:  # ParseError: invalid JSON, such as "-nan"
        return {**answers, "use": None, "unread": str(error)}
    return {**answers, "use": use, "unread": ""}


def _ask_availability(cluster: Cluster, dump: dict[str, Any]) -> Any:
    """``None`` before Ceph 20, and while the monitors don't track it: ENOTSUP (enable_availability_tracking).
    Invalid JSON, such as "-nan", costs this answer and not the map."""
    if str(dump.get("require_osd_release", "")) < _AVAILABILITY_SINCE:
        return None
    try:
        return cluster.mon_command("osd pool availability-status")
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
    except ParseError:
        pass
    return None


def ask_pool_class(cluster: Cluster, *, pool: str) -> str | None:
    """The device class of a pool, see :func:`class_of`."""
    name = cluster.mon_command("osd pool get", {"pool": pool, "var": "crush_rule"})["crush_rule"]
    rule = cluster.mon_command("osd crush rule dump", {"name": name})
    return class_of(rule, cluster.mon_command("osd crush class ls"))


def class_of(rule: Any, classes: Any) -> str | None:
    """A pool's device class, from its CRUSH rule and all existing classes. Raises :class:`ParseError`.

    The rule may take one class (``default~ssd``); a rule without one takes every OSD, which have one class in most
    clusters. With several classes it is ``mixed``, without any ``None``.
    https://docs.ceph.com/en/latest/rados/operations/crush-map/#device-classes
    """
    with shaped("ceph osd crush"):
        taken = {str(step["item_name"]).partition("~")[2] for step in rule["steps"] if step["op"] == "take"}
        existing = {str(name) for name in classes}
    candidates = taken if taken and "" not in taken else existing
    return candidates.pop() if len(candidates) == 1 else ("mixed" if candidates else None)


def sweep_bench(cluster: Cluster, *, pool: str, namespace: str, names: list[str], prefix: str) -> dict[str, int]:
    """Remove the objects ``names``, and the benchmark objects whose process no longer runs."""
    running: dict[str, bool] = {}

    def is_ours(name: str) -> bool:
        if name in names:
            return True
        number = name.removeprefix(prefix).partition("_")[0]
        if not name.startswith(prefix) or not number.isdigit():
            return False
        if number not in running:
            running[number] = _is_bench(number)
        return not running[number]

    with cluster.pool(pool, namespace=namespace) as objects:
        removed, left = sweep(objects, is_ours, within_s=60.0)
    return {"removed": removed, "left": left}


def _is_bench(number: str) -> bool:
    """Whether this process is a running ``rados``: another probe's, or a person's."""
    try:
        return read_kernel(f"/proc/{number}/comm").strip() == b"rados"
    except OSError:
        return False
