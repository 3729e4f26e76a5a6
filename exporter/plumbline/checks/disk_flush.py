"""Does a disk store what it acknowledges, and how fast? What a probe of durable writes measured, beside what flash and
rotating disks can do.

No program can prove that data survive a power cut: a disk with a protected buffer and one that ignores flushes look the
same. What can be known is that a rate is impossible without such a buffer, and what the disk itself reports of its
cache. The kernel passes that on (``queue/write_cache``): ``write back``, a volatile cache, so flushes or FUA writes are
sent (NVMe: VWC of Identify Controller); ``write through``, none or a protected one, so none are needed.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from statistics import median, quantiles

from msgspec import Struct
from msgspec.structs import replace

from plumbline.checks.disk import Disk, disk_facts
from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.queuesettings import WRITE_BACK

WORKLOAD = "write-4k-qd1-j1-dsync"
"""The probe's workload: the test of journal devices of https://www.sebastien-han.fr/blog/2014/10/10/
ceph-how-to-test-if-your-ssd-is-suitable-as-a-journal-device/, there with ``--runtime=60``."""
_LEAST_BURST_S = 5  # A few fast seconds in a row are chance on a shared disk
LEAST_SECONDS = 30  # A shorter run ends in the first cache, and has too few seconds to compare

FLASH_MOST = 1 / 200e-6
"""Writes a second, one after the other, if every write programs a page: 200 µs with one bit per cell, 600 to 1,350 with
two or three (https://www.anandtech.com/show/6337/samsung-ssd-840-250gb-review/2). Of eleven SSDs for desktops, ten did
90 to 4,863, and one 91,375 with FUA writes but 2,767 with flushes
(https://gist.github.com/anarazel/b527e5317bb7d58483a9858f5f2435ca). SSDs with protected buffers do as many as without
flushes (https://vitastor.io/en/docs/performance/understanding.html)."""
ROTATING_MOST = 15_000 / 60
"""Writes a second, in sequence: the next block has just passed the head, so a write waits for a turn."""


class DurableWrites(Struct, frozen=True):
    """What the newest good run of :data:`WORKLOAD` measured on ``device``: writes per second, second by second."""

    device: str
    rates: tuple[float, ...]


class Course(Struct, frozen=True):
    """The course of a run in writes per second: the median of its last third with the middle half, and, if it fell, the
    median before and after how many seconds that was."""

    last: float
    middle_half: tuple[float, float]
    first: float | None = None
    fell_after_s: int | None = None

    @property
    def highest(self) -> float:
        return max(self.last, self.first or 0.0)

    @property
    def text(self) -> str:
        low, high = self.middle_half
        half = f" (middle half {low:,.0f} to {high:,.0f})"
        if self.first is None:
            return f"{self.last:,.0f} durable writes/s{half}"
        return f"{self.first:,.0f} durable writes/s, falls to {self.last:,.0f}{half} after {self.fell_after_s} s"


def course(rates: Sequence[float]) -> Course | None:
    """``None`` for less than :data:`LEAST_SECONDS`. The run is cut where two medians describe it best, by the sum of
    absolute differences. It fell there if the median is halved and the middle halves of both parts are apart, so that
    single slow seconds count for nothing."""
    if len(rates) < LEAST_SECONDS:
        return None
    third = rates[-(len(rates) // 3) :]
    cuts = range(_LEAST_BURST_S, len(rates) - len(third) + 1)
    cut = min(cuts, key=lambda at: _spread(rates[:at]) + _spread(rates[at:]))
    before, after = rates[:cut], rates[cut:]
    low, _, high = quantiles(third)
    run = Course(median(third), (low, high))
    if median(after) < median(before) / 2 and quantiles(after)[2] < quantiles(before)[0]:
        run = replace(run, first=median(before), fell_after_s=cut)
    return run


def _spread(rates: Sequence[float]) -> float:
    middle = median(rates)
    return sum(abs(rate - middle) for rate in rates)


Measured = tuple[tuple[Disk, Course], ...]


def disk_flush_facts(readings: Readings, writes: Iterable[DurableWrites]) -> Measured:
    disks = {disk.device: disk for disk in disk_facts(readings)}
    courses = ((disks.get(run.device), course(run.rates)) for run in writes)
    return tuple((disk, run) for disk, run in courses if disk and run)


@check(
    "disk.flush",
    "Keep journals on disks that store what they acknowledge.",
    f"SSDs, NVMe and hard disks of this host on which a probe ran the workload {WORKLOAD} for half a minute to two. "
    "Not a hypervisor's disks, nor stacked ones: what is below them is unknown. It cannot prove that data survive a "
    "power cut.",
    "A journal waits for every single write, which takes flash 200 µs or more without power-loss protection. A disk "
    "without it that acknowledges sooner loses acknowledged data in a power cut.",
    "unnoba-2020, 11: enterprise-grade SSDs for OSDs; Ceph: hardware recommendations, Write Caches; AnandTech on the "
    "Samsung SSD 840: program times of NAND; "
    "Documentation/ABI/stable/sysfs-block (write_cache)",
    Severity.INFO,
    "smartctl -x /dev/<device>",
)
def flush(measured: Measured) -> Iterator[Verdict]:
    for disk, run in measured:
        cache, most = disk.queue.write_cache, FLASH_MOST if disk.medium == "flash" else ROTATING_MOST
        if disk.medium is None or cache is None or (disk.volatile_cache and cache != WRITE_BACK):
            continue  # the last: disk.flushes-omitted
        actual, fast = f"{run.text}; {cache}", run.last > most
        if run.highest > most and cache == WRITE_BACK:
            what = "flash can store them" if disk.medium == "flash" else "a disk can turn"
            limit = f"at most {most:,.0f}/s without power-loss protection, or write through"
            fix = _look(disk, f"Find out whether it has power-loss protection. {_PROTECTED}")
            yield Verdict(disk.device, actual, limit, fix, because=f"It acknowledges flushes faster than {what}.")
        elif disk.medium == "flash" and not fast:
            limit = f"more than {most:,.0f}/s, as with power-loss protection"
            fix = _look(
                disk, f"Consumer-class. Move journals and databases to a disk with the protection. {_PROTECTED}"
            )
            yield Verdict(disk.device, actual, limit, fix, because="In the end each write waits for flash.")
        else:
            limit = "any: it reports no volatile cache" if fast else f"at most {most:,.0f}/s: a write a turn"
            yield Verdict(disk.device, actual, limit)


_PROTECTED = (
    "The data sheet says it (power-loss protection, capacitors). A SATA or SAS disk that has it may still report a"
    " volatile cache: then switch that off in the disk (disk.write-cache)."
)


def _look(disk: Disk, caution: str) -> Fix:
    node = shlex.quote(f"/dev/{disk.device.replace('!', '/')}")
    return Fix(f"smartctl -x {node}", caution=f"This only shows model and cache. {caution}")


CHECKS = (flush,)
