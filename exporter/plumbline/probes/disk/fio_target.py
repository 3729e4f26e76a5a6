"""IOPS at a latency: the most operations a second while a share of them keeps it, and how deep the queue is then.

Two steps, each a run of its own: fio searches for the depth (see :class:`.fio_job.LatencySearch`), then a run at that
depth proves it for as long as any other run of the probe. fio's search ends with one window of a second, which luck may
carry; where the proof misses the latency it is tried again with less in flight.

It loads what it measures to the limit and knows no cap, so it is only done when a person asks for it; it touches
nothing but what the probe's own runs touch: disks are read, or written in a file or an image of our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from msgspec import structs

from plumbline.config.workloads import BlockWorkload, Pattern
from plumbline.probes.disk.fio import FioProbe
from plumbline.probes.disk.fio_job import LatencySearch
from plumbline.probes.disk.fio_raw import RawFioProbe
from plumbline.probes.model import PeriodicProbe
from plumbline.probes.rbd.rbd_fio import RbdFioProbe
from plumbline.probes.result import OperationResult, Outcome, ProbeResult

FioKind = FioProbe | RawFioProbe | RbdFioProbe

DEEPEST = 128
"""What is looked for at most: the deepest of the documented series, and what an NVMe disk needs to be full."""
_WINDOWS = 20
"""A search takes 7 windows to double up to the deepest and 7 to halve back; fio ends it by itself."""
_SHARES = (1, 0.75, 0.5, 0.25, 0.125, 0)
"""Of the depth that fio found, one after the other; the last is one operation at a time."""


def place_of(probe: PeriodicProbe) -> tuple[str, ...] | None:
    """What a search on this probe would measure; equal for probes that differ only in their depth or their cap.
    ``None``: none is made. Only random operations past the caches: in sequence a latency says nothing of a limit."""
    if not isinstance(probe, FioProbe | RawFioProbe | RbdFioProbe):
        return None
    load = probe.plan.workload
    if load.pattern not in (Pattern.RANDREAD, Pattern.RANDWRITE) or not load.direct:
        return None
    return (probe.identity.layer, _where(probe), load.pattern.value, str(load.block_size), load.sync.value)


def lasts_s(probe: FioKind) -> float:
    """A search and its proof, at most what they take when the first one holds."""
    return (_window_s(probe) * _WINDOWS + probe.plan.runtime_s) * 1.2


def find(
    probe: FioKind, target_s: float, percentile: float, run: Callable[[PeriodicProbe], ProbeResult]
) -> ProbeResult:
    """The proof's result, its ``queue_depth`` the depth; 0 where not even one operation at a time keeps the latency.

    ``run`` makes a run, with locks and gates. What goes wrong in one is its result.
    """
    search = LatencySearch(target_s, percentile, _window_s(probe))
    found = run(_at_depth(probe, DEEPEST, search))
    if found.outcome is Outcome.SUCCESS:
        deepest = found.operations[0].queue_depth or 1
        depths = list(dict.fromkeys(max(1, int(deepest * share)) for share in _SHARES))
    else:
        # fio 3.33 with the rbd engine aborted here once in three ("corrupted double-linked list"): then by halves
        depths = [DEEPEST >> halves for halves in range(DEEPEST.bit_length())]
    for depth in depths:
        proof = run(_at_depth(probe, depth))
        if proof.outcome is not Outcome.SUCCESS or keeps(proof.operations[0], target_s, percentile):
            return _with_depth(proof, depth)
    return _with_depth(proof, 0)


def keeps(result: OperationResult, target_s: float, percentile: float) -> bool:
    """Whether so many of a hundred operations took no longer than ``target_s``, by nearest rank."""
    total, below = sum(count for _, count in result.bins), 0
    for seconds, count in result.bins:
        below += count
        if below >= math.ceil(percentile / 100 * total):
            return seconds <= target_s
    return False


def _at_depth(probe: FioKind, depth: int, search: LatencySearch | None = None) -> PeriodicProbe:
    """The same probe without its cap, one job with ``depth`` in flight."""
    runtime_s = search.window_s * _WINDOWS if search else probe.plan.runtime_s
    timeout_s = probe.plan.timeout_s + runtime_s
    load: BlockWorkload = structs.replace(probe.plan.workload, iodepth=depth, jobs=1)
    if isinstance(probe, FioProbe):
        plan = replace(
            probe.plan, workload=load, rate_iops=None, search=search, runtime_s=runtime_s, timeout_s=timeout_s
        )
        return replace(probe, plan=plan)
    if isinstance(probe, RawFioProbe):
        raw = replace(
            probe.plan, workload=load, rate_iops=None, search=search, runtime_s=runtime_s, timeout_s=timeout_s
        )
        return replace(probe, plan=raw)
    image = replace(probe.plan, workload=load, rate_iops=None, search=search, runtime_s=runtime_s, timeout_s=timeout_s)
    return replace(probe, plan=image)


def _window_s(probe: FioKind) -> float:
    """A second for the ten seconds that a run has by default; a disk of 100 operations a second has 100 in it."""
    return min(2.0, max(0.1, probe.plan.runtime_s / 10))


def _where(probe: FioKind) -> str:
    if isinstance(probe, FioProbe):
        return str(probe.plan.directory)
    return probe.plan.device if isinstance(probe, RawFioProbe) else probe.plan.image.spec


def _with_depth(result: ProbeResult, depth: int) -> ProbeResult:
    operations = tuple(structs.replace(each, queue_depth=depth) for each in result.operations)
    return structs.replace(result, operations=operations)
