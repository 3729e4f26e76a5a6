"""What-if: a cluster's recorded facts at one moment, and where its pools' rules may put data. No I/O.

A change is a function from facts to facts, so that changes can follow each other (:mod:`.changes`); the figures of what
comes out are those of the recording rules (:mod:`.figures`). Bytes, and bytes per second; shares are 0 to 1; ``None``
means unknown, not zero.
"""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field

from plumbline.sources.ceph.cephmap import MAX_PGS

HOST, OSD = "host", "osd"
# data of lost OSDs may go to any other OSD of the root
ROOT = "root"
# Ceph's default number of copies: with no more hosts than that, and no map, nothing is known of what is copied again
ASSUMED_COPIES = 3
SLOPES = ("3d", "14d", "30d")
# bucket type → name, sorted: what is above a host, such as ("rack", "r1"), ("room", "east")
Buckets = tuple[tuple[str, str], ...]
# slope → bytes per second
Growth = Mapping[str, float]


class DataOsd(Struct, frozen=True):
    """An OSD that holds data. ``pgs``: its placement groups; ``db``: ``host/device`` of its separate database."""

    daemon: str
    device_class: str
    root: str
    buckets: Buckets
    host: str
    size: float
    used: float
    pgs: float | None = None
    db: str = ""

    @property
    def ratio(self) -> float:
        return self.used / self.size

    def domain(self, kind: str) -> str:
        """The failure domain of this type that it is in; empty if it is in none."""
        if kind in (HOST, OSD):
            return self.host if kind == HOST else self.daemon
        return next((name for bucket, name in self.buckets if bucket == kind), "")


class DataPool(Struct, frozen=True):
    """``device_class`` is empty for a rule that takes any. ``stored``, ``quota_bytes`` before replication; ``pgs``: its
    placement groups, without copies; a quota that is not set is ``None``; ``reads`` and ``writes`` per second."""

    name: str
    failure_domain: str
    root: str
    device_class: str
    copies: int
    raw_ratio: float | None = None
    read_osds: float | None = None
    stored: float | None = None
    reads: float | None = None
    writes: float | None = None
    growth: Growth = field(default_factory=dict)
    pgs: float | None = None
    objects: float | None = None
    quota_bytes: float | None = None
    quota_objects: float | None = None
    application: str = ""


class Load(Struct, frozen=True):
    """A device class: ``asked`` operations per second in its busiest hours, what one OSD can do (``osd_iops``, as
    ``measured_by`` osd-bench or mclock), ``recovery`` in bytes per second, by ``recovered_by`` OSDs."""

    growth: Growth = field(default_factory=dict)
    asked: float | None = None
    osd_iops: float | None = None
    measured_by: str = ""
    recovery: float | None = None
    recovered_by: int = 0


class Loss(Struct, frozen=True):
    """OSDs of one class that are lost. ``unrestored``: bytes that no other OSD may hold; ``restore_s``: seconds until
    the others hold the rest."""

    hosts: tuple[str, ...]
    osds: int
    used: float
    unrestored: float
    restore_s: float | None


class Facts(Struct, frozen=True):
    """A cluster at one moment; ``losses``: device class → what was lost."""

    cluster: str
    osds: tuple[DataOsd, ...]
    pools: tuple[DataPool, ...]
    backfillfull: float
    full: float
    loads: Mapping[str, Load] = field(default_factory=dict)
    losses: Mapping[str, Loss] = field(default_factory=dict)
    max_pgs: int = MAX_PGS

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted({osd.device_class for osd in self.osds}))

    def of(self, device_class: str) -> tuple[DataOsd, ...]:
        return tuple(osd for osd in self.osds if osd.device_class == device_class)

    @property
    def bucket_types(self) -> tuple[str, ...]:
        """Types of buckets above hosts, that with the most of them first: racks before rooms."""
        names = sorted({bucket for osd in self.osds for bucket in osd.buckets})
        counts = Counter(kind for kind, _ in names)
        return tuple(sorted(counts, key=lambda kind: (-counts[kind], kind)))

    def load(self, device_class: str) -> Load:
        return self.loads.get(device_class, Load())


def domains(facts: Facts, pool: DataPool) -> int | None:
    """How many failure domains the pool's rule can choose from: of its class, or of all in its root."""
    if not pool.root:
        return None
    names = {
        osd.domain(pool.failure_domain)
        for osd in facts.osds
        if osd.root == pool.root and pool.device_class in ("", osd.device_class)
    }
    return len(names - {""}) or None


def heals(facts: Facts, pool: DataPool) -> bool:
    """After losing one failure domain there are enough others for all copies; one copy is never restored."""
    count = domains(facts, pool)
    return count is not None and count > pool.copies > 1


def scopes(facts: Facts, root: str, device_class: str) -> set[str]:
    """Where the data of lost OSDs of this class goes, by what its pools ask: ``root`` (any other), ``host`` or another
    failure domain (only inside the one they were in, because every other has a copy already). Without a map (an empty
    ``root``) it is unknown with few hosts: none."""
    return {scope for scope, _ in lost_with(facts, root, device_class)}


def lost_with(facts: Facts, root: str, device_class: str) -> set[tuple[str, str]]:
    """(Scope as in :func:`scopes`, failure domain that is lost), as ``plumbline:capacity_lost_with:info`` has it."""
    if not root:
        hosts = {osd.host for osd in facts.of(device_class) if osd.host}
        return {(ROOT, HOST)} if len(hosts) > ASSUMED_COPIES else set()
    pairs = set()
    for pool in facts.pools:
        if pool.root != root or pool.device_class not in ("", device_class) or domains(facts, pool) is None:
            continue
        if pool.failure_domain == OSD:
            pairs.add((ROOT, HOST))
        elif heals(facts, pool):
            pairs.add((ROOT, pool.failure_domain))
        elif pool.copies > 1:
            pairs.add((pool.failure_domain, pool.failure_domain))
    return pairs
