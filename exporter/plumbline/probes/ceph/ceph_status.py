"""Whether the cluster is fit for a probe: ``ceph status`` as gates, each open, or closed with the reason.

https://docs.ceph.com/en/latest/rados/operations/health-checks/ (the checks)
https://docs.ceph.com/en/latest/rados/operations/pg-states/ (the states)

Muted checks do not count as bad health: an operator has seen and accepted them. They do count where they report a
state: full OSDs are full and flags are set, muted or not. Recovery figures are rates and ratios that are not
consistent with each other (``degraded_ratio`` was seen above 1), so only states and counts of objects are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plumbline.core.foreign import shaped

if TYPE_CHECKING:  # a worker imports this
    from plumbline.config.model import GatesConfig

HEALTH, RECOVERY, FULL, MAINTENANCE = "health", "recovery", "full", "maintenance"
GATES = (MAINTENANCE, FULL, RECOVERY, HEALTH)
"""Reasons to refuse; the first closed one is reported, as the closest to a cause."""

_SEVERITY = {"HEALTH_OK": 0, "HEALTH_WARN": 1, "HEALTH_ERR": 2}
_WORST = {"ok": 0, "warn": 1, "any": 2}
# set for weeks on many clusters; none of them moves data or takes an OSD out of service
_HARMLESS_FLAGS = frozenset({"noscrub", "nodeep-scrub", "notieragent", "nosnaptrim"})
_BY_FLAGS = frozenset({"OSDMAP_FLAGS", "OSD_FLAGS"})
_FULL = ("OSD_FULL", "OSD_BACKFILLFULL", "OSD_NEARFULL")
# these matter only for our pools: full by quota, or by the OSDs below
_OF_POOLS = frozenset({"POOL_FULL", "POOL_NEAR_FULL", "POOL_NEARFULL", "POOL_BACKFILLFULL"})
# advice on the layout of pools, ours among them; not a sign of trouble
_LAYOUT = frozenset({
    "MANY_OBJECTS_PER_PG", "POOL_APP_NOT_ENABLED", "POOL_NO_REDUNDANCY", "POOL_TOO_FEW_PGS", "POOL_TOO_MANY_PGS",
})  # fmt: skip
_MOVING = frozenset({
    "backfill_toofull", "backfill_wait", "backfilling", "degraded", "forced_backfill", "forced_recovery",
    "recovering", "recovery_toofull", "recovery_unfound", "recovery_wait", "remapped", "undersized",
})  # fmt: skip
_MOST_FLAGS = _MOST_CHECKS = 100  # series
_OF_HOSTS = {
    "OSD_FLAGS": re.compile(r"host (\S+) has flags (\S+)"),
    "HOST_IN_MAINTENANCE": re.compile(r"(\S+) is in (maintenance)"),
}
"""Checks whose detail names hosts: flags of ``ceph osd set-group`` and of CRUSH nodes, cephadm's maintenance mode."""
_FLAGS = re.compile(r"([a-z,_-]+) flag\(s\) set")


@dataclass(frozen=True, slots=True)
class Check:
    """One of Ceph's health checks that is raised."""

    name: str
    severity: int
    """1 warning, 2 error."""
    message: str
    muted: bool = False
    count: int = 1
    """Of what it is about: OSDs, placement groups, pools."""
    detail: tuple[str, ...] = ()
    """Its lines, if they were requested."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The part of the status that decides about probes."""

    checks: tuple[Check, ...] = ()
    pg_states: Mapping[str, int] | None = None
    """State (``active+clean``) → placement groups in it."""
    misplaced_objects: int = 0
    degraded_objects: int = 0


def wants_detail(status: Any) -> bool:
    """Whether ``health detail`` is needed to tell which pools are full, or which hosts are in maintenance."""
    health = status.get("health") if isinstance(status, dict) else None
    checks = health.get("checks") if isinstance(health, dict) else None
    return isinstance(checks, dict) and not checks.keys().isdisjoint({*_OF_POOLS, *_OF_HOSTS})


def parse_status(status: Any, detail: Any = None) -> ClusterStatus:
    """Parse decoded ``ceph status -f json``, and ``health detail`` if :func:`wants_detail`; Ceph 16 to 20.

    Raises :class:`ParseError` for anything else.
    """
    with shaped("ceph status"):
        health, pgs = status["health"], status["pgmap"]
        raised = dict(health.get("checks", {}))
        lines = dict(detail["checks"]) if detail is not None else {}
        checks = tuple(_check(name, raised[name], lines.get(name)) for name in sorted(raised))
        states = {str(state["state_name"]): int(state["count"]) for state in pgs.get("pgs_by_state", ())}
        return ClusterStatus(checks, states, int(pgs.get("misplaced_objects", 0)), int(pgs.get("degraded_objects", 0)))


def closed(status: ClusterStatus, limits: GatesConfig, pools: tuple[str, ...] = ()) -> dict[str, str]:
    """Each closed gate → what closes it, in the order of :data:`GATES`. ``pools``: ours."""
    reasons = {
        MAINTENANCE: _maintenance(status.checks),
        FULL: _full(status.checks, pools),
        RECOVERY: "" if limits.recovery else _recovery(status),
        HEALTH: _health(status.checks, limits),
    }
    return {gate: reasons[gate] for gate in GATES if reasons[gate]}


def _check(name: str, raised: Mapping[str, Any], detail: Mapping[str, Any] | None) -> Check:
    lines = tuple(str(line["message"]) for line in detail.get("detail", ())) if detail is not None else ()
    severity = _SEVERITY.get(raised["severity"], _SEVERITY["HEALTH_ERR"])
    summary = raised["summary"]
    count = max(1, int(summary.get("count", 1)))
    return Check(name, severity, str(summary["message"]), bool(raised.get("muted", False)), count, lines)


def maintenance_flags(checks: Iterable[Check]) -> tuple[tuple[str, str], ...]:
    """Host and flag (``noout``, or cephadm's ``maintenance``); no host: a flag of the whole cluster. Sorted."""
    flags: set[tuple[str, str]] = set()
    for check in checks:
        if check.name == "OSDMAP_FLAGS" and (match := _FLAGS.search(check.message)):
            flags |= {("", flag) for flag in set(match[1].split(",")) - _HARMLESS_FLAGS}
        for line in check.detail if check.name in _OF_HOSTS else ():
            if match := _OF_HOSTS[check.name].search(line):
                flags |= {(match[1], flag) for flag in match[2].split(",")}
    return tuple(sorted(flags)[:_MOST_FLAGS])


def raised_checks(checks: Iterable[Check]) -> tuple[tuple[str, str, int], ...]:
    """Name, Ceph's word for the severity, and count of each check that nobody has muted."""
    words = {severity: word for word, severity in _SEVERITY.items()}
    raised = [(check.name, words[check.severity], check.count) for check in checks if not check.muted]
    return tuple(sorted(raised)[:_MOST_CHECKS])


def _maintenance(checks: Iterable[Check]) -> str:
    for check in (check for check in checks if check.name in _BY_FLAGS):
        match = _FLAGS.search(check.message)
        flags = set(match[1].split(",")) - _HARMLESS_FLAGS if match else set()
        if flags:
            return f"{', '.join(sorted(flags))} is set, which means maintenance"
        if not match:  # OSD_FLAGS: "1 OSDs or CRUSH {nodes, device-classes} have {NOUP,…} flags set"
            return f"{check.message}, which means maintenance"
    return ""


def _full(checks: Iterable[Check], pools: Iterable[str]) -> str:
    by_name = {check.name: check for check in checks}
    for name in _FULL:
        if name in by_name:
            return f"{name}: {by_name[name].message}"
    for name in sorted(_OF_POOLS & by_name.keys()):
        for line in by_name[name].detail:
            if any(f"'{pool}'" in line for pool in pools):
                return f"{name}: {line}"
    return ""


def _recovery(status: ClusterStatus) -> str:
    moving: dict[str, int] = {}
    for state, count in (status.pg_states or {}).items():
        for word in _MOVING & set(state.split("+")):
            moving[word] = moving.get(word, 0) + count
    words = [f"{count} PGs {word}" for word, count in sorted(moving.items())]
    if status.misplaced_objects:
        words.append(f"{status.misplaced_objects} objects misplaced")
    if status.degraded_objects and not moving:
        words.append(f"{status.degraded_objects} objects degraded")
    return ", ".join(words)


def _health(checks: Iterable[Check], limits: GatesConfig) -> str:
    ignored = _BY_FLAGS | _LAYOUT | frozenset(limits.ignored_checks)
    others = [check for check in checks if not check.muted and check.name not in ignored]
    return "; ".join(f"{check.name}: {check.message}" for check in others if check.severity > _WORST[limits.health])
