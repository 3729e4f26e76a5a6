"""How long tasks that could run waited for each CPU, from ``/proc/schedstat``.

https://github.com/torvalds/linux/blob/v6.12/Documentation/scheduler/sched-stats.rst (version 15: Linux 3.1 to 6.9)

One line for each CPU, and one for each of its scheduling domains, which are skipped::

    cpu0 0 0 3817284 1440206 2183655 1102745 1420772843716 96430211953 2364510

The eighth number is the time that tasks waited in this CPU's run queue, in nanoseconds since boot. Several tasks may
wait at once: the rate is the mean number of tasks that wait. It is counted without ``kernel.sched_schedstats``, too.
"""

import re

from msgspec import Struct

from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

_OLDEST = 15  # earlier ones have other columns
_VERSION = re.compile(r"version ([0-9]{1,4})")
_CPU = re.compile(r"cpu([0-9]{1,5})(?: [0-9]{1,20}){7} ([0-9]{1,20}) [0-9]{1,20}(?: .*)?")


class RunQueue(Struct, frozen=True):
    """One CPU, since boot."""

    cpu: int
    waited_ns: int  # the sum over all tasks


class RunQueueReading(tuple[RunQueue, ...]):
    """The online CPUs."""


def parse_schedstat(text: str, *, source: str) -> RunQueueReading:
    """Parse the file; :class:`ParseError` for another first line than a version that is new enough, for a CPU's line
    with anything but nine numbers or more, for a CPU that is listed twice, or without a CPU."""
    lines = text.splitlines()
    version = sysfs.matched(_VERSION, lines[0] if lines else "", "a version", source)
    if int(version[1]) < _OLDEST:
        raise ParseError(source, f"version {version[1]}, at least {_OLDEST} expected", line=1)
    queues: dict[int, RunQueue] = {}
    for number, line in enumerate(lines, start=1):
        if not line.startswith("cpu"):
            continue
        match = _CPU.fullmatch(line)
        if match is None:
            raise ParseError(source, f"not the nine numbers of a CPU: {line[:80]!r}", line=number)
        cpu = int(match[1])
        if cpu in queues:
            raise ParseError(source, f"CPU {cpu} is listed twice", line=number)
        queues[cpu] = RunQueue(cpu, int(match[2]))
    if not queues:
        raise ParseError(source, "no CPU")
    return RunQueueReading(queues.values())


def read_schedstat(roots: Roots) -> RunQueueReading:
    """Read the file; ``Unavailable`` where the kernel has none (it needs CONFIG_SCHEDSTATS)."""
    path = roots.proc / "schedstat"
    return parse_schedstat(sysfs.require(path, TABLE).decode("ascii", "replace"), source=str(path))
