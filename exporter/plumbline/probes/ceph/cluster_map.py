"""The queries that make up the cluster map, for the process that runs them (:mod:`.ceph_task`).

Topology, pools and limits come from the monitors. Usage comes from the manager: the monitors forward ``osd df`` to it,
while ``df`` is what it last reported to them, however long ago. So both are returned, or neither.
Needs ``mon 'allow service mon r, allow service osd r'``, which `plumbline ceph setup` grants.

Light modules only.
"""

from __future__ import annotations

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from typing import Any

    from plumbline.probes.ceph.librados import Cluster

# keys of ``osd dump``; the rest, addresses and exceptions of placement groups, is megabytes on a big cluster
_OF_DUMP = ("pools", "erasure_code_profiles", "full_ratio", "backfillfull_ratio", "nearfull_ratio")


def ask_map(cluster: Cluster) -> dict[str, Any]:
    """The decoded answers by command; if no manager answers, ``use`` is ``None`` and ``unread`` says why.

    Raises ``OSError`` if the monitors don't answer.
    """
    dump = cluster.mon_command("osd dump")
    answers = {
        "osd tree": cluster.mon_command("osd tree"),
        "osd dump": {key: dump[key] for key in _OF_DUMP if key in dump},
        "osd crush rule dump": cluster.mon_command("osd crush rule dump"),
    }
    try:
        use = {command: cluster.mon_command(command) for command in ("osd df", "df")}
    except (OSError, ValueError) as error:  # ValueError: invalid JSON, such as "-nan"
        return {**answers, "use": None, "unread": str(error)}
    return {**answers, "use": use, "unread": ""}
