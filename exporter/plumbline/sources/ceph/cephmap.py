"""The cluster map as one reading: OSDs and their places in CRUSH, pools and their rules, limits, and usage.

    ceph osd tree -f json             {"nodes": [{"id": -13, "name": "store-1", "type": "host", "children": [0]},
                                                 {"id": 0, "device_class": "hdd", "name": "osd.0", "type": "osd",
                                                  "crush_weight": 0.0038909912109375, "status": "up", "reweight": 1, …}],
                                       "stray": […]}
    ceph osd df -f json               {"nodes": [{"id": 0, "name": "osd.0", "kb": 4194304, "kb_used": 529308, …}], "stray": […]}
    ceph osd dump -f json             {"full_ratio": 0.94999998807907104, …, "require_osd_release": "tentacle",
                                       "erasure_code_profiles": {"two-one": {"k": "2", "plugin": "isa", …}},
                                       "pools": [{"pool": 4, "pool_name": "archive", "type": 3, "size": 3, "min_size": 2,
                                                  "crush_rule": 3, "erasure_code_profile": "two-one",
                                                  "stripe_width": 8192, "fast_read": false, …}],
                                       "osds": [{"osd": 0, "up": 1, "cluster_addrs": {"addrvec": [
                                                  {"type": "v2", "addr": "127.0.0.1:6802", "nonce": 1836220246}, …]}, …}], …}
    ceph osd crush rule dump -f json  [{"rule_id": 1, "steps": [{"op": "take", "item": -2, "item_name": "default~hdd"},
                                        {"op": "chooseleaf_firstn", "num": 0, "type": "host"}, {"op": "emit"}], …}]
    ceph mon dump -f json             {"epoch": 1, "mons": [{"rank": 0, "name": "a", …}, …], "quorum": [0, 1, 2], …}
    ceph df -f json                   {"pools": [{"name": "archive", "id": 4, "stats": {"stored": 47783936, "max_avail": 7115671040, …}}], …}
    ceph osd pool availability-status [{"pool": "p", "uptime": 79, "downtime": 24, "mtbf": 79, "mttr": 24, "num_failures": 1,
        -f json                         "score": 0.76699029126213591, "available": true}, …]

From Ceph 20 on, a read of an erasure-coded pool asks only the OSDs whose part of the object it wants (partial reads,
``osd_ec_partial_reads``), with these plugins and unless the pool has ``fast_read``. Measured on 20.2.4 with k=2: a read of
4 KiB is one read of a store, with and without the pool's flag ``ec_optimizations``. The direct reads of later releases
(flag ``split_reads``) leave out the primary OSD's messages, not a read.

Availability is there from Ceph 20 on, where ``enable_availability_tracking`` is set (off in 20.2.4). A pool is unavailable
while one of its placement groups is not active; seconds count from the moment of setting it, or of
``ceph osd pool clear-availability-status``. ``mtbf`` is ``uptime`` ÷ ``num_failures``, ``mttr`` ``downtime`` ÷ ``num_failures``,
``score`` the share of ``uptime``. Measured on 20.2.4: of two outages of half a minute it counted one.

An OSD that is out keeps its place, but ``osd df`` reports its sizes as 0. An OSD that is not in CRUSH is "stray".
https://docs.ceph.com/en/latest/rados/operations/crush-map/
https://docs.ceph.com/en/latest/rados/operations/crush-map-edits/#crush-map-rules
https://docs.ceph.com/en/latest/rados/operations/erasure-code-profile/
https://docs.ceph.com/en/latest/dev/osd_internals/erasure_coding/direct_reads/
https://docs.ceph.com/en/latest/rados/operations/monitoring/
"""  # noqa: E501  (verbatim)

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plumbline.core.foreign import shaped
from plumbline.errors import ParseError

ADDRESSES = ("cluster_addrs", "heartbeat_back_addrs", "heartbeat_front_addrs")
"""Where other OSDs connect to an OSD, as ``osd dump`` calls it."""
REPLICATED, ERASURE = "replicated", "erasure"
MIXED = "mixed"  # the device class of a rule that takes several, as in :mod:`plumbline.probes.ceph.pool_class_task`

MAX_PGS = 250
"""Ceph's default mon_max_pg_per_osd. Neither the map nor an exporter tells the value in force."""

_KINDS = {1: REPLICATED, 3: ERASURE}
_LIMITS = {"nearfull": "nearfull_ratio", "backfillfull": "backfillfull_ratio", "full": "full_ratio"}
_PARTIAL_READS_SINCE = "tentacle"  # Ceph 20; releases are named in the order of the alphabet
_PARTIAL_READ_PLUGINS = frozenset({"isa", "jerasure"})
# Ceph stores ratios in 32 bits and prints 64: 0.95 is printed as 0.94999998807907104
_RATIO_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Place:
    """An OSD's place in CRUSH; a field is empty when no bucket of that type is above it."""

    device_class: str
    root: str
    rack: str
    host: str  # the CRUSH bucket, whose name the map's author chose freely
    weight: float  # CRUSH weight, usually TiB; 0: no data is placed on it
    others: tuple[tuple[str, str], ...] = ()
    """Type and name of the buckets above it that are none of these: chassis, row, pdu, pod, room, datacenter, zone,
    region, or what the map's author added."""


@dataclass(frozen=True, slots=True)
class OsdInMap:
    """One OSD of the map."""

    daemon: str  # ``osd.3``
    reweight_ratio: float  # 0: out, 1: gets the full share of its CRUSH weight
    place: Place | None  # ``None``: it is not in CRUSH
    up: bool


@dataclass(frozen=True, slots=True)
class OsdUse:
    """An OSD's usage, as reported to the manager."""

    size_kib: int
    used_kib: int  # including metadata


@dataclass(frozen=True, slots=True)
class Rule:
    """Where a CRUSH rule places copies; a field is empty when no single value describes it."""

    root: str  # the bucket it takes
    device_class: str  # empty: any class; :data:`MIXED`: the rule takes several classes in turn
    failure_domain: str
    """Type of bucket that never holds two copies. With several steps it is the last step's: ``choose 3 host, choose 2
    osd`` puts two copies on a host. Empty for a rule with several takes: the buckets of one take may contain hosts of
    another."""


NO_RULE = Rule("", "", "")


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool."""

    pool_id: int
    name: str
    kind: str  # ``replicated`` or ``erasure``; empty: a type unknown to Ceph 20
    rule: Rule
    copies: int  # ``size``: number of replicas, or of all chunks
    min_copies: int  # ``min_size``: with fewer copies, nothing is read or written
    raw_ratio: float | None  # raw bytes per byte stored
    read_unit_bytes: int | None = None
    """Erasure coding: consecutive bytes of an object on one OSD, where a read asks only the OSDs that hold what it
    wants. ``None``: one copy is read, or a read asks all OSDs that hold data."""
    pgs: int = 0  # placement groups
    autoscaled: bool = False  # the manager sets their number


@dataclass(frozen=True, slots=True)
class PoolUse:
    """How full a pool is, before replication."""

    stored_bytes: int
    max_avail_bytes: int  # bytes that can be stored until the first OSD is full, as computed by Ceph


@dataclass(frozen=True, slots=True)
class PoolAvailability:
    """Since the monitors track it."""

    available: bool
    up_s: float
    down_s: float
    failures: int


@dataclass(frozen=True, slots=True)
class CephMap:
    """The cluster at one moment."""

    read_ts: float  # Unix time in seconds
    osds: tuple[OsdInMap, ...]
    pools: tuple[Pool, ...]
    full_ratios: Mapping[str, float]  # limit → ratio
    osd_use: Mapping[str, OsdUse] = field(default_factory=dict)  # OSD → its usage
    pool_use: Mapping[int, PoolUse] = field(default_factory=dict)  # pool number → its usage
    osd_addresses: Mapping[str, int] = field(default_factory=dict)
    """``10.0.0.3:6810`` → number of the OSD that listens there for other OSDs."""
    pool_availability: Mapping[str, PoolAvailability] = field(default_factory=dict)  # pool name → its availability
    monitors: int | None = None  # in the monitors' map, whether they run or not
    unread: str = ""
    """Why the map is incomplete: no manager answered, so the usage of OSDs and pools is unknown; or the manager
    has just started and has no data yet from OSDs that are up and in."""


def parse_cephmap(answers: Any, *, read_ts: float) -> CephMap:
    """Parse the result of :func:`plumbline.probes.ceph.ceph_task.ask_map`; :class:`ParseError` when malformed."""
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
        osd_addresses=parse_osd_addresses(dump),
        pool_availability=parse_availability(answers.get("availability")),
        monitors=parse_monitors(answers.get("mon dump")),
        unread=unread if use is None else _unreported(osds, osd_use),
    )


def _unreported(osds: Iterable[OsdInMap], use: Mapping[str, OsdUse]) -> str:
    """A manager that has just taken over answers with 0 KiB for OSDs that have not reported to it yet."""
    missing = [osd.daemon for osd in osds if osd.up and osd.reweight_ratio > 0 and osd.daemon not in use]
    more = f" and {len(missing) - 1} more" if missing[1:] else ""
    return f"the manager has no report yet from {missing[0]}{more}" if missing else ""


def parsing(command: str) -> shaped:
    """Turns what goes wrong in reading an answer of another form into a :class:`ParseError`."""
    return shaped(f"ceph {command}", "not in the format of Ceph 16 to 20")


def parse_osd_tree(answer: Any) -> tuple[OsdInMap, ...]:
    """Parse the decoded ``osd tree``, in order of OSD numbers; :class:`ParseError` when malformed.

    For an OSD in several places, the first place counts.
    """
    with parsing("osd tree"):
        nodes: dict[int, Any] = {}
        above: dict[int, int] = {}
        for node in answer["nodes"]:
            nodes.setdefault(int(node["id"]), node)
            for child in node.get("children", ()):
                above.setdefault(int(child), int(node["id"]))
        osds = {
            number: _osd(node, _place(node, _ancestors(number, above, nodes)))
            for number, node in nodes.items()
            if node["type"] == "osd"
        }
        for node in answer.get("stray", ()):
            osds.setdefault(int(node["id"]), _osd(node, None))
    return tuple(osds[number] for number in sorted(osds))


def parse_osd_df(answer: Any) -> Mapping[str, OsdUse]:
    """Parse the decoded ``osd df``: OSD → its usage, if it has reported any; :class:`ParseError` when malformed."""
    with parsing("osd df"):
        nodes = [*answer["nodes"], *answer.get("stray", ())]
        uses = {str(node["name"]): OsdUse(int(node["kb"]), int(node["kb_used"])) for node in nodes}
    return {daemon: use for daemon, use in uses.items() if use.size_kib > 0}


def parse_rules(answer: Any) -> Mapping[int, Rule]:
    """Parse the decoded ``osd crush rule dump``, by rule number; :class:`ParseError` when malformed."""
    with parsing("osd crush rule dump"):
        return {int(rule["rule_id"]): _rule(rule["steps"]) for rule in answer}


def parse_pools(answer: Any, rules: Mapping[int, Rule]) -> tuple[Pool, ...]:
    """Parse the pools of the decoded ``osd dump``, in its order; :class:`ParseError` when malformed."""
    with parsing("osd dump"):
        profiles = answer.get("erasure_code_profiles", {})
        partial_reads = str(answer.get("require_osd_release", "")) >= _PARTIAL_READS_SINCE
        return tuple(_pool(pool, rules, profiles, partial_reads) for pool in answer["pools"])


def parse_full_ratios(answer: Any) -> Mapping[str, float]:
    """Limit (``nearfull``, ``backfillfull``, ``full``) → ratio of the decoded ``osd dump``; else ``ParseError``."""
    with parsing("osd dump"):
        return {limit: _ratio(answer[key]) for limit, key in _LIMITS.items()}


def parse_osd_addresses(answer: Any) -> Mapping[str, int]:
    """Parse the addresses of the decoded ``osd dump``; :class:`ParseError` when malformed. The map keeps those of an
    OSD that is down, where another of its host may listen by now."""
    with parsing("osd dump"):
        return {
            str(address["addr"]): int(osd["osd"])
            for osd in answer.get("osds", ())
            if osd.get("up", 1)
            for name in ADDRESSES
            for address in osd.get(name, {}).get("addrvec", ())
        }


def parse_monitors(answer: Any) -> int | None:
    """The number of monitors in the decoded ``mon dump``; ``None`` when it was not asked for. Else ``ParseError``."""
    with parsing("mon dump"):
        return None if answer is None else len(answer["mons"])


def parse_df(answer: Any) -> Mapping[int, PoolUse]:
    """Parse the decoded ``df``, by pool number; :class:`ParseError` when malformed."""
    with parsing("df"):
        pools = [(int(pool["id"]), pool["stats"]) for pool in answer["pools"]]
        return {number: PoolUse(int(stats["stored"]), int(stats["max_avail"])) for number, stats in pools}


def parse_availability(answer: Any) -> Mapping[str, PoolAvailability]:
    """Parse the decoded ``osd pool availability-status``, by pool name; ``None``: not tracked. Else ``ParseError``."""
    with parsing("osd pool availability-status"):
        return {str(pool["pool"]): _availability(pool) for pool in answer or ()}


def _availability(pool: Mapping[str, Any]) -> PoolAvailability:
    up_s, down_s, failures = _finite(pool["uptime"]), _finite(pool["downtime"]), int(pool["num_failures"])
    if min(up_s, down_s, failures) < 0:
        raise ValueError(f"a negative time or count for pool {pool['pool']}")
    return PoolAvailability(bool(pool["available"]), up_s, down_s, failures)


def _osd(node: Mapping[str, Any], place: Place | None) -> OsdInMap:
    return OsdInMap(str(node["name"]), _finite(node["reweight"]), place, node["status"] == "up")


def _place(node: Mapping[str, Any], ancestors: Mapping[str, str]) -> Place:
    root, rack, host = (ancestors.get(kind, "") for kind in ("root", "rack", "host"))
    others = tuple(sorted((kind, name) for kind, name in ancestors.items() if kind not in ("root", "rack", "host")))
    return Place(str(node.get("device_class", "")), root, rack, host, _finite(node["crush_weight"]), others)


def _ancestors(number: int, above: Mapping[int, int], nodes: Mapping[int, Any]) -> Mapping[str, str]:
    """Bucket type → name of the nearest bucket of that type."""
    ancestors: dict[str, str] = {}
    seen = {number}
    while (parent := above.get(number)) is not None and parent not in seen:  # a malformed tree may contain a cycle
        ancestors.setdefault(str(nodes[parent]["type"]), str(nodes[parent]["name"]))
        seen.add(parent)
        number = parent
    return ancestors


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no weight or time")
    return number


def _rule(steps: Any) -> Rule:
    taken = [str(step["item_name"]).partition("~")[::2] for step in steps if step["op"] == "take"]
    chosen = [str(step["type"]) for step in steps if str(step["op"]).startswith("choose")]
    roots, classes = {root for root, _ in taken}, {device_class for _, device_class in taken}
    return Rule(
        root=roots.pop() if len(roots) == 1 else "",
        device_class=classes.pop() if len(classes) == 1 else MIXED if classes else "",
        failure_domain=chosen[-1] if chosen and len(taken) == 1 else "",
    )


def _pool(
    facts: Mapping[str, Any], rules: Mapping[int, Rule], profiles: Mapping[str, Any], partial_reads: bool
) -> Pool:
    kind, size = _KINDS.get(int(facts["type"]), ""), int(facts["size"])
    profile = profiles.get(facts["erasure_code_profile"], {}) if kind == ERASURE else {}
    data_chunks = int(profile["k"]) if "k" in profile else None
    stored_copies = 1 if kind == REPLICATED else data_chunks
    partial_reads = partial_reads and profile.get("plugin") in _PARTIAL_READ_PLUGINS and not facts["fast_read"]
    return Pool(
        pool_id=int(facts["pool"]),
        name=str(facts["pool_name"]),
        kind=kind,
        rule=rules.get(int(facts["crush_rule"]), NO_RULE),
        copies=size,
        min_copies=int(facts["min_size"]),
        # not (k + m) / k: the plugins lrc and shec have more chunks than that, and the size counts all of them
        raw_ratio=None if stored_copies is None else size / stored_copies,
        read_unit_bytes=int(facts["stripe_width"]) // data_chunks if partial_reads and data_chunks else None,
        pgs=int(facts.get("pg_num", 0)),
        autoscaled=facts.get("pg_autoscale_mode") == "on",
    )


def _ratio(value: Any) -> float:
    number = round(float(value), _RATIO_DIGITS)
    if not 0 <= number <= 1:
        raise ValueError(f"{number} is no ratio")
    return number
