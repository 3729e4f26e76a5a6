"""The cluster map as one reading: OSDs and their places, pools and their rules, limits, and usage.

:mod:`.cephmap_osds` and :mod:`.cephmap_pools` parse the parts; :mod:`plumbline.background.ceph_map` asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plumbline.errors import ParseError
from plumbline.sources.ceph.cephmap_osds import OsdInMap, OsdUse, parse_osd_df, parse_osd_tree
from plumbline.sources.ceph.cephmap_pools import Pool, PoolUse, parse_df, parse_full_ratios, parse_pools, parse_rules


@dataclass(frozen=True, slots=True)
class CephMap:
    """The cluster at one moment."""

    read_ts: float
    """Unix time in seconds."""
    osds: tuple[OsdInMap, ...]
    pools: tuple[Pool, ...]
    full_ratios: Mapping[str, float]
    """Limit → ratio."""
    osd_use: Mapping[str, OsdUse] = field(default_factory=dict)
    """OSD → its usage."""
    pool_use: Mapping[int, PoolUse] = field(default_factory=dict)
    """Pool number → its usage."""
    unread: str = ""
    """Why the map is incomplete: no manager answered, so the usage of OSDs and pools is unknown; or the manager
    has just started and has no data yet from OSDs that are up and in."""


def parse_cephmap(answers: Any, *, read_ts: float) -> CephMap:
    """Parse the result of :func:`plumbline.probes.ceph.cluster_map.ask_map`; :class:`ParseError` when malformed."""
    try:
        tree, dump, rules = answers["osd tree"], answers["osd dump"], answers["osd crush rule dump"]
        use, unread = answers["use"], str(answers["unread"])
        osd_df, df = (None, None) if use is None else (use["osd df"], use["df"])
    except (KeyError, TypeError) as error:
        raise ParseError("the cluster map", f"an answer is missing: {error}") from None
    osds, osd_use = parse_osd_tree(tree), {} if use is None else parse_osd_df(osd_df)
    return CephMap(
        read_ts=read_ts,
        osds=osds,
        pools=parse_pools(dump, parse_rules(rules)),
        full_ratios=parse_full_ratios(dump),
        osd_use=osd_use,
        pool_use={} if use is None else parse_df(df),
        unread=unread if use is None else _silent(osds, osd_use),
    )


def _silent(osds: Iterable[OsdInMap], use: Mapping[str, OsdUse]) -> str:
    """A manager that has just taken over answers with 0 KiB for OSDs that have not reported to it yet."""
    silent = [osd.daemon for osd in osds if osd.up and osd.reweight_ratio > 0 and osd.daemon not in use]
    more = f" and {len(silent) - 1} more" if silent[1:] else ""
    return f"the manager has not heard yet from {silent[0]}{more}" if silent else ""
