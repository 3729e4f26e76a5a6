"""``docs/alerts.md`` and ``docs/rules.md``: from the rendered rules, the mixin's tunables and Alertmanager's example.

Nothing here knows an alert by name: what fires when stands in the rules, what holds what back in Alertmanager's
configuration, evaluated with the matchers' own semantics on the labels that every alert of a rule carries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rjsonnet
import yaml

from support.rulefiles import names_in

ROOT = Path(__file__).resolve().parent.parent
UNKNOWN = object()
"""A label that comes from the series: it may have any value."""
SEVERITIES = ("critical", "warning", "info")
_KNOWN = ("alertname", "layer")
"""Labels of ``equal`` that a rule itself sets; the others come with the series."""
_TIMES = ("for", "keepFiringFor", "severity")
_RECORD = re.compile(r"[a-z_]+(?::[a-z0-9_]+)+")
_LABEL = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_METRIC = re.compile(r"\b(?:plumbline|ceph|node)_[a-z0-9_]+\b")
_MATCHER = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*"?([^"]*?)"?\s*')


@dataclass(frozen=True, slots=True)
class Inhibition:
    """One entry of ``inhibit_rules``, as (label, operator, value) triples; ``number`` counts from 1."""

    number: int
    source: tuple[tuple[str, str, str], ...]
    target: tuple[tuple[str, str, str], ...]
    equal: tuple[str, ...]

    def speaks(self, labels: Mapping[str, object]) -> bool:
        """Whether an alert of these labels may hold others back."""
        return all(_may_match(each, labels) for each in self.source)

    def silences(self, labels: Mapping[str, object]) -> bool:
        """Whether it may be held back."""
        return all(_may_match(each, labels) for each in self.target)

    def joins(self, source: Mapping[str, object], target: Mapping[str, object]) -> bool:
        """Whether a source and a target may have the same values of the equal labels."""
        pairs = [(source.get(label, ""), target.get(label, "")) for label in self.equal if label in _KNOWN]
        if any(UNKNOWN not in pair and pair[0] != pair[1] for pair in pairs):
            return False
        return source is not target or source["layer"] is UNKNOWN  # a disk's probe may silence an OSD's


def _may_match(matcher: tuple[str, str, str], labels: Mapping[str, object]) -> bool:
    label, operator, pattern = matcher
    value = labels.get(label, "")
    if value is UNKNOWN:
        return True
    hit = re.fullmatch(pattern, str(value)) is not None if "~" in operator else value == pattern
    return hit is not operator.startswith("!")


def inhibitions(root: Path = ROOT) -> tuple[Inhibition, ...]:
    """The rules of the example configuration, in its order."""
    config = yaml.safe_load((root / "alerts/alertmanager/alertmanager.yaml").read_text("utf-8"))
    return tuple(
        Inhibition(
            number,
            tuple(_parse(each) for each in entry["source_matchers"]),
            tuple(_parse(each) for each in entry["target_matchers"]),
            tuple(entry["equal"]),
        )
        for number, entry in enumerate(config["inhibit_rules"], 1)
    )


def _parse(text: str) -> tuple[str, str, str]:
    match = _MATCHER.fullmatch(text)
    if not match:
        raise ValueError(f"not a matcher: {text!r}")
    return match[1], match[2], match[3]


def alert_labels(rule: Mapping[str, Any]) -> dict[str, object]:
    """What matchers look at: the rule's own labels and its name; the layer comes from the series where it has none."""
    return {"layer": UNKNOWN, "probe": UNKNOWN} | rule["labels"] | {"alertname": rule["alert"]}


def tunables(root: Path = ROOT) -> dict[str, Any]:
    """Every alert's tunables, as the mixin has them without a site's changes."""
    snippet = f"(import {json.dumps(str(root / 'mixin.libsonnet'))})._config.alerts"
    found: dict[str, Any] = json.loads(rjsonnet.evaluate_snippet("tunables", snippet))
    return found


def groups(kind: str, root: Path = ROOT) -> list[dict[str, Any]]:
    """The groups of ``alerts/out/plumbline-<kind>.yaml``."""
    text = (root / f"alerts/out/plumbline-{kind}.yaml").read_text("utf-8")
    found: list[dict[str, Any]] = yaml.load(text, yaml.CSafeLoader)["groups"]
    return found


def alerts_reference(root: Path = ROOT) -> str:
    """``docs/alerts.md``."""
    rules = [rule for group in groups("alerts", root) for rule in group["rules"]]
    book = _Book(inhibitions(root), [alert_labels(rule) for rule in rules], tunables(root), _homes(root))
    counts = ", ".join(f"{sum(rule['labels']['severity'] == each for rule in rules)} {each}" for each in SEVERITIES)
    names = list(dict.fromkeys(rule["alert"] for rule in rules))
    lines = [ALERTS_HEAD.format(names=len(names), rules=len(rules), counts=counts), *_short_list(rules), ALERTS_DETAILS]
    first = 0
    for group in groups("alerts", root):
        lines += [
            f"### {group['name']}",
            "",
            "| alert | severity | for | then | layer, signal | what | tunables | held back by | holds back |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_alert_row(rule, book.labels[first + at], book) for at, rule in enumerate(group["rules"])),
            "",
        ]
        first += len(group["rules"])
    lines.append(INHIBITION_HEAD)
    for rule in book.inhibitions:
        equal = ", ".join(f"`{each}`" for each in rule.equal)
        lines.append(f"| {rule.number} | {_matchers(rule.source)} | {_matchers(rule.target)} | {equal} |")
    return "\n".join(lines) + "\n"


def _short_list(rules: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A table for each severity, the worst first. A row for each alert at its worst severity: name, what it means, what
    to do first, as its text says, with its labels in capitals."""
    worst: dict[str, Mapping[str, Any]] = {}
    for rule in sorted(rules, key=lambda each: SEVERITIES.index(each["labels"]["severity"])):
        worst.setdefault(rule["alert"], rule)
    for severity in SEVERITIES:
        yield SHORT_HEADS[severity]
        for name, rule in worst.items():
            if rule["labels"]["severity"] == severity:
                summary, description = (rule["annotations"][part] for part in ("summary", "description"))
                first = _LABEL.sub(lambda label: label[1].upper(), _choices(description.rpartition("\nFirst: ")[2]))
                cells = (
                    f"[{name}](../alerts/runbooks/{name}.md)",
                    _cell(_meaning(summary)),
                    _cell(first[0].upper() + first[1:]),
                )
                yield "| " + " | ".join(cells) + " |"


ALERTS_HEAD = """\
# Alerts

What each alert means and what to do first: [pages](#pages), [tickets](#tickets), [information](#information). Below:
when each alert fires, what a site can change, and which alert holds back which.

Generated from `alerts/` by `make render`: {names} alerts in {rules} rules ({counts}).

## What it means, what to do first

The name leads to the runbook. Words in capitals are labels of the alert."""
_COLUMNS = "| alert | means | first |\n| --- | --- | --- |"
SHORT_HEADS = {
    "critical": "\n### Pages\n\n"
    "Somebody is woken: clients are affected. Some of these alerts are tickets while clients are not.\n\n" + _COLUMNS,
    "warning": "\n### Tickets\n\n" + _COLUMNS,
    "info": "\n### Information\n\nTo be read when convenient, or there to hold back other alerts.\n\n" + _COLUMNS,
}
ALERTS_DETAILS = """
## When it fires, what you can change

- *for*: how long it must hold before it fires. *then*: how long it goes on firing after.
- *layer* `(series)`: the layer of the probe that it is about.
- *tunables*: as shipped; the file behind *why* says where each number comes from. Numbers that several rules share
  stand there too. How a site changes them: [alerts/README.md](../alerts/README.md).
- *held back by* and *holds back*: numbers of [the inhibition rules](#who-holds-back-whom) below that may apply. What is
  held back still fires: Prometheus and the dashboards show it, nobody is told.
"""
INHIBITION_HEAD = """\
## Who holds back whom

From [alertmanager.yaml](../alerts/alertmanager/alertmanager.yaml), where each rule has its reason. An alert that
matches *while* holds back those that match *silent*, if the labels under *equal* have the same values on both.

| | while | silent | equal |
| --- | --- | --- | --- |"""


@dataclass(frozen=True, slots=True)
class _Book:
    """What a row needs beside its rule; ``labels`` are those of all rules, in their order."""

    inhibitions: Sequence[Inhibition]
    labels: Sequence[Mapping[str, object]]
    settings: Mapping[str, Any]
    homes: Mapping[str, str]


def _alert_row(rule: Mapping[str, Any], own: Mapping[str, object], book: _Book) -> str:
    name = rule["alert"]
    by = [
        each
        for each in book.inhibitions
        if each.silences(own) and any(each.speaks(other) and each.joins(other, own) for other in book.labels)
    ]
    others = [
        each
        for each in book.inhibitions
        if each.speaks(own) and any(each.silences(other) and each.joins(own, other) for other in book.labels)
    ]
    figures = _cell("; ".join(_figures(book.settings.get(name, {}))))
    why = f" ([why](../alerts/config/{book.homes[name]}))" if name in book.homes else ""
    cells = (
        f"[{name}](../alerts/runbooks/{name}.md)",
        rule["labels"]["severity"],
        rule.get("for", "at once"),
        rule.get("keep_firing_for", ""),
        f"{rule['labels'].get('layer', '(series)')}, {rule['labels']['signal']}",
        _cell(_meaning(rule["annotations"]["summary"])),
        (figures + why).strip(),
        ", ".join(str(each.number) for each in by),
        ", ".join(str(each.number) for each in others),
    )
    return "| " + " | ".join(cells) + " |"


def _figures(value: Any, path: str = "") -> Iterator[str]:
    """``ratio 4``, ``page.burn 5``: every tunable below an alert's name but its times and severity."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key not in _TIMES:
                yield from _figures(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for number, below in enumerate(value):
            yield from _figures(below, f"{path}[{number}]")
    elif isinstance(value, list):
        yield f"{path} " + ", ".join(f"`{each}`" for each in value)
    elif isinstance(value, bool):
        yield f"{path} {'yes' if value else 'no'}"
    else:
        yield f"{path} `{value}`"


def _homes(root: Path) -> dict[str, str]:
    """Alert → the file of ``alerts/config`` that holds its tunables."""
    return {
        name: path.name
        for path in sorted((root / "alerts/config").glob("*.libsonnet"))
        for name in re.findall(r"^\s+(Plumbline\w+):", path.read_text("utf-8"), re.MULTILINE)
    }


def _matchers(matchers: Iterable[tuple[str, str, str]]) -> str:
    return ", ".join(f"`{label}{operator}{value.replace('|', chr(92) + '|')}`" for label, operator, value in matchers)


def _choices(text: str) -> str:
    """With what depends on the layer or on a query said in words: "(layer disk) …, (other layers) …"."""
    text = re.sub(r"\{\{ with query .+? \}\}(.+?)\{\{ else \}\}(.+?)\{\{ end \}\}", r"\1 (if known), or \2", text)
    text = re.sub(r"\{\{ \([^{}]+\)\.Labels\.(\w+) \}\}", r"{{ $labels.\1 }}", text)
    text = re.sub(r"\{\{ if eq \$labels\.layer \"(\w+)\" \}\}", r"(layer \1) ", text)
    text = re.sub(r"\{\{ else if eq \$labels\.layer \"(\w+)\" \}\}", r", (layer \1) ", text)
    return text.replace("{{ else }}", ", (other layers) ").replace("{{ end }}", "")


def _meaning(title: str) -> str:
    """The sentence of a title, without whom it is about. Of several sentences, the one about what is always true."""
    plain = re.sub(r"^\{\{ (?:with|if) .*\{\{ else \}\}(.*?)\{\{ end \}\}", r"\1", title)
    return f"{plain.partition(': ')[0].rstrip('.')}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def rules_reference(root: Path = ROOT) -> str:
    """``docs/rules.md``."""
    alerts = [rule for group in groups("alerts", root) for rule in group["rules"]]
    recorded = groups("rules", root)
    names = {rule["record"] for group in recorded for rule in group["rules"]}
    boards = {path.stem: path.read_text("utf-8") for path in sorted((root / "dashboards/out").glob("*.json"))}
    readers = _readers(names, alerts, boards)
    sources = _sources(root)
    lines = [RULES_HEAD.format(names=len(names), total=sum(len(group["rules"]) for group in recorded))]
    for group in recorded:
        interval = f", every {group['interval']}" if "interval" in group else ""
        home = sources[group["name"]]
        lines += [
            "",
            f"## {group['name']}",
            "",
            f"[alerts/rules/{home}](../alerts/rules/{home}){interval}",
            "",
            "| record | rules | reads | read by |",
            "| --- | --- | --- | --- |",
        ]
        own: dict[str, list[str]] = {}
        for rule in group["rules"]:
            own.setdefault(rule["record"], []).append(rule["expr"])
        for name, expressions in own.items():
            text = "\n".join(expressions)
            metrics = set(filter(_METRIC.fullmatch, names_in(text)))
            reads = sorted({each for each in _RECORD.findall(text) if each in names} | metrics)
            by = ", ".join(readers.get(name, ()))
            lines.append(f"| `{name}` | {len(expressions)} | {', '.join(f'`{each}`' for each in reads)} | {by} |")
    return "\n".join(lines) + "\n"


RULES_HEAD = """\
# Recording rules

Every figure that the rules record, for whoever builds dashboards or alerts on them.

Generated from `alerts/` by `make render`: {names} names in {total} rules; a name has several where its parts come from
different series. The name is `level:metric:operation`, as Prometheus advises. *Reads*: the metrics of its expressions;
ours are in [metrics.md](metrics.md). *Read by*: alerts ([alerts.md](alerts.md)) and, in italics, dashboards; a name
without a reader is one step of another, or there for you. How each is made and why so stands in the file above its
table."""


def _readers(
    names: Iterable[str], alerts: Iterable[Mapping[str, Any]], boards: Mapping[str, str]
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in names}
    for rule in alerts:
        for name in set(_RECORD.findall(rule["expr"] + json.dumps(rule["annotations"]))) & found.keys():
            if rule["alert"] not in found[name]:
                found[name].append(rule["alert"])
    for board, text in boards.items():
        for name in set(_RECORD.findall(text)) & found.keys():
            found[name].append(f"*{board}*")
    return found


def _sources(root: Path) -> dict[str, str]:
    """Group → the file of ``alerts/rules`` that makes it."""
    return {
        name: path.name
        for path in sorted((root / "alerts/rules").glob("*.libsonnet"))
        for name in re.findall(r"name: '(plumbline-[\w.-]+)'", path.read_text("utf-8"))
    }
