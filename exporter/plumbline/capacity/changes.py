"""Changes to a cluster's facts: more hosts or disks, less, another growth, another profile of a pool, a loss. No I/O.

Everything moves in proportion. What is lost goes to the others as their data is spread now; new OSDs take their share
by size from all others of their class and root, so what was uneven stays uneven. ``docs/what-if.md`` has the formulas.
Each raises :class:`~plumbline.errors.PlumblineError` where the cluster has no such class, pool, failure domain or disk.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import median

from msgspec.structs import replace

from plumbline.capacity.figures import moved_in
from plumbline.capacity.model import (
    HOST,
    OSD,
    ROOT,
    DataOsd,
    DataPool,
    Facts,
    Growth,
    Load,
    Loss,
    domains,
    scopes,
)
from plumbline.core.grouping import grouped, sums
from plumbline.errors import PlumblineError, UnknownName

Change = Callable[[Facts], Facts]
# names of OSDs and hosts that are not there yet begin with this
_NEW = "new-"


def with_hosts(
    facts: Facts, device_class: str, hosts: int, *, disks: int | None = None, size: float | None = None
) -> Facts:
    """``hosts`` more, each with as many OSDs of the class as most have, unless ``disks``; of their median size, unless
    ``size``. Where there are racks (or rooms), each goes to the one with the least."""
    known = _members(facts, device_class)
    root = _main_root(known)
    counts = Counter(Counter((osd.root, osd.buckets, osd.host) for osd in known if osd.host).values())
    on_each = disks or max(counts, key=lambda number: (counts[number], number), default=1)
    racks = sums((osd.buckets, osd.size) for osd in known if osd.root == root)
    added: list[DataOsd] = []
    bytes_each = size or median(osd.size for osd in known)
    for _ in range(hosts):
        rack = min(sorted(racks), key=lambda name: racks[name])
        racks[rack] += on_each * bytes_each
        name = f"{_NEW}host-{_news(facts) + len(added)}"
        added += [DataOsd(f"{name}/{disk}", device_class, root, rack, name, bytes_each, 0.0) for disk in range(on_each)]
    return _joined(facts, added)


def with_disks(facts: Facts, device_class: str, disks: int, *, size: float | None = None) -> Facts:
    """``disks`` more, of the median size unless ``size``, each in the host that has the least of the class."""
    known = _members(facts, device_class)
    root = _main_root(known)
    hosts = sums(((osd.buckets, osd.host), osd.size) for osd in known if osd.root == root)
    added: list[DataOsd] = []
    bytes_each = size or median(osd.size for osd in known)
    for _ in range(disks):
        buckets, host = min(sorted(hosts), key=lambda place: hosts[place])
        hosts[buckets, host] += bytes_each
        name = f"{_NEW}disk-{_news(facts) + len(added)}"
        added.append(DataOsd(name, device_class, root, buckets, host, bytes_each, 0.0))
    return _joined(facts, added)


def retired(facts: Facts, device_class: str, target: str) -> Facts:
    """Without the class: its data, growth and operations are the target class's, in the root where that has most."""
    gone, takers = _members(facts, device_class), _members(facts, target)
    if target == device_class:
        raise PlumblineError(f"what-if: {device_class} can't take its own data; name another class")
    root = _main_root(takers)
    names = tuple(osd.daemon for osd in takers if osd.root == root)
    left = [osd for osd in facts.osds if osd.device_class != device_class]
    left = _taking(left, names, sum(osd.used for osd in gone), sum(osd.pgs or 0.0 for osd in gone))
    old, new = facts.load(device_class), facts.load(target)
    both = {slope: new.growth[slope] + old.growth[slope] for slope in new.growth if slope in old.growth}
    operations = None if old.asked is None or new.asked is None else old.asked + new.asked
    loads = {name: load for name, load in facts.loads.items() if name != device_class}
    loads[target] = replace(new, growth=both, asked=operations)
    pools = tuple(
        replace(pool, device_class=target, root=root) if pool.device_class == device_class else pool
        for pool in facts.pools
    )
    return _placed(facts, replace(facts, osds=tuple(left), pools=pools, loads=loads))


def grown(facts: Facts, factor: float, device_class: str | None = None) -> Facts:
    """Growth × ``factor``, of one class and its pools or of all."""
    if device_class is not None:
        _members(facts, device_class)

    def times(growth: Growth) -> Growth:
        return {slope: rate * factor for slope, rate in growth.items()}

    chosen = (device_class,) if device_class is not None else facts.classes
    loads = {
        name: replace(load, growth=times(load.growth)) if name in chosen else load for name, load in facts.loads.items()
    }
    pools = tuple(
        replace(pool, growth=times(pool.growth)) if device_class in (None, pool.device_class) else pool
        for pool in facts.pools
    )
    return replace(facts, loads=loads, pools=pools)


def with_profile(facts: Facts, name: str, *, data: int, parity: int = 0, domain: str | None = None) -> Facts:
    """A pool with another profile: ``data`` copies, or with ``parity`` an erasure code of so many data and parity
    chunks. A read of an erasure code is taken to ask all data chunks, the worst."""
    pool = next((pool for pool in facts.pools if pool.name == name), None)
    if pool is None:
        raise UnknownName(f"what-if: no pool {name!r}; there are: {', '.join(pool.name for pool in facts.pools)}")
    if domain is not None and domain not in (known := (OSD, HOST, *facts.bucket_types)):
        raise UnknownName(f"what-if: no bucket of type {domain!r} is above an OSD; there are: {', '.join(known)}")
    copies = data + parity
    new = replace(
        pool,
        copies=copies,
        raw_ratio=copies / data if parity else float(copies),
        read_osds=float(data) if parity else 1.0,
        failure_domain=domain or pool.failure_domain,
    )
    changed = replace(facts, pools=tuple(new if entry is pool else entry for entry in facts.pools))
    if pool.stored is None or pool.raw_ratio is None or new.raw_ratio is None:
        raise PlumblineError(f"what-if: what pool {name!r} stores is unknown; a daemon with a key must read the map")
    more = new.raw_ratio - pool.raw_ratio
    takers = [osd for osd in facts.osds if osd.root == pool.root and pool.device_class in ("", osd.device_class)]
    pgs = (pool.pgs or 0.0) * (new.copies - pool.copies)
    osds = _taking(facts.osds, [osd.daemon for osd in takers], pool.stored * more, pgs)
    held = sums((osd.device_class, osd.used) for osd in takers)
    everything = sum(held.values())
    # a pool of any class grows on each by what is there
    loads = {
        key: _asked_otherwise(load, facts, pool, new, more * held[key] / everything if everything else more)
        if key in held
        else load
        for key, load in facts.loads.items()
    }
    return _placed(facts, replace(changed, osds=tuple(osds), loads=loads))


def _placed(before: Facts, after: Facts) -> Facts:
    """``after``; refuses pools that it would leave without a place for each copy: no figure of them means anything."""
    for pool in after.pools:
        count = domains(after, pool)
        if pool not in before.pools and count is not None and count < pool.copies:
            domain = pool.failure_domain
            raise PlumblineError(
                f"what-if: pool {pool.name!r} cannot be placed: its {pool.copies} copies or chunks need"
                f" {pool.copies} {domain}s, there are {count}; add {domain}s in the same command, or take another"
                " failure domain or fewer chunks"
            )
    return after


def _asked_otherwise(load: Load, facts: Facts, old: DataPool, new: DataPool, more: float) -> Load:
    """Growth: what the pool grows by, × the difference of raw bytes. Operations: the pool's share of its class's; those
    of a pool of any class count in none."""
    growth = {slope: rate + old.growth[slope] * more for slope, rate in load.growth.items() if slope in old.growth}
    if not old.device_class:
        return replace(load, growth=growth)
    alike = [pool for pool in facts.pools if pool.device_class == old.device_class]
    asked_of = [_operations(pool) for pool in alike]
    before, after = _operations(old), _operations(new)
    if load.asked is None or before is None or after is None or None in asked_of:
        return replace(load, growth=growth, asked=None)
    everything = sum(operations for operations in asked_of if operations is not None)
    factor = 1 + (after - before) / everything if everything else 1.0
    return replace(load, growth=growth, asked=load.asked * factor)


def _operations(pool: DataPool) -> float | None:
    if pool.reads is None or pool.writes is None or pool.read_osds is None:
        return None
    return pool.reads * pool.read_osds + pool.writes * pool.copies


def chosen(facts: Facts, what: str, name: str = "") -> tuple[str, ...]:
    """The OSDs that go with a failure domain (``host``, ``rack``, ``room`` …), a ``db`` (``host/device``) or ``osd`` s
    (separated by commas). Without ``name`` the one with most data."""
    if what not in (usual := (HOST, "rack", "db", OSD)) and what not in facts.bucket_types:
        there = ", ".join(dict.fromkeys((*usual, *facts.bucket_types)))
        raise UnknownName(f"what-if: no bucket of type {what!r} is above an OSD; there are: {there}")

    def label(osd: DataOsd) -> str:
        return osd.db if what == "db" else osd.domain(what)

    wanted = set(name.split(",")) if name else set()
    groups = sums((label(osd), osd.used) for osd in facts.osds if label(osd))
    title = {"db": "separate database", OSD: "OSD"}.get(what, what)
    if not groups:
        more = " (plumbline_disk_use_info, from the OSDs' hosts)" if what == "db" else ""
        raise PlumblineError(f"what-if: no {title} of an OSD is known{more}")
    if unknown := sorted(wanted - groups.keys()):
        there = ", ".join(sorted(groups)[:20]) + (", …" if len(groups) > 20 else "")
        raise UnknownName(f"what-if: no {title} {unknown[0]!r}; there are: {there}")
    wanted = wanted or {max(sorted(groups), key=lambda key: groups[key])}
    return tuple(osd.daemon for osd in facts.osds if label(osd) in wanted)


def lost(facts: Facts, daemons: Collection[str]) -> Facts:
    """Without these OSDs, and with what they held on the others, as far as their pools' rules let it be copied."""
    gone = frozenset(daemons)
    left = [osd for osd in facts.osds if osd.daemon not in gone]
    if not left:
        raise PlumblineError("what-if: no OSD would be left; lose less")
    losses = dict(facts.losses)
    lost_osds = (osd for osd in facts.osds if osd.daemon in gone)
    for (root, device_class), members in grouped(lost_osds, lambda osd: (osd.root, osd.device_class)).items():
        within = scopes(facts, root, device_class)
        moves: dict[tuple[str, ...], list[DataOsd]] = defaultdict(list)
        for together in grouped(members, lambda osd: (osd.buckets, osd.host)).values():
            moves[_takers(together[0], left, within)] += together
        unrestored, took = sum(osd.used for osd in moves.pop((), [])), []
        for names, moved in moves.items():
            data = sum(osd.used for osd in moved)
            left = _taking(left, names, data, sum(osd.pgs or 0.0 for osd in moved))
            took.append(moved_in(data, len(names), facts.load(device_class)) if data else 0.0)
        # beside each other: the longest, if each is known
        restore_s = None if None in took else max(filter(None, took), default=0.0)
        losses[device_class] = _together(losses.get(device_class), members, unrestored, restore_s)
    return replace(facts, osds=tuple(left), losses=losses)


def _together(before: Loss | None, members: Sequence[DataOsd], unrestored: float, restore_s: float | None) -> Loss:
    """With what was lost before: one restoration after the other."""
    hosts = tuple(sorted({osd.host for osd in members if osd.host}))
    used = sum(osd.used for osd in members)
    if before is None:
        return Loss(hosts, len(members), used, unrestored, restore_s)
    known = None if restore_s is None or before.restore_s is None else restore_s + before.restore_s
    names = tuple(dict.fromkeys((*before.hosts, *hosts)))
    return Loss(names, before.osds + len(members), before.used + used, before.unrestored + unrestored, known)


def _takers(osd: DataOsd, left: Iterable[DataOsd], within: Collection[str]) -> tuple[str, ...]:
    """The OSDs that a lost one's data goes to: of the narrowest scope that some pool asks for and that has any."""
    others = [entry for entry in left if (entry.root, entry.device_class) == (osd.root, osd.device_class)]

    def inside(scope: str) -> list[DataOsd]:
        return [other for other in others if scope == ROOT or other.domain(scope) == osd.domain(scope)]

    takers = min(filter(None, map(inside, sorted(within))), key=len, default=[])
    return tuple(osd.daemon for osd in takers)


def _taking(osds: Iterable[DataOsd], daemons: Collection[str], data: float, pgs: float) -> list[DataOsd]:
    """``data`` and ``pgs`` are added to (or taken from) these OSDs in proportion to what they hold; by size if that is
    nothing."""
    everyone, names = list(osds), frozenset(daemons)
    takers = [osd for osd in everyone if osd.daemon in names]
    used, size = sum(osd.used for osd in takers), sum(osd.size for osd in takers)
    data = max(data, -used)  # compressed or sparse data may use less than it counts
    all_pgs = sum(osd.pgs or 0.0 for osd in takers)

    def taken(osd: DataOsd) -> DataOsd:
        more = data * (osd.used / used if used else osd.size / size)
        part = osd.pgs / all_pgs if osd.pgs is not None and all_pgs else 0.0
        return replace(osd, used=osd.used + more, pgs=None if osd.pgs is None else osd.pgs + pgs * part)

    return [taken(osd) if osd.daemon in names else osd for osd in everyone]


def _members(facts: Facts, device_class: str) -> tuple[DataOsd, ...]:
    if osds := facts.of(device_class):
        return osds
    raise UnknownName(f"what-if: no OSD of the class {device_class!r}; there are: {', '.join(facts.classes)}")


def _main_root(osds: Iterable[DataOsd]) -> str:
    roots = sums((osd.root, osd.size) for osd in osds)
    return max(sorted(roots), key=lambda root: roots[root])


def _news(facts: Facts) -> int:
    """How many OSDs were added before: names of another addition continue from there."""
    return sum(osd.daemon.startswith(_NEW) for osd in facts.osds)


def _joined(facts: Facts, added: Sequence[DataOsd]) -> Facts:
    """The new ones take their share by size of what the class holds in their root; each other keeps the same part."""
    if not added:
        return facts
    first = added[0]
    old = [osd for osd in facts.osds if (osd.root, osd.device_class) == (first.root, first.device_class)]
    before, used = sum(osd.size for osd in old), sum(osd.used for osd in old)
    pgs = sum(osd.pgs or 0.0 for osd in old)
    after = before + sum(osd.size for osd in added)
    kept = before / after
    names = {osd.daemon for osd in old}
    osds = [
        replace(osd, used=osd.used * kept, pgs=None if osd.pgs is None else osd.pgs * kept)
        if osd.daemon in names
        else osd
        for osd in facts.osds
    ]
    osds += [replace(osd, used=used * osd.size / after, pgs=pgs * osd.size / after if pgs else None) for osd in added]
    return replace(facts, osds=tuple(osds))
