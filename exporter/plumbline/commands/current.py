"""The latest measurements of the daemon on the same storage path, as one side of a comparison.

The state file is read beside the daemon (:func:`~plumbline.probes.state.read_state`). It holds the runs of periodic
probes. A canary's figures exist only in the daemon's memory and on ``/metrics``, so they are listed as missing, with
the command that measures them now. A result older than three intervals is no longer current, as on ``/metrics``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plumbline.baseline.compare.comparison import Item
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.collectors.probe import STALE_AFTER_INTERVALS
from plumbline.core.units import seconds_text
from plumbline.probes.model import PeriodicProbe
from plumbline.probes.plan import ProbingPlan
from plumbline.probes.result import ProbeResult
from plumbline.probes.schedule import interval_s
from plumbline.probes.state import ProbeRecord

NOW = "now"


@dataclass(frozen=True, slots=True)
class NowFigures:
    """Fresh figures of this host; ``missing`` names the probes without any, with the reason and how to get them."""

    items: tuple[Item, ...]
    missing: tuple[str, ...]


def figures_now(plan: ProbingPlan, records: Mapping[str, ProbeRecord], *, now: float) -> NowFigures:
    """The newest successful run of every periodic probe, in configuration order; ``now`` is in Unix seconds."""
    items: list[Item] = []
    missing = [
        f"{job.name}: a canary's figures are the daemon's (/metrics, status page); measure now: {_run(job.name)}"
        for job in plan.continuous
    ]
    for probe in plan.periodic:
        name = probe.identity.probe
        result = records.get(name, ProbeRecord()).success
        why = _why_not(probe, result, now)
        if result is None or why:
            missing.append(f"{name}: {why}; measure now: {_run(name)}")
        else:
            items += _items(result, now)
    return NowFigures(tuple(items), tuple(missing))


def _why_not(probe: PeriodicProbe, result: ProbeResult | None, now: float) -> str:
    if result is None:
        return "no run has succeeded yet"
    if result.config_hash != probe.identity.config_hash:
        return "its last run had other parameters"
    age_s = now - _ended(result)
    if age_s > STALE_AFTER_INTERVALS * interval_s(probe):
        return f"its last success is {seconds_text(age_s)} old, more than {STALE_AFTER_INTERVALS:g} intervals"
    return ""


def _items(result: ProbeResult, now: float) -> Iterator[Item]:
    for operation in result.operations:
        entry = BaselineEntry(
            layer=result.layer,
            device_class=result.device_class,
            workload=result.workload,
            operation=operation.operation,
            source=Source.MEASURED,
            profile=NOW,
            config_hash=result.config_hash,
            latency=operation.latency,
            iops=operation.iops,
            throughput=operation.throughput,
            measured=_ended(result),
        )
        yield Item(entry, what=result.probe, age_s=max(0.0, now - _ended(result)))


def _ended(result: ProbeResult) -> float:
    return result.started + result.duration


def _run(name: str) -> str:
    return f"plumbline probe run {shlex.quote(name)}"
