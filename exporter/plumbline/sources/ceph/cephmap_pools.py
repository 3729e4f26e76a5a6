"""The cluster's pools: their number of copies, their failure domain in CRUSH, and how full they are.

    ceph osd dump -f json             {"full_ratio": 0.94999998807907104, …, "erasure_code_profiles": {"two-one": {"k": "2", …}},
                                       "pools": [{"pool": 4, "pool_name": "archive", "type": 3, "size": 3, "min_size": 2,
                                                  "crush_rule": 3, "erasure_code_profile": "two-one", …}], …}
    ceph osd crush rule dump -f json  [{"rule_id": 1, "steps": [{"op": "take", "item": -2, "item_name": "default~hdd"},
                                        {"op": "chooseleaf_firstn", "num": 0, "type": "host"}, {"op": "emit"}], …}]
    ceph df -f json                   {"pools": [{"name": "archive", "id": 4, "stats": {"stored": 47783936, "max_avail": 7115671040, …}}], …}

https://docs.ceph.com/en/latest/rados/operations/crush-map-edits/#crush-map-rules
https://docs.ceph.com/en/latest/rados/operations/erasure-code-profile/
"""  # noqa: E501  (verbatim)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plumbline.errors import ParseError

REPLICATED, ERASURE = "replicated", "erasure"
MIXED = "mixed"
"""The device class of a rule that takes several, as in :mod:`plumbline.probes.ceph.pool_class_task`."""

_KINDS = {1: REPLICATED, 3: ERASURE}
_LIMITS = {"nearfull": "nearfull_ratio", "backfillfull": "backfillfull_ratio", "full": "full_ratio"}
# Ceph stores ratios in 32 bits and prints 64: 0.95 is printed as 0.94999998807907104
_RATIO_DIGITS = 6
_WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Rule:
    """Where a CRUSH rule places copies; a field is empty when no single value describes it."""

    root: str
    """The bucket it takes."""
    device_class: str
    """Empty: any class; :data:`MIXED`: the rule takes several classes in turn."""
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
    kind: str
    """``replicated`` or ``erasure``; empty: a type unknown to Ceph 20."""
    rule: Rule
    copies: int
    """``size``: number of replicas, or of all chunks."""
    min_copies: int
    """``min_size``: with fewer copies, nothing is read or written."""
    raw_ratio: float | None
    """Raw bytes per byte stored."""


@dataclass(frozen=True, slots=True)
class PoolUse:
    """How full a pool is, before replication."""

    stored_bytes: int
    max_avail_bytes: int
    """Bytes that can be stored until the first OSD is full, as computed by Ceph."""


def parse_rules(answer: Any) -> Mapping[int, Rule]:
    """Parse the decoded ``osd crush rule dump``, by rule number; :class:`ParseError` when malformed."""
    try:
        return {int(rule["rule_id"]): _rule(rule["steps"]) for rule in answer}
    except _WRONG as error:
        raise _not_as_expected("osd crush rule dump", error) from None


def parse_pools(answer: Any, rules: Mapping[int, Rule]) -> tuple[Pool, ...]:
    """Parse the pools of the decoded ``osd dump``, in its order; :class:`ParseError` when malformed."""
    try:
        profiles = answer.get("erasure_code_profiles", {})
        return tuple(_pool(each, rules, profiles) for each in answer["pools"])
    except _WRONG as error:
        raise _not_as_expected("osd dump", error) from None


def parse_full_ratios(answer: Any) -> Mapping[str, float]:
    """Limit (``nearfull``, ``backfillfull``, ``full``) → ratio of the decoded ``osd dump``; else ``ParseError``."""
    try:
        return {limit: _ratio(answer[key]) for limit, key in _LIMITS.items()}
    except _WRONG as error:
        raise _not_as_expected("osd dump", error) from None


def parse_df(answer: Any) -> Mapping[int, PoolUse]:
    """Parse the decoded ``df``, by pool number; :class:`ParseError` when malformed."""
    try:
        return {
            int(each["id"]): PoolUse(int(each["stats"]["stored"]), int(each["stats"]["max_avail"]))
            for each in answer["pools"]
        }
    except _WRONG as error:
        raise _not_as_expected("df", error) from None


def _rule(steps: Any) -> Rule:
    taken = [str(step["item_name"]).partition("~")[::2] for step in steps if step["op"] == "take"]
    chosen = [str(step["type"]) for step in steps if str(step["op"]).startswith("choose")]
    roots, classes = {root for root, _ in taken}, {device_class for _, device_class in taken}
    return Rule(
        root=roots.pop() if len(roots) == 1 else "",
        device_class=classes.pop() if len(classes) == 1 else MIXED if classes else "",
        failure_domain=chosen[-1] if chosen and len(taken) == 1 else "",
    )


def _pool(facts: Mapping[str, Any], rules: Mapping[int, Rule], profiles: Mapping[str, Any]) -> Pool:
    kind, size = _KINDS.get(int(facts["type"]), ""), int(facts["size"])
    data_chunks = profiles.get(facts["erasure_code_profile"], {}).get("k") if kind == ERASURE else None
    stored_copies = 1 if kind == REPLICATED else None if data_chunks is None else int(data_chunks)
    return Pool(
        pool_id=int(facts["pool"]),
        name=str(facts["pool_name"]),
        kind=kind,
        rule=rules.get(int(facts["crush_rule"]), NO_RULE),
        copies=size,
        min_copies=int(facts["min_size"]),
        # not (k + m) / k: the plugins lrc and shec have more chunks than that, and the size counts all of them
        raw_ratio=None if stored_copies is None else size / stored_copies,
    )


def _ratio(value: Any) -> float:
    number = round(float(value), _RATIO_DIGITS)
    if not 0 <= number <= 1:
        raise ValueError(f"{number} is no ratio")
    return number


def _not_as_expected(command: str, error: Exception) -> ParseError:
    return ParseError(f"ceph {command}", f"not as Ceph 16 to 20 say it: {type(error).__name__}: {error}")
