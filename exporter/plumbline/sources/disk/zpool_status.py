"""Parse ``zpool status``: pools and their devices, from text or (OpenZFS 2.3) JSON.

https://openzfs.github.io/openzfs-docs/man/v2.3/8/zpool-status.8.html
https://openzfs.github.io/openzfs-docs/man/v2.3/7/zpoolconcepts.7.html (device types and their states)

::

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

Without ``-p`` (unknown before 0.8), counts are rounded: ``1.2K``. JSON of 2.3 omits a draid vdev's state
(https://github.com/openzfs/zfs/issues/18431), which is then unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plumbline.errors import ParseError

SOURCE = "zpool status"

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
_FOUND = re.compile(r"(\d{1,20}) data errors?\b.*")
_NONE_FOUND = "No known data errors"
_POWERS: dict[str, int] = {letter: 1 << 10 * power for power, letter in enumerate("KMGTPE", start=1)}
_JSON_SECTIONS = {"logs": "logs", "l2cache": "cache", "spares": "spares", "special": "special", "dedup": "dedup"}
# deeper than any pool; text that is nested deeper is not from zpool
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Vdev:
    """A device of a pool, or a group of devices. Errors are ``None`` where the tool shows none (spares)."""

    path: str
    """Its path within the pool: ``raidz1-0/sdb``, ``logs/mirror-1/sdc``, ``spares/sdd``. Unique, unlike names."""
    state: str
    """``""``: not reported."""
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
        counts = {"read": self.read_errors, "write": self.write_errors, "checksum": self.checksum_errors}
        return {kind: count for kind, count in counts.items() if count is not None}


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """One pool."""

    name: str
    state: str
    vdevs: tuple[Vdev, ...]
    """Groups come before their members. The pool itself is not included."""
    data_errors: int | None
    """Damaged files and metadata; ``None``: not reported, or without a count."""


def parse_count(text: str, *, source: str = SOURCE) -> int | None:
    """``0``, ``12``, ``1.2K`` (multiples of 1,024); ``None`` for ``-``; :class:`ParseError` for anything else."""
    if text == "-":
        return None
    if not re.fullmatch(_COUNT, text):
        raise ParseError(source, f"not a count: {text[:40]!r}")
    if text[-1] in _POWERS:
        return round(float(text[:-1]) * _POWERS[text[-1]])
    return round(float(text)) if "." in text else int(text)


def parse_text(text: str, *, source: str = SOURCE) -> tuple[PoolStatus, ...]:
    """Every pool in the text. Unknown lines are taken for explanations and skipped."""
    pools: list[tuple[str, list[tuple[int, str]]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        heading = _HEADING.fullmatch(line)
        if heading and heading["key"] == "pool":
            pools.append(((heading["value"] or "").strip(), []))
        elif pools:
            pools[-1][1].append((number, line))
    return tuple(_text_pool(name, lines, source) for name, lines in pools)


def _text_pool(name: str, lines: list[tuple[int, str]], source: str) -> PoolStatus:
    headings: dict[str, str] = {}
    config: list[tuple[int, str]] = []
    for number, line in lines:
        heading = _HEADING.fullmatch(line)
        if heading:
            headings[heading["key"]] = (heading["value"] or "").strip()
        elif next(reversed(headings), "") == "config":
            config.append((number, line))
    state, errors = headings.get("state", ""), headings.get("errors", "")
    return PoolStatus(name, state, _distinct(_text_vdevs(config, source)), _data_errors(errors))


def _text_vdevs(lines: Iterable[tuple[int, str]], source: str) -> Iterator[Vdev]:
    section, above = "", [""]
    for number, line in lines:
        group, row = _SECTION.fullmatch(line), _ROW.fullmatch(line)
        if group:
            section, above = f"{group['name']}/", [""]
        elif row and row["indent"]:  # the row without indent is the pool itself
            depth = len(row["indent"]) // 2
            if not 1 <= depth <= len(above):
                raise ParseError(source, f"an indent that fits nothing above: {line.strip()[:60]!r}", line=number)
            above = [*above[:depth], row["name"]]
            yield _vdev(section + "/".join(above[1:]), row, source)


def parse_json(text: str, *, source: str = SOURCE) -> tuple[PoolStatus, ...]:
    """Every pool in ``zpool status -j``, with or without ``--json-int``."""
    try:
        pools = _table(json.loads(text), source).get("pools", {})
    except (ValueError, RecursionError) as error:
        raise ParseError(source, f"not JSON: {text[:40]!r}") from error
    return tuple(_json_pool(name, _table(pool, source), source) for name, pool in _table(pools, source).items())


def _json_pool(name: str, pool: dict[str, object], source: str) -> PoolStatus:
    vdevs: list[Vdev] = []
    for root in _table(pool.get("vdevs", {}), source).values():
        # the outermost is the pool itself
        vdevs += _json_vdevs("", _table(_table(root, source).get("vdevs", {}), source), source, 0)
    for key, section in _JSON_SECTIONS.items():
        vdevs += _json_vdevs(f"{section}/", _table(pool.get(key, {}), source), source, 0)
    return PoolStatus(name, _word(pool.get("state")), _distinct(vdevs), _json_count(pool.get("error_count"), source))


def _json_vdevs(above: str, members: dict[str, object], source: str, depth: int) -> Iterator[Vdev]:
    if depth > _DEPTH:
        raise ParseError(source, "nested too deeply")
    for name, member in members.items():
        table = _table(member, source)
        path = above + name
        yield Vdev(
            path,
            _word(table.get("state")),
            *(_json_count(table.get(f"{kind}_errors"), source) for kind in ("read", "write", "checksum")),
        )
        yield from _json_vdevs(f"{path}/", _table(table.get("vdevs", {}), source), source, depth + 1)


def _vdev(path: str, row: re.Match[str], source: str) -> Vdev:
    counts = (row[kind] for kind in ("read", "write", "checksum"))
    return Vdev(path, row["state"], *(None if each is None else parse_count(each, source=source) for each in counts))


def _distinct(vdevs: Iterable[Vdev]) -> tuple[Vdev, ...]:
    """Each path once: two vdevs with the same path would produce the same series twice."""
    return tuple({vdev.path: vdev for vdev in vdevs}.values())


def _data_errors(text: str) -> int | None:
    found = _FOUND.fullmatch(text)
    return int(found[1]) if found else 0 if text == _NONE_FOUND else None


def _json_count(value: object, source: str) -> int | None:
    if isinstance(value, str):
        return parse_count(value, source=source)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    if value is None:
        return None
    raise ParseError(source, f"not a count: {str(value)[:40]!r}")


def _table(value: object, source: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ParseError(source, f"not an object: {str(value)[:40]!r}")
    return value


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
