"""The questions whose answers are the cluster map, for the process that asks them (:mod:`.ceph_task`).

Places, pools and limits come from the monitors. What is used comes from the manager: ``osd df`` goes through the
monitors to it, ``df`` is what it told them last, however long ago. So both are given, or neither.
Needs ``mon 'allow service mon r, allow service osd r'``, which is what `plumbline ceph setup` gives.

Light modules only.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, without loading typing
if TYPE_CHECKING:
    from typing import Any

    from plumbline.probes.ceph.librados import Cluster

_OF_DUMP = ("pools", "erasure_code_profiles", "full_ratio", "backfillfull_ratio", "nearfull_ratio")
"""Of ``osd dump``; the rest, addresses and exceptions of placement groups, is megabytes on a big cluster."""


def ask_map(cluster: Cluster) -> dict[str, Any]:
    """The decoded answers by their commands; ``use`` is ``None`` and ``unread`` says why where no manager answers.

    ``OSError`` where the monitors don't.
    """
    dump = cluster.mon_command("osd dump")
    answers = {
        "osd tree": cluster.mon_command("osd tree"),
        "osd dump": {key: dump[key] for key in _OF_DUMP if key in dump},
        "osd crush rule dump": cluster.mon_command("osd crush rule dump"),
    }
    try:
        use = {command: cluster.mon_command(command) for command in ("osd df", "df")}
    except (OSError, ValueError) as error:  # the second: what is no JSON, such as "-nan"
        return {**answers, "use": None, "unread": str(error)}
    return {**answers, "use": use, "unread": ""}
