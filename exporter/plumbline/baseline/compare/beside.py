"""Each measured figure beside its baseline, with the ratio between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plumbline.baseline.model import BaselineEntry

DIRECT = ("iops", "throughput")
"""Figures where more is better; for latencies less is better."""


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure in base units; ``name`` is ``latency.p50``, ``iops`` or ``throughput``."""

    name: str
    measured: float
    baseline: float | None = None
    ratio: float | None = None
    """The degradation ratio: 1 is as accepted, 2 is twice as bad, for rates and latencies alike."""
    within: bool | None = None
    """Whether it is inside the baseline's tolerance; ``None``: the baseline does not judge or has no tolerance."""


def beside(
    entry: BaselineEntry | None,
    *,
    judges: bool,
    latency: Mapping[str, float],
    iops: float | None = None,
    throughput: float | None = None,
) -> tuple[Beside, ...]:
    """Every measured figure: latencies from mean to max, then the rates."""
    known = dict(_figures(entry.latency, entry.iops, entry.throughput)) if entry else {}
    tolerance = entry.tolerance_ratio if entry and judges else None
    found = []
    for name, measured in _figures(latency, iops, throughput):
        baseline = known.get(name)
        ratio = _degradation(name, measured, baseline)
        within = None if ratio is None or tolerance is None else ratio <= tolerance
        found.append(Beside(name, measured, baseline, ratio, within))
    return tuple(found)


def _figures(latency: Mapping[str, float], iops: float | None, throughput: float | None) -> Iterator[tuple[str, float]]:
    for statistic, seconds in latency.items():
        yield f"latency.{statistic}", seconds
    if iops is not None:
        yield "iops", iops
    if throughput is not None:
        yield "throughput", throughput


def _degradation(name: str, measured: float, baseline: float | None) -> float | None:
    if not baseline or not measured:
        return None
    return baseline / measured if name in DIRECT else measured / baseline
