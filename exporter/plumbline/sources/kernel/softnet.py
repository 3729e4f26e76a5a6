"""Each CPU's processing of received packets, from ``/proc/net/softnet_stat``.

https://github.com/torvalds/linux/blob/v6.12/net/core/net-procfs.c (``softnet_seq_show``)

One line per online CPU, hexadecimal 32-bit counters::

    0000000f 00000000 00000000 00000000 … 00000000 00000000 00000000 00000000 00000000 00000000
    00001593 00000000 00000000 00000000 … 00000000 00000000 00000000 00000000 00000001 00000000 00000000

Columns: 1 processed, 2 dropped, 3 time_squeeze, 4–9 always 0 in current kernels, 10 received_rps, 11 flow_limit_count,
12 backlog length and 13 CPU number (5.10), 14 and 15 input and process queue length (6.4). The oldest form has nine
columns. Without column 13, rows are the online CPUs in order, so row and CPU number differ when a CPU is offline.

``processed`` counts a packet again when it passes VLAN untagging, a bond or a bridge: on a VLAN over a bond, it is
three times the number of packets.
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

_WRAP = 1 << 32
_COUNTERS = ("processed", "dropped", "time_squeeze")
_MIN_COLUMNS = 9
_CPU_COLUMN, _BACKLOG_COLUMN, _INPUT_COLUMN, _PROCESS_COLUMN = 12, 11, 13, 14
_HEX = re.compile(r"[0-9a-fA-F]{1,8}")
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")  # Linux has at most 8,192 CPUs


class SoftnetCpu(Struct, frozen=True):
    """One CPU. Counters since boot; the kernel's own are 32 bits wide and wrap."""

    cpu: int
    processed: int  # Frames passed to the protocols (see above: one packet may count several times)
    dropped: int  # Backlog overflow: more than netdev_max_backlog packets waited, or the flow limit applied
    time_squeeze: int  # Poll loops that ended because netdev_budget or their time was used up, possibly with work left
    backlog_length: int | None  # Packets waiting now, in both queues below; None before Linux 5.10
    input_queue_length: int | None = None  # Not yet taken over by this CPU; None before Linux 6.4
    process_queue_length: int | None = None  # Taken over for its receive loop; None before Linux 6.4


def parse_softnet(text: str, *, source: str, online: Sequence[int] | None = None) -> tuple[SoftnetCpu, ...]:
    """Parse the file → per-CPU counters; ``online``: the CPUs of the rows if they are not named. :class:`ParseError`
    for fewer than nine columns, anything but 32-bit hexadecimal numbers, a duplicate CPU, or no rows."""
    cpus: dict[int, SoftnetCpu] = {}
    for line, row in enumerate(text.splitlines(), start=1):
        columns = row.split()
        if len(columns) < _MIN_COLUMNS:
            raise ParseError(source, f"{len(columns)} columns, at least {_MIN_COLUMNS} expected", line=line)
        for number, column in enumerate(columns, start=1):
            if not _HEX.fullmatch(column):
                raise ParseError(source, f"column {number} is {column[:20]!r}, not 32 bits in hexadecimal", line=line)
        values = [int(column, 16) for column in columns]
        if len(values) > _CPU_COLUMN:
            cpu = values[_CPU_COLUMN]
        else:
            cpu = online[line - 1] if online is not None and line <= len(online) else line - 1
        if cpu in cpus:
            raise ParseError(source, f"CPU {cpu} is listed twice", line=line)
        queues = (
            values[column] if column < len(values) else None
            for column in (_BACKLOG_COLUMN, _INPUT_COLUMN, _PROCESS_COLUMN)
        )
        cpus[cpu] = SoftnetCpu(cpu, values[0], values[1], values[2], *queues)
    if not cpus:
        raise ParseError(source, "no rows")
    return tuple(cpus.values())


def parse_cpu_list(text: str, *, source: str) -> tuple[int, ...]:
    """Parse the kernel's list format, ``0-3,8,10-11`` → the numbers, ascending; :class:`ParseError` if malformed."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise ParseError(source, f"{part[:20]!r} is not a CPU or a range", line=1)
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(cpus))


def read_softnet(roots: Roots) -> tuple[SoftnetCpu, ...]:
    """Read the file. ``Unavailable`` when the kernel lacks it, ``ParseError`` when it is malformed."""
    path = f"{roots.proc}/net/softnet_stat"  # a scrape's path: pathlib's "/" costs half as much as the read
    text = sysfs.require(path, TABLE).decode("ascii", "replace")
    online = None
    if len(text.split("\n", 1)[0].split()) <= _CPU_COLUMN:
        online = sysfs.read_parsed(roots.sys / "devices" / "system" / "cpu" / "online", parse_cpu_list)
    return parse_softnet(text, source=path, online=online)


class SoftnetUnwrapper:
    """Extends the kernel's 32-bit counters beyond 2³², from the kernel's value on, the same for every reader. At a
    million packets per second on one CPU, ``processed`` wraps every 71 minutes, which Prometheus takes for a restart.
    The kernel never resets them (a CPU keeps its own through hotplug), so a smaller value is one wrap; more between two
    scrapes go undetected."""

    def __init__(self) -> None:
        self._last: dict[int, SoftnetCpu] = {}

    def unwrap(self, reading: tuple[SoftnetCpu, ...]) -> tuple[SoftnetCpu, ...]:
        """The same reading, with counters that only increase."""
        for now in reading:
            last = self._last.get(now.cpu, now)
            counters = {name: grown(getattr(last, name), getattr(now, name)) for name in _COUNTERS}
            self._last[now.cpu] = replace(now, **counters)
        return tuple(self._last[cpu.cpu] for cpu in reading)


def grown(total: int, raw: int) -> int:
    """``total`` advanced to the next number whose low 32 bits are ``raw``."""
    return total + (raw - total) % _WRAP
