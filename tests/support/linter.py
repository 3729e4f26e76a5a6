"""What Grafana's dashboard-linter asks of a dashboard, over the rendered JSON.

Its rules by their names (https://github.com/grafana/dashboard-linter, docs/rules), for all types of panels we draw and
not only the ones it knows. Two are other than there: ``job`` means nothing to us (sites name their jobs as they like),
so ``cluster`` has its place; and ``instance`` is asked of pages about one host alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import promql
from .dashboards import Dashboard, Panel, data_panels, label_values, variables

UNITS = frozenset(
    {"none", "s", "bytes", "Bps", "bps", "pps", "iops", "ops", "percentunit", "short", "celsius", "dateTimeFromNow",
     "dateTimeAsIso", "hertz"}
)  # fmt: skip
"""Grafana's ids of base units: ours are the exporter's."""
_RATES = frozenset({"rate", "irate", "increase"})
PAGE = "the page"
"""Where a panel's title stands, for rules about the whole page."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a panel (or the page) breaks."""

    rule: str
    dashboard: str
    panel: str
    text: str


def lint(dashboard: Dashboard) -> Iterator[Breach]:
    """Every breach of every rule."""
    uid = dashboard["uid"]
    for rule, page_check in PAGE_RULES.items():
        yield from (Breach(rule, uid, PAGE, text) for text in page_check(dashboard))
    for panel in data_panels(dashboard):
        for rule, panel_check in PANEL_RULES.items():
            yield from (Breach(rule, uid, panel.get("title", ""), text) for text in panel_check(dashboard, panel))


def _template_datasource(dashboard: Dashboard) -> Iterator[str]:
    found = [each for each in variables(dashboard).values() if each["type"] == "datasource"]
    if [(each["name"], each["query"], each.get("label")) for each in found] != [
        ("datasource", "prometheus", "Data source")
    ]:
        yield "one variable of type datasource, named datasource, labelled “Data source”, for prometheus"


def _template_cluster(dashboard: Dashboard) -> Iterator[str]:
    found = variables(dashboard).get("cluster")
    if not found or found["type"] != "query" or not found["includeAll"] or found["allValue"] != ".*":
        yield "no variable cluster that asks the data source and may be all"


def _template_instance(dashboard: Dashboard) -> Iterator[str]:
    if "plumbline-l2" in dashboard["tags"] and "instance" not in variables(dashboard):
        yield "a page about one host without the variable instance"


def _template_label_promql(dashboard: Dashboard) -> Iterator[str]:
    for name, each in variables(dashboard).items():
        if each["type"] == "query":
            try:
                promql.parse(label_values(each["query"])[0])
            except ValueError as error:
                yield f"{name}: {error}"


def _template_on_time_change_reload(dashboard: Dashboard) -> Iterator[str]:
    for name, each in variables(dashboard).items():
        if each["type"] == "query" and each["refresh"] != 2:
            yield f"{name} isn't asked anew when the time range changes"


def _uneditable(dashboard: Dashboard) -> Iterator[str]:
    if dashboard.get("editable") is not False:
        yield "editable: false is missing"


def _panel_datasource(_: Dashboard, panel: Panel) -> Iterator[str]:
    for each in (panel, *panel.get("targets", [])):
        source = each.get("datasource")
        if not source or source.get("uid") not in {"${datasource}", "$datasource"}:
            yield f"the data source isn't the page's variable: {source}"


def _panel_title_description(_: Dashboard, panel: Panel) -> Iterator[str]:
    if not panel.get("title") or not panel.get("description"):
        yield "title or description is missing"


def _panel_units(_: Dashboard, panel: Panel) -> Iterator[str]:
    units = [panel["fieldConfig"]["defaults"].get("unit")]
    for override in panel["fieldConfig"].get("overrides", []):
        units += [each["value"] for each in override["properties"] if each["id"] == "unit"]
    yield from (f"unit {unit}" for unit in units if unit not in UNITS)


def _panel_no_targets(_: Dashboard, panel: Panel) -> Iterator[str]:
    if not panel.get("targets"):
        yield "no query"


def _target_promql(_: Dashboard, panel: Panel) -> Iterator[str]:
    for target in panel["targets"]:
        try:
            promql.parse(target["expr"])
        except ValueError as error:
            yield str(error)


def _target_rate_interval(_: Dashboard, panel: Panel) -> Iterator[str]:
    for node, above in _nodes(panel):
        window = getattr(node, "window", "")
        call = above[-1] if above else None
        of_rate = isinstance(call, promql.Call) and call.function in {"rate", "irate"}
        if window and of_rate and window != "$__rate_interval":
            yield f"[{window}] in {call.function}"  # type: ignore[union-attr]


def _target_counter_agg(_: Dashboard, panel: Panel) -> Iterator[str]:
    for node, above in _nodes(panel):
        if isinstance(node, promql.Selector) and node.metric.endswith("_total"):
            call = above[-1] if above else None
            rated = node.window and isinstance(call, promql.Call) and call.function in _RATES
            if not rated and not _only_filters(node, above):
                yield f"{node.metric} is not inside rate, irate or increase"


def _target_cluster(_: Dashboard, panel: Panel) -> Iterator[str]:
    yield from _without(panel, promql.Matcher("cluster", "=~", "$cluster"))


def _target_instance(dashboard: Dashboard, panel: Panel) -> Iterator[str]:
    if "plumbline-l2" in dashboard["tags"]:
        yield from _without(panel, promql.Matcher("instance", "=~", "$instance"))


def _without(panel: Panel, wanted: promql.Matcher) -> Iterator[str]:
    for node, above in _nodes(panel):
        if not isinstance(node, promql.Selector) or wanted in node.matchers or _proves(node, above):
            continue
        if not _joined(node, above, wanted):
            yield f'{node.metric} without {wanted.label}{wanted.op}"{wanted.value}"'


def _proves(node: promql.Selector, above: tuple[promql.Node, ...]) -> bool:
    """Whether it only proves that rules are evaluated, or that somebody looks at all (``unless on ()``)."""
    if promql.Matcher("alertname", "=", "PlumblineWatchdog") in node.matchers:
        return True
    return any(isinstance(outer, promql.Binary) and (outer.operator, outer.on) == ("unless", ()) for outer in above)


def _joined(node: promql.Selector, above: tuple[promql.Node, ...], wanted: promql.Matcher) -> bool:
    """Whether another side of a join is narrowed to what the page shows, and the join narrows this one.

    A cluster must be matched itself, because names repeat in clusters; a node's things may be matched by their names.
    """
    inner: promql.Node = node
    for outer in reversed(above):
        if isinstance(outer, promql.Binary) and outer.operator != "or":
            on = bool(outer.on) if outer.on is not None else wanted.label not in (outer.ignoring or ())
            if wanted.label == "cluster" and outer.on is not None:
                on = "cluster" in outer.on
            other = outer.right if inner is outer.left else outer.left
            if on and any(wanted in each.matchers for each in promql.selectors(other)):
                return True
        inner = outer
    return False


def _only_filters(node: promql.Selector, above: tuple[promql.Node, ...]) -> bool:
    """Whether only its being there counts, not its value: behind ``and`` or ``unless``."""
    inner: promql.Node = node
    for outer in reversed(above):
        if isinstance(outer, promql.Binary) and outer.operator in {"and", "unless"} and inner is outer.right:
            return True
        inner = outer
    return False


def _nodes(panel: Panel) -> Iterator[tuple[promql.Node, tuple[promql.Node, ...]]]:
    for target in panel["targets"]:
        with contextlib.suppress(ValueError):  # which is target-promql's to say
            yield from promql.walk(promql.parse(target["expr"]))


PAGE_RULES: dict[str, Callable[[Dashboard], Iterator[str]]] = {
    "template-datasource": _template_datasource,
    "template-cluster": _template_cluster,
    "template-instance": _template_instance,
    "template-label-promql": _template_label_promql,
    "template-on-time-change-reload": _template_on_time_change_reload,
    "uneditable": _uneditable,
}
PANEL_RULES: dict[str, Callable[[Dashboard, Panel], Iterator[str]]] = {
    "panel-datasource": _panel_datasource,
    "panel-title-description": _panel_title_description,
    "panel-units": _panel_units,
    "panel-no-targets": _panel_no_targets,
    "target-promql": _target_promql,
    "target-rate-interval": _target_rate_interval,
    "target-cluster": _target_cluster,
    "target-instance": _target_instance,
    "target-counter-agg": _target_counter_agg,
}
