"""IOPS at a latency: the most operations per second while a share of them keeps it, and the queue depth at that point.

There are two steps, each a separate run: fio searches for the depth (see :class:`.fio_job.LatencySearch`), then a run
at that depth proves it for as long as any other run of the probe. fio's search ends with one window of a second, which
may succeed by luck; if the proof misses the latency, it is repeated with less in flight.

This loads the device to its limit without a cap, so it is only done on request; it touches only what the probe's own
runs touch: disks are read, or a file or an image of our own is written.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from msgspec import structs

from plumbline.config.workloads import BlockWorkload, Pattern
from plumbline.probes.fio.fio_job import LatencySearch
from plumbline.probes.run.model import PeriodicProbe
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult


class FioRun(Protocol):
    """What a search needs of a probe's plan, and changes in a copy of it."""

    @property
    def workload(self) -> BlockWorkload: ...

    @property
    def runtime_s(self) -> float: ...

    @property
    def timeout_s(self) -> float: ...

    @property
    def search(self) -> LatencySearch | None: ...


@runtime_checkable
class FioKind(PeriodicProbe, Protocol):
    """A probe that runs fio, in files, on a raw disk or on an image."""

    @property
    def plan(self) -> FioRun: ...

    @property
    def fio_place(self) -> str:
        """The directory, disk or image that fio uses."""


DEEPEST = 128  # The maximum searched for: the deepest of the documented series, and enough to saturate an NVMe disk
# a search takes 7 windows to double up to the deepest and 7 to halve back; fio ends it by itself
_WINDOWS = 20
# shares of the depth that fio found, tried in this order; the last means one operation at a time
_SHARES = (1, 0.75, 0.5, 0.25, 0.125, 0)


def place_of(probe: PeriodicProbe) -> tuple[str, ...] | None:
    """A key for what a search on this probe would measure; equal for probes that differ only in depth or cap. ``None``:
    no search. Only random operations past the caches: a sequential latency says nothing about a limit."""
    if not isinstance(probe, FioKind):
        return None
    load = probe.plan.workload
    if load.pattern not in (Pattern.RANDREAD, Pattern.RANDWRITE) or not load.direct:
        return None
    return (probe.identity.layer, probe.fio_place, load.pattern.value, str(load.block_size), load.sync.value)


def lasts_s(probe: FioKind) -> float:
    """Seconds for a search and its proof, if the first proof holds."""
    return (_window_s(probe) * _WINDOWS + probe.plan.runtime_s) * 1.2


def find(
    probe: FioKind, target_s: float, percentile: float, run: Callable[[PeriodicProbe], ProbeResult]
) -> ProbeResult:
    """The proof's result, with the depth in ``queue_depth``; 0 if even one operation at a time misses the latency.
    ``run`` executes a run, with locks and gates. A failed proof is returned as it is."""
    search = LatencySearch(target_s, percentile, _window_s(probe))
    at_deepest = run(_at_depth(probe, DEEPEST, search))
    if at_deepest.outcome is Outcome.SUCCESS:
        deepest = at_deepest.operations[0].queue_depth or 1
        depths = list(dict.fromkeys(max(1, int(deepest * share)) for share in _SHARES))
    else:
        # fio 3.33 with the rbd engine aborted here once in three ("corrupted double-linked list"): then halve the depth
        depths = [DEEPEST >> halves for halves in range(DEEPEST.bit_length())]
    for depth in depths:
        proof = run(_at_depth(probe, depth))
        if proof.outcome is not Outcome.SUCCESS or keeps(proof.operations[0], target_s, percentile):
            return _with_depth(proof, depth)
    return _with_depth(proof, 0)


def keeps(result: OperationResult, target_s: float, percentile: float) -> bool:
    """Whether ``percentile`` percent of the operations took at most ``target_s``, by nearest rank."""
    total, below = sum(count for _, count in result.bins), 0
    for seconds, count in result.bins:
        below += count
        if below >= math.ceil(percentile / 100 * total):
            return seconds <= target_s
    return False


def _at_depth(probe: FioKind, depth: int, search: LatencySearch | None = None) -> PeriodicProbe:
    """The same probe without its cap, as one job with ``depth`` in flight."""
    runtime_s = search.window_s * _WINDOWS if search else probe.plan.runtime_s
    timeout_s = probe.plan.timeout_s + runtime_s
    planned: Any = probe.plan
    load: BlockWorkload = structs.replace(probe.plan.workload, iodepth=depth, jobs=1)
    plan: Any = structs.replace(
        planned, workload=load, rate_iops=None, search=search, runtime_s=runtime_s, timeout_s=timeout_s
    )
    copied: Any = probe
    again: PeriodicProbe = structs.replace(copied, plan=plan)
    return again


def _window_s(probe: FioKind) -> float:
    """A second for the default run time of ten seconds; a disk with 100 operations per second does 100 in it."""
    return min(2.0, max(0.1, probe.plan.runtime_s / 10))


def _with_depth(result: ProbeResult, depth: int) -> ProbeResult:
    operations = tuple(structs.replace(operation, queue_depth=depth) for operation in result.operations)
    return structs.replace(result, operations=operations)
