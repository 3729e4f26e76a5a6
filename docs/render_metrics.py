"""``docs/metrics.md``: every metric by its collector, and where it comes from, from the collectors; what each label is,
from ``docs/metrics.yaml``; values of labels with few of them, from the recorded hosts of the tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plumbline.collectors.registry import COLLECTORS, every_spec
from plumbline.metrics.default_page import NAMES
from plumbline.metrics.spec import MetricSpec

HERE = Path(__file__).resolve().parent
GOLDENS = HERE.parent / "tests/golden/hosts"
THEMSELVES = "node: the collectors themselves"
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_UNITS = {
    "seconds": "seconds",
    "bytes": "bytes",
    "ratio": "ratio",
    "celsius": "celsius",
    "bytes_per_second": "bytes/second",
    "timestamp_seconds": "seconds since 1970",
}
_HEAD = """\
# Metrics

Every metric that the daemon exports: its labels, its unit, its meaning.

Generated from the code by `make render`. Missing is no series, zero is measured zero. All of them are there since
0.1.0, the first release; one that comes later says since when in its meaning.
Besides these, `process_*` of the Python client describe the daemon itself.

Each heading is a collector: `--no-collector.NAME`, or `collectors: {NAME: false}`, leaves it out. The unit is
a base unit of Prometheus; a metric without one is a number of things, a rate of them, or a state. Histograms have the
samples `_bucket{le}`, `_sum` and `_count`. How many series that makes on a node: [sizing.md](sizing.md).
"""


@dataclass(frozen=True, slots=True)
class Section:
    """One collector and its metrics; ``origin`` is where they come from, ``sized_by`` the rows that count them."""

    name: str
    specs: tuple[MetricSpec, ...]
    origin: str
    sized_by: tuple[str, ...]


def written(path: Path = HERE / "metrics.yaml") -> dict[str, Any]:
    """What is said beside the code."""
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


def sections() -> list[Section]:
    """Every collector, by name, and the daemon's own figures last."""
    found = [Section(each.name, each.specs, each.origin, each.sized_by) for each in COLLECTORS if each.listed]
    listed = {spec for section in found for spec in section.specs}
    rest = tuple(spec for spec in every_spec() if spec not in listed)
    itself = Section("the daemon itself", rest, "the daemon; these are always there", (THEMSELVES,))
    return [*sorted(found, key=lambda section: section.name), itself]


def unit(spec: MetricSpec) -> str:
    """Its unit, from the name's last words (Prometheus's naming advice); empty where that is no base unit."""
    name = spec.name.removesuffix("_total")
    for ending in sorted(_UNITS, key=len, reverse=True):
        if name.endswith("_" + ending):
            return _UNITS[ending]
    return ""


def seen(labels: Iterable[str], pages: Iterable[Path]) -> dict[str, list[str]]:
    """Values of these labels in the recorded hosts."""
    found: dict[str, set[str]] = {label: set() for label in labels}
    for page in pages:
        for line in page.read_text("utf-8").splitlines():
            if line.startswith("plumbline_"):
                for label, value in _LABEL.findall(line.rpartition("}")[0]):
                    if value and label in found:
                        found[label].add(value)
    return {label: sorted(values) for label, values in found.items()}


def metrics_reference() -> str:
    """``docs/metrics.md``."""
    said = written()
    lines = [_HEAD.rstrip("\n"), "", said["default_page"].rstrip("\n")]
    for section in sections():
        lines += ["", f"## {section.name}", "", f"From {section.origin}.", ""]
        lines += ["| metric | type | unit | labels | meaning |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| `{spec.name}` | {spec.kind} | {unit(spec)} | {', '.join(f'`{each}`' for each in spec.labels)} |"
            f" {'' if spec.name in NAMES else '**full** '}{_cell(spec.help)} |"
            for spec in sorted(section.specs, key=lambda spec: spec.name)
        ]
    closed = [name for name, about in said["labels"].items() if about.get("closed")]
    values = seen(closed, sorted(GOLDENS.glob("*.prom")))
    lines += [
        "",
        "## Labels",
        "",
        "Values are listed where they are few and fixed, as the recorded hosts of the tests have",
    ]
    lines += ["them. `instance`, `job` and `cluster` are Prometheus's, not ours.", ""]
    lines += ["| label | what | values |", "| --- | --- | --- |"]
    for name, about in said["labels"].items():
        lines.append(f"| `{name}` | {about['what']} | {', '.join(f'`{each}`' for each in values.get(name, ()))} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
