"""What the cluster map says, as one reading: OSDs and their places, pools and their rules, limits, and what is used.

The parts come from :mod:`.cephmap_osds` and :mod:`.cephmap_pools`; who asks is :mod:`plumbline.cephmapwatch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plumbline.errors import ParseError
from plumbline.sources.cephmap_osds import OsdInMap, OsdUse, parse_osd_df, parse_osd_tree
from plumbline.sources.cephmap_pools import Pool, PoolUse, parse_df, parse_full_ratios, parse_pools, parse_rules


@dataclass(frozen=True, slots=True)
class CephMap:
    """The cluster at one moment. ``osd_use`` and ``pool_use`` are empty where no manager answered."""

    read_ts: float
    """Unix seconds."""
    osds: tuple[OsdInMap, ...]
    pools: tuple[Pool, ...]
    full_ratios: Mapping[str, float]
    """Limit → ratio."""
    osd_use: Mapping[str, OsdUse] = field(default_factory=dict)
    """OSD → what it holds."""
    pool_use: Mapping[int, PoolUse] = field(default_factory=dict)
    """Pool's number → what it holds."""
    unread: str = ""
    """Why nothing is known of what they hold."""


def parse_cephmap(answers: Any, *, read_ts: float) -> CephMap:
    """From what :func:`plumbline.probes.cluster_map.ask_map` got; :class:`ParseError`."""
    try:
        tree, dump, rules = answers["osd tree"], answers["osd dump"], answers["osd crush rule dump"]
        use, unread = answers["use"], str(answers["unread"])
        osd_df, df = (None, None) if use is None else (use["osd df"], use["df"])
    except (KeyError, TypeError) as error:
        raise ParseError("the cluster map", f"an answer is missing: {error}") from None
    return CephMap(
        read_ts=read_ts,
        osds=parse_osd_tree(tree),
        pools=parse_pools(dump, parse_rules(rules)),
        full_ratios=parse_full_ratios(dump),
        osd_use={} if use is None else parse_osd_df(osd_df),
        pool_use={} if use is None else parse_df(df),
        unread=unread,
    )
