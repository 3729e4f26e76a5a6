"""Kernel settings under their ``sysctl`` names, from ``/proc/sys``.

Documentation/admin-guide/sysctl/{net,vm,kernel}.rst, Documentation/networking/ip-sysctl.rst. A name's dots are the
path's slashes; a file has one number, several (``4096\\t131072\\t6291456``), or words.

Slow tier. ``net.ipv4`` belongs to the reader's network namespace; most of ``net.core`` shows only in the first one.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs

_SOCKET_MEMORY = ("min", "default", "max")
NUMBERS: Mapping[str, tuple[str, ...]] = {
    # receiving packets
    **dict.fromkeys((
        "net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.dev_weight",
        "net.core.somaxconn", "net.core.rps_sock_flow_entries",
        # socket memory
        "net.core.rmem_default", "net.core.rmem_max", "net.core.wmem_default", "net.core.wmem_max",
        "net.core.optmem_max",
    ), ("",)),
    "net.ipv4.tcp_rmem": _SOCKET_MEMORY,
    "net.ipv4.tcp_wmem": _SOCKET_MEMORY,
    "net.ipv4.tcp_mem": ("min", "pressure", "max"),  # pages, for all sockets together
    **dict.fromkeys((
        # TCP behaviour
        "net.ipv4.tcp_timestamps", "net.ipv4.tcp_sack", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_moderate_rcvbuf",
        "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_max_syn_backlog",
        # processes and memory
        "kernel.pid_max", "kernel.threads-max", "kernel.numa_balancing", "vm.max_map_count", "vm.min_free_kbytes",
        "vm.vfs_cache_pressure", "vm.zone_reclaim_mode", "vm.swappiness", "vm.dirty_ratio", "vm.dirty_background_ratio",
        "vm.dirty_bytes", "vm.dirty_background_bytes",  # if not 0, in force instead of the ratio, which then reads 0
        "fs.aio-max-nr", "fs.file-max",
    ), ("",)),
}  # fmt: skip
"""Settings that are numbers, and the names of their fields."""

WORDS = ("net.ipv4.tcp_congestion_control", "net.core.default_qdisc", "kernel.osrelease")
"""Settings that are words; ``kernel.osrelease`` can't be set, and is included to compare nodes by it."""


class SysctlReading(Struct, frozen=True):
    """Settings by name, without those that this kernel or namespace lacks."""

    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """A setting that is one number; ``None`` when it is absent."""
        values = self.numbers.get(name)
        return values[0] if values else None


def parse_numbers(text: str, *, count: int, source: str) -> tuple[int, ...]:
    """``count`` decimal numbers between blanks (64 bits, ``kernel.*`` may be negative); else :class:`ParseError`."""
    values = text.split()
    if len(values) != count or not all(re.fullmatch(r"-?[0-9]{1,20}", value) for value in values):
        raise ParseError(source, f"{text[:40]!r}, expected {count} number{'s' if count > 1 else ''}", line=1)
    return tuple(map(int, values))


def read_sysctl(
    roots: Roots,
    *,
    numbers: Iterable[str] = tuple(NUMBERS),
    words: Iterable[str] = WORDS,
    on_skip: Callable[[str, str], None] = lambda _name, _reason: None,
) -> SysctlReading:
    """The named settings, if readable; a malformed one is skipped. ``Unavailable`` when none can be read."""
    values: dict[str, tuple[int, ...]] = {}
    for name in numbers:
        path = _path(roots, name)
        text = sysfs.read_text(path)
        try:
            if text is not None:
                values[name] = parse_numbers(text, count=len(NUMBERS[name]), source=str(path))
        except ParseError as error:
            on_skip(name, str(error))
    texts = {name: text for name in words if (text := sysfs.read_text(_path(roots, name))) is not None}
    if not values and not texts:
        raise Unavailable(f"{roots.proc / 'sys'}: none of the settings can be read")
    return SysctlReading(values, texts)


def _path(roots: Roots, name: str) -> Path:
    return roots.proc.joinpath("sys", *name.split("."))
