"""How many copies the pools of the cluster keep: known on a node whose daemon has a key to the cluster."""

import shlex
from collections.abc import Iterator
from typing import TypeAlias

from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.cephmap import REPLICATED, CephMap, Pool

Pools: TypeAlias = tuple[Pool, ...]
_COPIES, _MINIMUM = 3, 2  # Ceph's defaults: osd_pool_default_size, and its size - size / 2


def pool_facts(readings: Readings) -> Pools:
    cephmap = readings.get(CephMap)
    return cephmap.pools if cephmap is not None else ()


@check(
    "ceph.pool-copies",
    "Keep at least three copies, and serve nothing from the last one.",
    "Replicated pools, on a node whose daemon reads the cluster's map. Erasure coded pools have other rules.",
    "With two copies, one disk that fails while the other host is down leaves none, and of two that differ nobody "
    "knows which is right. With min_size 1 writes are confirmed with a single copy: losing that disk loses them. Still "
    "so on Ceph 20: its default is 3 with min_size 2, and it asks for a confirmation before a pool gets size 1.",
    "Ceph: pools, osd_pool_default_size; mon/OSDMonitor.cc: mon_allow_pool_size_one",
    Severity.WARNING,
    "ceph osd pool set <pool> size 3 && ceph osd pool set <pool> min_size 2",
)
def copies(pools: Pools) -> Iterator[Verdict]:
    for pool in pools:
        if pool.kind != REPLICATED:
            continue
        enough = pool.copies >= _COPIES and pool.min_copies >= _MINIMUM
        fix = None if enough else Fix(" && ".join(_commands(pool)), caution=_CAUTION)
        actual = f"size {pool.copies}, min_size {pool.min_copies}"
        yield Verdict(f"pool {pool.name}", actual, f"size {_COPIES} or more, min_size {_MINIMUM} or more", fix)


_CAUTION = (
    "More copies need that much more space, and Ceph copies the data: look at `ceph df` and `ceph osd tree` before."
)


def _commands(pool: Pool) -> Iterator[str]:
    name = shlex.quote(pool.name)
    if pool.copies < _COPIES:
        yield f"ceph osd pool set {name} size {_COPIES}"
    if pool.min_copies < _MINIMUM:
        yield f"ceph osd pool set {name} min_size {_MINIMUM}"


CHECKS = (copies,)
