"""Checks that a documented row agrees with itself. Three identities hold for every benchmark:

throughput    IOPS × block size = throughput
duration      data ÷ duration = throughput
concurrency   IOPS × mean latency = operations in flight (Little's law): queue depth × jobs, or a Ceph tool's threads

The first two are checked as intervals, because printed figures are rounded (fio and dd print three significant digits;
IOPS below 10 000 are cut to a whole number): a row breaks them only when no values that round to its figures agree.
The third holds for averages over the same time; fio's ramp-up and slow-down shift it by a few percent.
"""

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from plumbline.baseline.units import Iops, Latency, Throughput, Volume
from plumbline.config.workloads import BlockWorkload, FileOps, OsdBench, RadosBench, RadosOps, RbdBench, S3Ops, Workload

# rows that agree do so within 2 %; rows that disagree are off by 6 % or more
CONCURRENCY_SLACK = 0.05
# beyond this factor, one figure of the row belongs to another experiment
DOUBT_FACTOR = 2.0

Interval = tuple[Decimal, Decimal]


class Rule(StrEnum):
    THROUGHPUT = "throughput"
    DURATION = "duration"
    CONCURRENCY = "concurrency"


class Breach(Struct, frozen=True):
    """The row breaks ``rule``. ``ratio`` is the value computed from the figures divided by the expected value."""

    rule: Rule
    ratio: float
    text: str

    @property
    def doubtful(self) -> bool:
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
    """The identities that a row breaks; an identity whose figures are missing is not checked."""
    block_size, wanted = size_of(workload), depth_of(workload)
    if wanted and isinstance(workload, BlockWorkload):
        wanted *= workload.jobs
    if iops and throughput and block_size:
        low, high = (edge * block_size for edge in _iops_interval(iops))
        if not _overlap((low, high), _interval(throughput)):
            yield _off(Rule.THROUGHPUT, iops.exact * block_size / throughput.exact, "IOPS × block size")
    if duration and transferred and throughput:
        shortest, longest = _interval(duration)
        if not _overlap((transferred.exact / longest, transferred.exact / shortest), _interval(throughput)):
            yield _off(Rule.DURATION, transferred.exact / duration.exact / throughput.exact, "data ÷ duration")
    if iops and mean and wanted:
        in_flight = float(iops.exact * mean.exact)
        if abs(in_flight / wanted - 1) > CONCURRENCY_SLACK:
            text = f"IOPS × latency makes {in_flight:.1f} of {wanted} in flight"
            yield Breach(Rule.CONCURRENCY, in_flight / wanted, text)


def agree(figure: Iops | Latency | Throughput, other: Iops | Latency | Throughput) -> bool:
    """Whether two printed figures are equal to within one unit in the last digit of the coarser one."""
    return abs(figure.exact - other.exact) <= max(figure.step, other.step)


def size_of(workload: Workload) -> int | None:
    """Bytes per operation, if the workload defines it."""
    match workload:
        case BlockWorkload() | OsdBench() | FileOps():
            return workload.block_size
        case RadosBench() | RadosOps() | S3Ops():
            return workload.object_size
        case RbdBench():
            return workload.io_size
        case _:
            return None


def depth_of(workload: Workload) -> int | None:
    """Operations in flight; for block workloads per process."""
    match workload:
        case BlockWorkload():
            return workload.iodepth
        case RadosBench():
            return workload.concurrent
        case RbdBench():
            return workload.threads
        case _:
            return None


def _off(rule: Rule, ratio: Decimal, what: str) -> Breach:
    side = "below" if ratio < 1 else "above"
    return Breach(rule, float(ratio), f"{what} is {abs(float(ratio) - 1) * 100:.1f} % {side} the throughput")


def _interval(figure: Latency | Throughput) -> Interval:
    """The values printed as ``figure``: ± half of its last significant digit; for rates, of the third digit at most."""
    half = figure.step / 2
    if isinstance(figure, Throughput):
        third_digit = Decimal((0, (1,), figure.number.adjusted() - 2)) * figure.UNITS[figure.unit]
        half = max(half, third_digit / 2)
    return figure.exact - half, figure.exact + half


def _iops_interval(iops: Iops) -> Interval:
    """IOPS are cut to a whole number below 10 000; above, three digits are printed, rounded or cut."""
    if iops.exact < 10_000:
        return iops.exact, iops.exact + 1
    third_digit = Decimal((0, (1,), iops.exact.adjusted() - 2))
    return iops.exact - third_digit / 2, iops.exact + third_digit


def _overlap(first: Interval, other: Interval) -> bool:
    return first[0] <= other[1] and other[0] <= first[1]
