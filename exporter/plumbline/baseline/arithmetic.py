"""Does a documented row agree with itself? Three identities hold for every benchmark, whatever it measured.

throughput    IOPS × block size = throughput
duration      data ÷ duration = throughput
concurrency   IOPS × mean latency = operations in flight (Little's law): queue depth × jobs, or a Ceph tool's threads

The first two are checked as intervals: printed figures are rounded (fio and dd print three significant digits, and
IOPS below 10 000 cut to a whole number), so a row breaks them only when no values that would be printed so agree.
The third holds for averages over the same time; fio's own ramp-up and slow-down leave it a few percent off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from plumbline.baseline.units import Iops, Latency, Throughput, Volume
from plumbline.config.workloads import BlockWorkload, OsdBench, RadosBench, RbdBench, Workload

CONCURRENCY_SLACK = 0.05
"""Rows that agree do so within 2 %, rows that don't are 6 % off or more: 5 % lies in the gap."""

DOUBT_FACTOR = 2.0
"""Beyond it, one of the row's figures is not of the experiment the row says it is."""

Interval = tuple[Decimal, Decimal]


class Rule(StrEnum):
    """The identities above."""

    THROUGHPUT = "throughput"
    DURATION = "duration"
    CONCURRENCY = "concurrency"


@dataclass(frozen=True, slots=True)
class Breach:
    """A row breaks ``rule``: ``ratio`` is what the figures make together, over what they should."""

    rule: Rule
    ratio: float
    found: str

    @property
    def doubtful(self) -> bool:
        """More than :data:`DOUBT_FACTOR` off, in either direction."""
        return not 1 / DOUBT_FACTOR <= self.ratio <= DOUBT_FACTOR


def breaches(
    workload: Workload,
    *,
    iops: Iops | None = None,
    throughput: Throughput | None = None,
    mean: Latency | None = None,
    duration: Latency | None = None,
    transferred: Volume | None = None,
) -> Iterator[Breach]:
    """The identities a row breaks; those it has no figures for are not checked."""
    block_size, asked = _shape(workload)
    if iops and throughput and block_size:
        low, high = (edge * block_size for edge in _iops_interval(iops))
        if not _overlap((low, high), _interval(throughput)):
            yield _off(Rule.THROUGHPUT, iops.exact * block_size / throughput.exact, "IOPS × block size")
    if duration and transferred and throughput:
        shortest, longest = _interval(duration)
        rates = (transferred.exact / longest, transferred.exact / shortest)
        if not _overlap(rates, _interval(throughput)):
            yield _off(Rule.DURATION, transferred.exact / duration.exact / throughput.exact, "data ÷ duration")
    if iops and mean and asked:
        in_flight = float(iops.exact * mean.exact)
        if abs(in_flight / asked - 1) > CONCURRENCY_SLACK:
            found = f"IOPS × latency makes {in_flight:.1f} of {asked} in flight"
            yield Breach(Rule.CONCURRENCY, in_flight / asked, found)


def agree(one: Iops | Latency | Throughput, other: Iops | Latency | Throughput) -> bool:
    """Whether two printed figures are the same one: they differ by no more than one of the coarser's last digit."""
    return abs(one.exact - other.exact) <= max(one.step, other.step)


def _shape(workload: Workload) -> tuple[int, int]:
    """Bytes of one operation and operations in flight; 0: the workload has no such number."""
    match workload:
        case BlockWorkload():
            return workload.block_size, workload.iodepth * workload.jobs
        case RadosBench():
            return workload.object_size, workload.concurrent
        case RbdBench():
            return workload.io_size, workload.threads
        case OsdBench():
            return workload.block_size, 0  # it says neither how many are in flight nor a latency
        case _:
            return 0, 0


def _off(rule: Rule, ratio: Decimal, what: str) -> Breach:
    side = "below" if ratio < 1 else "above"
    return Breach(rule, float(ratio), f"{what} is {abs(float(ratio) - 1) * 100:.1f} % {side} the throughput")


def _interval(figure: Latency | Throughput) -> Interval:
    """What would be printed as ``figure``: half of the last digit that counts, at most three of them for rates."""
    half = figure.step / 2
    if isinstance(figure, Throughput):
        third_digit = Decimal((0, (1,), figure.number.adjusted() - 2)) * figure.UNITS[figure.unit]
        half = max(half, third_digit / 2)
    return figure.exact - half, figure.exact + half


def _iops_interval(iops: Iops) -> Interval:
    """Cut to a whole number below 10 000, above it three digits, rounded or cut."""
    if iops.exact < 10_000:
        return iops.exact, iops.exact + 1
    third_digit = Decimal((0, (1,), iops.exact.adjusted() - 2))
    return iops.exact - third_digit / 2, iops.exact + third_digit


def _overlap(one: Interval, other: Interval) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
