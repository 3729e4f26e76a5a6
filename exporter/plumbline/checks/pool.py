"""Monitors and pools of the cluster: known on a node whose daemon has a key to the cluster."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.checks.text import plural
from plumbline.core.words import first_few
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.cephmap import MAX_PGS, MIXED, REPLICATED, CephMap, Pool

Map: TypeAlias = CephMap | None
_COPIES, _MINIMUM = 3, 2  # Ceph's defaults: osd_pool_default_size, and its size - size / 2
_MONITORS = 3
_FEWEST_PGS = 50


def pool_facts(readings: Readings) -> Map:
    return readings.get(CephMap)


@check(
    "ceph.monitors",
    "Have at least three monitors, and an odd number of them.",
    "Clusters, on a node whose daemon reads the cluster's map. A warning with one or two monitors.",
    "Monitors need a majority: of three, one may fail; of one or two, none; of four no more than of three. Still so on "
    "Ceph 20.",
    "unnoba-2020, 3.1 (more than two, and odd); Ceph: monitor configuration reference, monitor quorum",
    Severity.WARNING,
    "ceph orch apply mon --placement=<number>",
)
def monitors(cephmap: Map) -> Iterator[Verdict]:
    if cephmap is None or not cephmap.monitors:
        return
    number = cephmap.monitors
    enough = number >= _MONITORS
    caution = (
        "With cephadm: ceph orch apply mon --placement=3 (or 5). Each on a host, in a rack, of its own where there are"
        " as many."
    )
    fix = None if enough and number % 2 else Fix("ceph mon dump", caution=f"This only shows. {caution}")
    severity = Severity.INFO if enough else None
    yield Verdict("monitors", plural(number, "monitor"), f"{_MONITORS} or more, and odd", fix, severity)


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
def copies(cephmap: Map) -> Iterator[Verdict]:
    for pool in cephmap.pools if cephmap is not None else ():
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


@check(
    "ceph.placement-groups",
    f"Let Ceph scale the number of placement groups, or keep {_FEWEST_PGS} to {MAX_PGS} on an OSD.",
    "Device classes with OSDs, on a node whose daemon reads the cluster's map: the mean of their OSDs, with the copies "
    "of each placement group. Fewer are a finding only where a pool of the class is not autoscaled.",
    "With few, data is spread unevenly: the fullest OSD fills first, and limits the pool. With many, OSDs need more "
    "memory, and recovery more CPU time. Still so on Ceph 20: its autoscaler is on for new pools, aims at "
    "mon_target_pg_per_osd and acts where a pool is off by a factor of three.",
    "unnoba-2020, 4.4.7 (autoscaler on); Ceph: placement groups, mon_max_pg_per_osd",
    Severity.WARNING,
    "ceph osd pool set <pool> pg_autoscale_mode on",
)
def placement_groups(cephmap: Map) -> Iterator[Verdict]:
    if cephmap is None:
        return
    for device_class, mean in _mean_pgs(cephmap).items():
        by_hand = [pool.name for pool in cephmap.pools if _takes(pool, device_class) and not pool.autoscaled]
        few = mean < _FEWEST_PGS and bool(by_hand)
        fix = Fix("ceph osd pool autoscale-status", caution=_AUTOSCALE) if few or mean > MAX_PGS else None
        because = f"Not autoscaled: {first_few(sorted(by_hand))}." if fix and by_hand else ""
        severity = Severity.INFO if few else None
        expected = f"{_FEWEST_PGS} to {MAX_PGS}, or autoscaled"
        yield Verdict(f"class {device_class}", f"{mean:,.0f} on an OSD", expected, fix, severity, because)


_AUTOSCALE = (
    "This only shows what the autoscaler wishes. `ceph osd pool set POOL pg_autoscale_mode on` lets it act, and data"
    " moves."
)


def _mean_pgs(cephmap: CephMap) -> Mapping[str, float]:
    """Device class → mean number of copies of placement groups on its OSDs that are in. A pool without a class is
    spread by weight; where a rule takes several classes, nothing is known."""
    number: Counter[str] = Counter()
    weight: defaultdict[str, float] = defaultdict(float)
    for osd in cephmap.osds:
        if osd.place is not None and osd.reweight_ratio > 0 and osd.place.weight > 0:
            number[osd.place.device_class] += 1
            weight[osd.place.device_class] += osd.place.weight * osd.reweight_ratio
    if any(pool.rule.device_class == MIXED for pool in cephmap.pools):
        return {}
    total = sum(weight.values())
    sums = {
        name: sum(
            pool.pgs * pool.copies * (1 if pool.rule.device_class else weight[name] / total)
            for pool in cephmap.pools
            if _takes(pool, name)
        )
        for name in sorted(filter(None, number))
    }
    return {name: groups / number[name] for name, groups in sums.items() if groups}


def _takes(pool: Pool, device_class: str) -> bool:
    return pool.rule.device_class in ("", device_class)


CHECKS = (monitors, copies, placement_groups)
