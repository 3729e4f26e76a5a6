"""Recorded facts of what-if's three worked examples (docs/what-if.md), as a Prometheus holds them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.history_store import Series, labels_of

PAGE = Path(__file__).parents[2] / "docs/what-if.md"
TB, GIB = 10**12, 2**30
LOOKBACK_S = 3600
"""Samples of the examples are valid for so long."""
SLOPES = ("3d", "14d")
_EXAMPLE = re.compile(r"```sh\nplumbline capacity what-if --prometheus \S+ ([^\n]+)\n```\n\n```text\n([^`]+)```")


@dataclass(frozen=True, slots=True)
class Disk:
    """An OSD, recorded."""

    number: int
    host: str
    size: float
    ratio: float
    device_class: str = "hdd"
    db: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool, recorded; ``stored`` in bytes."""

    number: int
    name: str
    copies: int
    domain: str
    device_class: str
    raw: float
    stored: float
    pgs: int
    a_day: float = 0.0
    """What is stored more each day."""


@dataclass(frozen=True, slots=True)
class Example:
    """One cluster; ``growth``: device class → bytes a day; ``recovery``: bytes per second."""

    cluster: str
    disks: tuple[Disk, ...]
    pools: tuple[Pool, ...]
    growth: Mapping[str, float] = field(default_factory=dict)
    recovery: Mapping[str, float] = field(default_factory=dict)


def _disks(first: int, hosts: Mapping[str, int], size: float, ratio: float, device_class: str) -> Iterator[Disk]:
    for host, count in hosts.items():
        for _ in range(count):
            yield Disk(first, host, size, ratio, device_class)
            first += 1


SSD, HDD, SMALL = 1_920_383_410_176, 4_000_787_030_016, 464e9
"""Of the thesis's disks, by its outputs of smartctl; the small ones by its table of servers."""
USED = 0.076
"""Mean use of its OSDs: ``ceph osd df`` prints 0.68 % for osd.71, 0.09 times the mean."""
SSD_HOSTS = {f"stor{number}": 7 for number in range(7, 13)}

THESIS = Example(
    "thesis",
    (
        *_disks(0, {f"stor{number}": 3 for number in (1, 2, 3)}, SMALL, USED, "hdd"),
        *_disks(9, {f"stor{number}": 7 for number in (4, 5, 6)}, HDD, USED, "hdd"),
        *_disks(30, SSD_HOSTS, SSD, USED, "ssd"),
    ),
    (
        Pool(15, "testHDD", 3, "host", "hdd", 3, 1 * TB, 32),
        Pool(21, "testSSD", 3, "host", "ssd", 3, 42 * SSD * USED / 3, 32, 0.1 * TB / 3),
        Pool(22, "testEC", 8, "osd", "hdd", 1.6, 1 * TB, 32),
    ),
    growth={"ssd": 0.1 * TB, "hdd": 0.05 * TB},
)
DATABASES = Example(
    "databases",
    tuple(
        Disk(16 * host + disk, f"osd{host + 1}", 12 * TB, 0.5, "hdd", f"sd{'abcdefgh'[disk // 2]}")
        for host in range(3)
        for disk in range(16)
    ),
    (Pool(1, "general", 3, "host", "hdd", 3, 96 * TB, 2048),),
    growth={"hdd": 0.5 * TB},
    recovery={"hdd": 1e9},
)
MEASURED = Example(
    "measured",
    tuple(Disk(number, f"node-{number}", 4 * GIB, ratio) for number, ratio in enumerate((0.4312, 0.4664, 0.4088))),
    (Pool(1, "filled", 2, "host", "hdd", 2, 560 * 4 * 2**20, 64),),
)
EXAMPLES = (THESIS, DATABASES, MEASURED)


def series(example: Example) -> Iterator[Series]:
    """One sample each, of now."""
    for name, labels, value in _values(example):
        own = {key: text for key, text in {**labels, "cluster": example.cluster}.items() if text}
        yield Series(labels_of(name, own), np.array([int(time.time() * 1000)]), np.array([float(value)]))


def _values(example: Example) -> Iterator[tuple[str, dict[str, str], float]]:
    of, pgs = "plumbline:capacity_", {disk.number: 0.0 for disk in example.disks}
    for pool in example.pools:
        own = [disk.number for disk in example.disks if disk.device_class == pool.device_class]
        pgs |= {number: pgs[number] + pool.pgs * pool.copies / len(own) for number in own}
    for disk in example.disks:
        daemon = {"ceph_daemon": f"osd.{disk.number}"}
        place = {**daemon, "device_class": disk.device_class, "root": "default", "host": disk.host}
        yield of + "osd_size:bytes", place, disk.size
        yield of + "osd_used:bytes", place, disk.size * disk.ratio
        yield "ceph_osd_numpg", daemon, pgs[disk.number]
        if disk.db:
            use = {"instance": f"{disk.host}:10047", "device": disk.db, "use": "osd-db", "user": f"osd.{disk.number}"}
            yield "plumbline_disk_use_info", use, 1
    for limit, ratio in {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}.items():
        yield of + "limit:ratio", {"limit": limit}, ratio
    for pool in example.pools:
        number = {"pool_id": str(pool.number)}
        rule = {"failure_domain": pool.domain, "root": "default", "device_class": pool.device_class}
        yield of + "pool:info", {**number, **rule, "pool": pool.name, "pool_type": "replicated"}, 1
        yield of + "pool_copies:count", number, pool.copies
        yield of + "pool_raw:ratio", number, pool.raw
        yield of + "pool_stored:bytes", {**number, "pool": pool.name}, pool.stored
        yield "ceph_pg_total", number, pool.pgs
        for slope in SLOPES if pool.a_day else ():
            yield of + "pool_growth:bytes_per_second", {**number, "slope": slope}, pool.a_day / 86400
    for device_class, a_day in example.growth.items():
        for slope in SLOPES:
            yield of + "growth:bytes_per_second", {"device_class": device_class, "slope": slope}, a_day / 86400
    for device_class, rate in example.recovery.items():
        yield of + "recovery_rate:bytes_per_second", {"device_class": device_class}, rate


def told() -> list[tuple[str, str]]:
    """(Flags, what is printed) of each example of the page."""
    return [(found[1], found[2]) for found in _EXAMPLE.finditer(PAGE.read_text("utf-8"))]
