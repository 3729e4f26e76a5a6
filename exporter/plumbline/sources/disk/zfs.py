"""ZFS: pools and the read cache (ARC) from the module's statistics, and the output of ``zpool status``.

https://openzfs.github.io/openzfs-docs/man/v2.3/8/zpool-status.8.html
https://openzfs.github.io/openzfs-docs/man/v2.3/7/zpoolconcepts.7.html (device types and their states)
https://github.com/openzfs/zfs/blob/zfs-2.2.0/module/zfs/spa_stats.c (``state`` takes no lock that a hung pool holds)

::

    /proc/spl/kstat/zfs/tank/state         ONLINE | DEGRADED | FAULTED | UNAVAIL | SUSPENDED …
    /proc/spl/kstat/zfs/arcstats           13 1 0x01 123 33456 11580513411 4318927348129
                                           name                            type data
                                           hits                            4    161230
                                           misses                          4    4501

No read of these statistics waits for a disk. ``zpool status``::

      pool: tank
     state: DEGRADED
      scan: resilver in progress since Mon May  6 18:06:10 2019
    config:

    <tab>NAME             STATE     READ WRITE CKSUM
    <tab>tank             DEGRADED     0     0     0
    <tab>  raidz2-0       DEGRADED     0     0     0
    <tab>    sda          ONLINE       0     0     0
    <tab>    replacing-1  DEGRADED     0     0     0
    <tab>      127286639  UNAVAIL      0     0     0  was /dev/sde1
    <tab>      sdk        ONLINE       0     0     0  (resilvering)
    <tab>spares
    <tab>  sdn            AVAIL

    errors: No known data errors

Without ``-p`` (unknown before 0.8), counts are rounded: ``1.2K``. Its JSON (OpenZFS 2.3) says no more, and omits a
draid vdev's state (https://github.com/openzfs/zfs/issues/18431).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

SUSPENDED = "SUSPENDED"  # a pool that lost its devices: all reads and writes wait until ``zpool clear``

ZPOOL_STATUS = "zpool status"  # the source in errors

_HEADER_LINES = 2
_KSTAT_UINT64 = "4"

_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED", "AVAIL", "INUSE", "SPLIT")
_HEALTHY = frozenset({"ONLINE", "AVAIL", "INUSE"})
_COUNT = r"[0-9]{1,20}(?:\.[0-9]{1,3})?[KMGTPE]?|-"
_ROW = re.compile(
    rf"\t(?P<indent> *)(?P<name>\S.*?) +(?P<state>{'|'.join(_STATES)})"
    rf"(?: +(?P<read>{_COUNT}) +(?P<write>{_COUNT}) +(?P<checksum>{_COUNT}))?(?:\s.*)?"
)
_SECTION = re.compile(r"\t(?P<name>logs|cache|spares|special|dedup)\s*")
_HEADING = re.compile(
    r" *(?P<key>pool|state|status|action|see|scan|remove|checkpoint|config|errors):(?: (?P<value>.*))?"
)
_DATA_ERRORS = re.compile(r"(\d{1,20}) data errors?\b.*")
_NONE_FOUND = "No known data errors"
_POWERS = {letter: 1 << 10 * power for power, letter in enumerate("KMGTPE", start=1)}
_ERROR_KINDS = ("read", "write", "checksum")


class Arc(Struct, frozen=True):
    """The read cache since the module was loaded. ``None``: not reported by this version."""

    hits: int | None
    misses: int | None
    size_bytes: int | None
    max_bytes: int | None


class ZfsReading(Struct, frozen=True):
    """The module's statistics. A pool's state is ``""`` where not reported (before 0.8)."""

    pools: Mapping[str, str]
    arc: Arc | None


NO_ZFS = ZfsReading({}, None)


class Vdev(Struct, frozen=True):
    """A device of a pool, or a group of devices. Errors are ``None`` where the tool shows none (spares)."""

    path: str  # within the pool: ``raidz1-0/sdb``, ``logs/mirror-1/sdc``, ``spares/sdd``; unique, unlike names
    state: str  # ``""``: not reported
    read_errors: int | None
    write_errors: int | None
    checksum_errors: int | None

    @property
    def healthy(self) -> bool | None:
        """Whether it is ONLINE, or a usable spare; ``None``: not reported."""
        return self.state in _HEALTHY if self.state else None

    @property
    def errors(self) -> dict[str, int]:
        """Errors by kind (read, write, checksum), where the tool shows them."""
        counts = zip(_ERROR_KINDS, (self.read_errors, self.write_errors, self.checksum_errors), strict=True)
        return {kind: count for kind, count in counts if count is not None}


class PoolStatus(Struct, frozen=True):
    """One pool."""

    name: str
    state: str
    vdevs: tuple[Vdev, ...]  # Groups come before their members. The pool itself is not included.
    data_errors: int | None  # damaged files and metadata; ``None``: not reported, or without a count


def parse_kstat(text: str, *, source: str) -> dict[str, int]:
    """The unsigned 64-bit values of a named kstat, by name; others are omitted. :class:`ParseError` if malformed."""
    lines = text.splitlines()
    if len(lines) < _HEADER_LINES or lines[1].split() != ["name", "type", "data"]:
        raise ParseError(source, "the second line is not 'name type data'", line=2)
    values = {}
    for number, line in enumerate(lines[_HEADER_LINES:], start=_HEADER_LINES + 1):
        fields = line.split()
        if len(fields) != 3:
            raise ParseError(source, f"not name, type and data: {line[:60]!r}", line=number)
        if fields[1] == _KSTAT_UINT64:
            if not re.fullmatch(r"[0-9]{1,20}", fields[2]):
                raise ParseError(source, f"not a number: {fields[2][:40]!r}", line=number)
            values[fields[0]] = int(fields[2])
    return values


def read_zfs(roots: Roots) -> ZfsReading:
    """Pools by name, and the cache; all empty when the module is not loaded."""
    root = roots.proc / "spl" / "kstat" / "zfs"
    names = sysfs.entries(root)
    # every imported pool has a directory; everything else there is a file
    pools = {name: sysfs.read_text(root / name / "state") or "" for name in names if (root / name).is_dir()}
    data = sysfs.read_bytes(root / "arcstats")
    if data is None:
        return ZfsReading(pools, None)
    values = parse_kstat(data.decode("utf-8", "replace"), source=str(root / "arcstats"))
    return ZfsReading(pools, Arc(values.get("hits"), values.get("misses"), values.get("size"), values.get("c_max")))


def parse_count(text: str) -> int | None:
    """``0``, ``12``, ``1.2K`` (multiples of 1,024); ``None`` for ``-``; :class:`ParseError` for anything else."""
    if text == "-":
        return None
    if not re.fullmatch(_COUNT, text):
        raise ParseError(ZPOOL_STATUS, f"not a count: {text[:40]!r}")
    if text[-1] in _POWERS:
        return round(float(text[:-1]) * _POWERS[text[-1]])
    return round(float(text)) if "." in text else int(text)


def parse_text(text: str) -> tuple[PoolStatus, ...]:
    """Every pool in the text. Unknown lines are taken for explanations and skipped."""
    pools: list[tuple[str, list[tuple[int, str]]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        heading = _HEADING.fullmatch(line)
        if heading and heading["key"] == "pool":
            pools.append(((heading["value"] or "").strip(), []))
        elif pools:
            pools[-1][1].append((number, line))
    return tuple(_text_pool(name, lines) for name, lines in pools)


def _text_pool(name: str, lines: list[tuple[int, str]]) -> PoolStatus:
    headings: dict[str, str] = {}
    config: list[tuple[int, str]] = []
    for number, line in lines:
        heading = _HEADING.fullmatch(line)
        if heading:
            headings[heading["key"]] = (heading["value"] or "").strip()
        elif next(reversed(headings), "") == "config":
            config.append((number, line))
    state, errors = headings.get("state", ""), headings.get("errors", "")
    # each path once: two vdevs with the same path would produce the same series twice
    vdevs = {vdev.path: vdev for vdev in _text_vdevs(config)}
    return PoolStatus(name, state, tuple(vdevs.values()), _data_errors(errors))


def _text_vdevs(lines: Iterable[tuple[int, str]]) -> Iterator[Vdev]:
    section, above = "", [""]
    for number, line in lines:
        group, row = _SECTION.fullmatch(line), _ROW.fullmatch(line)
        if group:
            section, above = f"{group['name']}/", [""]
        elif row and row["indent"]:  # the row without indent is the pool itself
            depth = len(row["indent"]) // 2
            if not 1 <= depth <= len(above):
                raise ParseError(ZPOOL_STATUS, f"an indent without a parent: {line.strip()[:60]!r}", line=number)
            above = [*above[:depth], row["name"]]
            counts = (None if count is None else parse_count(count) for count in row.group(*_ERROR_KINDS))
            yield Vdev(section + "/".join(above[1:]), row["state"], *counts)


def _data_errors(text: str) -> int | None:
    match = _DATA_ERRORS.fullmatch(text)
    return int(match[1]) if match else 0 if text == _NONE_FOUND else None
