"""Which rules look at one node at a time, so that a shard which has the node can evaluate them as well as anybody.

Such a rule reads only what nodes' daemons export, or what other such rules record, and keeps ``instance`` in every
aggregation and every match. All others compare nodes, or join them with Ceph's metrics, which another shard may have:
evaluated in a shard they would judge a part as if it were the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from plumbline.collectors.registry import every_spec
from plumbline.metrics.spec import Kind

from . import metrics, promql
from .promql import Aggregate, Binary, Call, Literal, Node, Selector, Subquery
from .rulefiles import name_of

_OF_A_SCRAPE = frozenset({"up", "scrape_duration_seconds", "scrape_samples_scraped", "process_max_fds"})
_WITHOUT_SERIES = frozenset({"time", "vector", "pi"})


def of_nodes() -> frozenset[str]:
    """Every metric of a daemon's page, and what a scrape adds."""
    found = set(_OF_A_SCRAPE) | set(metrics.PROCESS)
    for spec in every_spec():
        found |= (
            {spec.name + suffix for suffix in ("_bucket", "_sum", "_count")}
            if spec.kind is Kind.HISTOGRAM
            else {spec.name}
        )
    return frozenset(found)


def local_rules(rules: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Names of the rules that look at one node at a time; of a name that several rules have, all do."""
    trees = [(name_of(dict(rule)), promql.parse(rule["expr"])) for rule in rules]
    nodes = of_nodes()
    found = {name for name, _ in trees}
    while True:  # ever fewer, so this ends
        no_more = {name for name, tree in trees if name in found and not _local(tree, nodes | found)}
        if not no_more:
            return frozenset(found)
        found -= no_more


def _local(node: Node, known: Collection[str]) -> bool:
    inside = all(_local(child, known) for child in promql.children(node))
    match node:
        case Selector():
            return node.metric in known
        case Aggregate():
            return inside and ("instance" in (node.by or ()) or "instance" not in (node.without or ("instance",)))
        case Binary():
            return inside and (_is_number(node.left) or _is_number(node.right) or _matches_nodes(node))
        case Call():
            names_a_node = any(isinstance(each, Literal) and each.text == "instance" for each in node.arguments[1:2])
            return inside and node.function not in {"absent", "absent_over_time", "scalar"} and not names_a_node
        case Subquery() | Literal():
            return inside


def _matches_nodes(node: Binary) -> bool:
    if node.on is not None:
        return "instance" in node.on
    return "instance" not in (node.ignoring or ())


def _is_number(node: Node) -> bool:
    match node:
        case Literal():
            return True
        case Call():
            return node.function in _WITHOUT_SERIES
        case Binary():
            return _is_number(node.left) and _is_number(node.right)
        case _:
            return False
