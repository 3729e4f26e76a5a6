"""A panel's queries asked: lines with their legends, tables, buckets over time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import frames
from .answers import Series, Source, Window, instant, ranged
from .variables import substitute

_LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_BEFORE_RATE_S = 60.0
"""``$__rate_interval`` for a scrape interval of 15 s, as Grafana has it where nothing is set."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a panel: its legend, its query's id, and (Unix seconds, value)."""

    name: str
    ref_id: str
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float | None:
        """The last figure that is one."""
        return next((value for _, value in reversed(self.points) if not math.isnan(value)), None)


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram over time: ``counts[i][j]`` fell below ``edges[i]`` and above the edge before, at ``times[j]``."""

    edges: tuple[str, ...]
    times: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]


def with_grafanas(values: Mapping[str, str], window: Window) -> dict[str, str]:
    """The page's variables and those that Grafana knows itself."""
    rate = max(_BEFORE_RATE_S, 4 * window.step)
    own = {
        "__rate_interval": f"{rate:g}s",
        "__interval": f"{window.step:g}s",
        "__range": f"{window.end - window.start:.0f}s",
        "__range_s": f"{window.end - window.start:.0f}",
    }
    return {**own, **values}


def asked(source: Source, target: Mapping[str, Any], values: Mapping[str, str], window: Window) -> list[Series]:
    """One query's series, over the window unless it is an instant one."""
    expr = substitute(target["expr"], with_grafanas(values, window))
    ask = instant if target.get("instant") and not target.get("range") else ranged
    return ask(source, expr, window)


def lines(source: Source, panel: Mapping[str, Any], values: Mapping[str, str], window: Window) -> list[Line]:
    """Every series of every query; in the order of the queries, then of the legends."""
    found = []
    for target in panel["targets"]:
        mine = [
            Line(legend(target.get("legendFormat", ""), each.labels), target["refId"], each.points)
            for each in asked(source, target, values, window)
        ]
        found += sorted(mine, key=lambda line: line.name)
    return found


def table(source: Source, panel: Mapping[str, Any], values: Mapping[str, str], window: Window) -> frames.Frame:
    """The table that is shown, in its order."""
    alone = len(panel["targets"]) == 1
    answered = [
        frames.of_query(
            [(each.labels, each.points[-1][1]) for each in asked(source, target, values, window)],
            ref_id=target["refId"],
            alone=alone,
        )
        for target in panel["targets"]
    ]
    shown = frames.transformed(answered, panel.get("transformations", []))
    return frames.ordered(shown, panel.get("options", {}).get("sortBy", []))


def buckets(found: Sequence[Series]) -> Buckets:
    """Cumulative buckets made plain; values that are not there count as none."""
    by_edge = sorted((float(each.labels["le"]), each) for each in found if "le" in each.labels)
    times = sorted({at for _, each in by_edge for at, _ in each.points})
    below = [0.0] * len(times)
    counts = []
    for _, each in by_edge:
        here = dict(each.points)
        reached = [here.get(at, 0.0) for at in times]
        counts.append(tuple(max(0.0, now - before) for now, before in zip(reached, below, strict=True)))
        below = reached
    return Buckets(tuple(each.labels["le"] for _, each in by_edge), tuple(times), tuple(counts))


def legend(template: str, labels: Mapping[str, str]) -> str:
    """``{{label}}`` filled in; without a template the labels as Prometheus writes them."""
    if template in ("", "__auto"):
        inside = ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
        return labels.get("__name__", "") + (f"{{{inside}}}" if inside else "")
    return _LEGEND.sub(lambda found: labels.get(found[1], ""), template)
