"""How often each CPU handled network softirqs, and how long its ``ksoftirqd`` ran.

``/proc/softirqs`` (fs/proc/softirqs.c): the possible CPUs in columns, counters of 32 bits since boot::

                    CPU0       CPU1
      NET_TX:      14233      14835
      NET_RX:   64771376   98561586

``ksoftirqd/N`` takes over the softirqs of CPU N when they don't end in time, at a normal task's priority: packets wait
for it. Its times are those of ``/proc/PID/stat`` (proc(5): ``utime``, ``stime``, in clock ticks)::

    15 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 4711 0 0 20 0 1 0 …

Its process lives from boot on, also while its CPU is offline, and is not seen from another PID namespace.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.kernel import sysfs
from plumbline.sources.kernel.softnet import grown

_KINDS = {b"NET_RX": "receive", b"NET_TX": "transmit"}
_CPU = re.compile(rb"CPU([0-9]{1,5})")
_COUNT = re.compile(rb"[0-9]{1,10}")
_THREAD = re.compile(
    r"[0-9]+ \(ksoftirqd/([0-9]{1,5})\) [A-Za-z](?: -?[0-9]+){10} ([0-9]{1,20}) ([0-9]{1,20}) .*", re.S
)
_KTHREADD = 2  # the parent of all kernel threads (kernel/kthread.c)


class Softirqs(Struct, frozen=True):
    """One CPU, since boot."""

    counts: Mapping[str, int]  # ``receive`` and ``transmit`` → how often
    ksoftirqd_s: float | None  # CPU time of its thread; ``None``: not seen from here


def parse_softirqs(data: bytes, *, source: str) -> dict[int, dict[str, int]]:
    """The file → CPU → ``receive`` and ``transmit`` → how often; :class:`ParseError` where the first line names no CPUs
    or a line has not a number for each."""
    lines = data.split(b"\n")
    names = [_CPU.fullmatch(name) for name in lines[0].split()]
    cpus = [int(name[1]) for name in names if name]
    if not cpus or len(set(cpus)) != len(names):
        raise ParseError(source, f"{lines[0][:40]!r} names no CPUs", line=1)
    counts: dict[int, dict[str, int]] = {cpu: {} for cpu in cpus}
    for number, line in enumerate(lines[1:], start=2):
        name, _, rest = line.partition(b":")
        kind, columns = _KINDS.get(name.strip()), rest.split()
        if kind is None:
            continue
        if len(columns) != len(cpus) or not all(map(_COUNT.fullmatch, columns)):
            raise ParseError(source, f"{line[:40]!r} has not {len(cpus)} counters", line=number)
        for cpu, column in zip(cpus, columns, strict=True):
            counts[cpu][kind] = int(column)
    return counts


def parse_thread(text: str) -> tuple[int, int] | None:
    """``/proc/PID/stat`` → CPU and clock ticks; ``None`` if it is another process."""
    match = _THREAD.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]) + int(match[3]))


class SoftirqReader:
    """Counters that only increase: a smaller value is a wrap of 32 bits. One thread refreshes, another may read
    :attr:`latest`."""

    def __init__(self, *, roots: Roots, ticks_per_s: int) -> None:
        """``ticks_per_s``: ``os.sysconf("SC_CLK_TCK")``."""
        self._roots, self._ticks_per_s = roots, ticks_per_s
        self._totals: dict[tuple[int, str], int] = {}
        self._threads: tuple[int, ...] = ()
        self.latest: Mapping[int, Softirqs] = {}  # by possible CPU; empty where it can't be read

    def refresh(self) -> None:
        path = self._roots.proc / "softirqs"
        try:
            counts = parse_softirqs(sysfs.require(path, TABLE), source=str(path))
        except PlumblineError:
            self.latest = {}  # a figure beside the collector's own, which says what is wrong with /proc
            return
        ran = dict(self._ran())
        self.latest = {cpu: Softirqs(self._grown(cpu, kinds), ran.get(cpu)) for cpu, kinds in counts.items()}

    def _grown(self, cpu: int, kinds: Mapping[str, int]) -> dict[str, int]:
        for kind, raw in kinds.items():
            self._totals[cpu, kind] = grown(self._totals.get((cpu, kind), raw), raw)
        return {kind: self._totals[cpu, kind] for kind in kinds}

    def _ran(self) -> Iterator[tuple[int, float]]:
        """CPU and seconds of each thread. They are looked for when one is not where it was."""
        read = [self._thread(pid) for pid in self._threads]
        if not read or None in read:
            self._threads = tuple(pid for pid in self._kernel_threads() if self._thread(pid))
            read = [self._thread(pid) for pid in self._threads]
        return ((cpu, ticks / self._ticks_per_s) for cpu, ticks in filter(None, read))

    def _thread(self, pid: int) -> tuple[int, int] | None:
        return parse_thread((sysfs.read_bytes(self._roots.proc / str(pid) / "stat") or b"").decode("utf-8", "replace"))

    def _kernel_threads(self) -> list[int]:
        """Empty where the kernel names no children (it needs CONFIG_PROC_CHILDREN)."""
        path = self._roots.proc / str(_KTHREADD) / "task" / str(_KTHREADD) / "children"
        return [int(pid) for pid in (sysfs.read_bytes(path, TABLE) or b"").split() if pid.isdigit()]
