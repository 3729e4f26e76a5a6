"""Which labels the result of a query can have, and which of the labels it names nothing can have.

*Can have* is an upper bound: every label that the exporters, the rules or a scrape may put on a series. What lies
beyond it is a mistake for certain: a misspelt label in ``by (…)``, in a matcher, in a legend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from plumbline.collectors.registry import every_spec
from plumbline.metrics.spec import Kind

from . import ceph_pages, metrics, promql
from .promql import Aggregate, Binary, Call, Literal, Node, Selector, Subquery

TARGET = frozenset({"cluster", "instance", "job"})
"""What a scrape adds to every series."""
NONE: frozenset[str] = frozenset()
Labels = Mapping[str, frozenset[str]]
"""Metric → every label it may have."""

_KEEPS_LABELS = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
_KEEPS_NAMES = frozenset({"label_replace", "label_join", "sort", "sort_desc", "last_over_time"})
_WITHOUT_SERIES = frozenset({"time", "vector", "scalar", "pi"})


@cache
def known() -> Labels:
    """Our catalogue, what others export, our recording rules, and the alerts as Prometheus records them."""
    return of_rules(_exported(), committed_rules())


def of_rules(exported: Labels, rules: Iterable[Mapping[str, Any]]) -> Labels:
    """``exported`` and what the rules record from it, ``ALERTS`` too. Rules may read each other in any order."""
    trees = [(rule, promql.parse(rule["expr"])) for rule in rules]
    found = dict(exported)
    found.setdefault("ALERTS", NONE)
    grown = True
    while grown:  # labels only ever get more, so this ends
        grown = False
        for rule, tree in trees:
            name = rule.get("record", "ALERTS")
            own = frozenset(rule.get("labels", {})) | ({"alertname", "alertstate"} if "alert" in rule else NONE)
            now = found.get(name, NONE) | of(tree, found) | own
            if now != found.get(name):
                found[name], grown = now, True
    return found | {"ALERTS_FOR_STATE": found["ALERTS"] - {"alertstate"}}


def of(node: Node, known: Labels) -> frozenset[str]:
    """Every label that the result may have; none of an unknown metric."""
    match node:
        case Selector():
            return known.get(node.metric, NONE) - {each.label for each in node.matchers if _says_empty(each)}
        case Aggregate():
            return _of_aggregate(node, known)
        case Binary():
            return _of_binary(node, known)
        case Subquery():
            return of(node.argument, known)
        case Call():
            return _of_call(node, known)
        case Literal():
            return NONE


def keeps_name(node: Node) -> bool:
    """Whether the result still says which metric it is: a table then has a column ``__name__``."""
    match node:
        case Selector():
            return True
        case Aggregate():
            return node.operator in _KEEPS_LABELS and keeps_name(node.argument)
        case Binary():
            if node.operator == "or":
                return keeps_name(node.left) or keeps_name(node.right)
            filters = node.operator in promql.SETS | promql.COMPARISONS and not node.as_number
            return filters and keeps_name(node.right if _is_number(node.left) else node.left)
        case Call():
            return node.function in _KEEPS_NAMES and keeps_name(node.arguments[0])
        case _:
            return False


def faults(node: Node, known: Labels) -> Iterator[str]:
    """Each name in the query that nothing has."""
    for each, _ in promql.walk(node):
        match each:
            case Selector():
                yield from _selector_faults(each, known)
            case Aggregate(by=by, without=without):
                has = of(each.argument, known)
                for word, labels in (("by", by), ("without", without)):
                    yield from (f"{each.operator} {word} {one}: not there" for one in labels or () if one not in has)
            case Binary():
                yield from _binary_faults(each, known)
            case Call(function="label_replace" | "label_join") if len(each.arguments) > 3:
                has = of(each.arguments[0], known)
                last = each.arguments[3:4] if each.function == "label_replace" else each.arguments[3:]
                read = [one.text for one in last if isinstance(one, Literal) and one.text]
                yield from (f"{each.function} from {label}: not there" for label in read if label not in has)


def _selector_faults(node: Selector, known: Labels) -> Iterator[str]:
    if node.metric not in known:
        yield f"{node.metric or 'a selector without a metric'}: no such metric"
        return
    for matcher in node.matchers:
        if matcher.label not in known[node.metric] and not _takes_empty(matcher):
            yield f"{node.metric} has no label {matcher.label}"


def _binary_faults(node: Binary, known: Labels) -> Iterator[str]:
    if _is_number(node.left) or _is_number(node.right):
        return
    left, right = of(node.left, known), of(node.right, known)
    for label in (*(node.on or ()), *(node.ignoring or ())):
        if label not in left | right or (node.on is not None and (label not in left or label not in right)):
            yield f"{node.operator} on|ignoring {label}: not there on both sides"
    one = right if node.group == "left" else left
    yield from (f"group_{node.group} ({label}): not there" for label in node.include if label not in one)


def _of_aggregate(node: Aggregate, known: Labels) -> frozenset[str]:
    has = of(node.argument, known)
    if node.operator in _KEEPS_LABELS:
        return has
    kept = has & set(node.by or ()) if node.without is None else has - set(node.without)
    made = node.parameter if node.operator == "count_values" else None
    return kept | {made.text} if isinstance(made, Literal) else kept


def _of_binary(node: Binary, known: Labels) -> frozenset[str]:
    left, right = of(node.left, known), of(node.right, known)
    if node.operator == "or":
        return left | right
    if node.operator in {"and", "unless"} or _is_number(node.right):
        return left
    if _is_number(node.left):
        return right
    if node.group:
        return (left if node.group == "left" else right) | set(node.include)
    if node.on is not None:
        return left & right & set(node.on)
    # one meets one: where a label can't be on one side it must be empty on the other
    return (left & right) - set(node.ignoring or ())


def _of_call(node: Call, known: Labels) -> frozenset[str]:
    if node.function in _WITHOUT_SERIES or not node.arguments:
        return NONE
    if node.function in {"absent", "absent_over_time"}:
        inside = node.arguments[0]
        equal = inside.matchers if isinstance(inside, Selector) else ()
        return frozenset(each.label for each in equal if each.op == "=")
    has = frozenset[str]().union(*(of(each, known) for each in node.arguments))
    if node.function == "histogram_quantile":
        return has - {"le"}
    if node.function in {"label_replace", "label_join"} and isinstance(made := node.arguments[1], Literal):
        return has | {made.text}
    return has


def _is_number(node: Node) -> bool:
    """Without series on that side: ``3 * time()``, ``scalar(…)``."""
    match node:
        case Literal():
            return True
        case Call():
            return node.function in {"time", "scalar", "pi"}
        case Binary():
            return _is_number(node.left) and _is_number(node.right)
        case _:
            return False


def _says_empty(matcher: promql.Matcher) -> bool:
    return matcher.op in {"=", "=~"} and matcher.value == ""


def _takes_empty(matcher: promql.Matcher) -> bool:
    """It is no mistake to ask that a label be missing."""
    return _says_empty(matcher) or (matcher.op == "=~" and matcher.value == ".*")


def _exported() -> dict[str, frozenset[str]]:
    found = dict.fromkeys(metrics.PROCESS, TARGET)
    for spec in every_spec():
        own = TARGET | set(spec.labels)
        if spec.kind is Kind.HISTOGRAM:
            found |= {spec.name + "_bucket": own | {"le"}, spec.name + "_sum": own, spec.name + "_count": own}
            found[spec.name] = own  # as a native one
        else:
            found[spec.name] = own
    for name, labels in metrics.FOREIGN.items():
        if name not in {"ALERTS", *metrics.LAYER}:  # those come from the rules
            found[name] = TARGET | (labels or NONE)
    found |= {name: TARGET | labels for name, labels in metrics.OF_PROMETHEUS.items()}
    for name, labels in _captured().items():
        renamed = {"exported_instance"} if "instance" in labels else NONE
        found[name] = found.get(name, TARGET) | labels | renamed
    return found


def _captured() -> dict[str, frozenset[str]]:
    """What Ceph's own exporters served, on every page of a real cluster."""
    found: dict[str, frozenset[str]] = {}
    for page in ceph_pages.every_captured().values():
        for name, labels in page:
            found[name] = found.get(name, NONE) | {label for label, _ in labels}
    return found


def committed_rules() -> list[dict[str, Any]]:
    """Every rendered rule, recording and alerting."""
    files = sorted((metrics.ROOT / "alerts" / "out").glob("*.yaml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text("utf-8")).get("groups", [])]
    return [rule for group in groups for rule in group["rules"]]
