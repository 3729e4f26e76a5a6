"""Which OSD serves an object: we compute the placement group with Ceph's own hash, and ask the monitors for the OSD.

    name → placement group    ``ceph_str_hash_rjenkins`` over ``namespace \\x1f name``, then ``ceph_stable_mod``
                              (src/common/ceph_hash.cc, src/include/rados.h, src/osd/osd_types.cc ``hash_key``)
    placement group → OSDs    ``ceph osd map POOL NAME NAMESPACE``: includes upmaps, temporary and down OSDs

With the first half computed here, one query per placement group is enough; random names would query the same groups
again and again. A pool has no more primaries than placement groups: an OSD that is primary for no group can't be
reached in this pool, and is reported.

Light modules only: the canary's worker imports this.
"""

from __future__ import annotations

from random import Random

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from plumbline.probes.ceph.librados import Cluster

_SEED = 0x9E3779B9
_32 = 0xFFFFFFFF


def hash_name(name: str, namespace: str = "") -> int:
    """32 bits, as every Ceph client computes them (``object_hash rjenkins``, the only one in use)."""
    key = (f"{namespace}\x1f{name}" if namespace else name).encode()
    a = b = _SEED
    c = 0
    whole = len(key) - len(key) % 12
    for at in range(0, whole, 12):
        a = a + int.from_bytes(key[at : at + 4], "little") & _32
        b = b + int.from_bytes(key[at + 4 : at + 8], "little") & _32
        c = c + int.from_bytes(key[at + 8 : at + 12], "little") & _32
        a, b, c = _mix(a, b, c)
    rest = key[whole:]
    a = a + int.from_bytes(rest[:4], "little") & _32
    b = b + int.from_bytes(rest[4:8], "little") & _32
    c = c + len(key) + (int.from_bytes(rest[8:], "little") << 8) & _32  # the lowest byte is for the length
    return _mix(a, b, c)[2]


def stable_mod(hashed: int, groups: int) -> int:
    """The placement group of a hash in a pool of ``groups`` (any number, not only powers of two)."""
    mask = (1 << (groups - 1).bit_length()) - 1
    low = hashed & mask
    return low if low < groups else hashed & (mask >> 1)


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    a = (a - b - c ^ c >> 13) & _32
    b = (b - c - a ^ a << 8) & _32
    c = (c - a - b & _32 ^ b >> 13) & _32
    a = (a - b - c & _32 ^ c >> 12) & _32
    b = (b - c - a ^ a << 16) & _32
    c = (c - a - b & _32 ^ b >> 5) & _32
    a = (a - b - c & _32 ^ c >> 3) & _32
    b = (b - c - a ^ a << 10) & _32
    c = (c - a - b & _32 ^ b >> 15) & _32
    return a, b, c


class Placement:
    """For each OSD that is primary for some group in one namespace: two object names in one placement group.
    ``primary`` asks the monitors for a name's acting primary; ``pause`` is called before each query."""

    def __init__(
        self,
        primary: Callable[[str], int],
        *,
        namespace: str,
        prefix: str,
        random: Random,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._primary, self._namespace, self._prefix = primary, namespace, prefix
        self._random, self._pause = random, pause
        self._groups = 0
        self.names: dict[int, tuple[str, str]] = {}  # OSD → names
        self.asked = 0  # Queries to the monitors so far

    def choose(self, osds: Collection[int], groups: int) -> None:
        """Find names for ``osds`` in a pool of ``groups``; known names are checked, and kept if still valid."""
        if groups != self._groups:  # two names of one group may now be in two groups
            self._groups, self.names = groups, {}
        self.names = {osd: names for osd, names in self.names.items() if osd in osds and self._ask(names[0]) == osd}
        missing = set(osds) - self.names.keys()
        order = list(range(groups))
        self._random.shuffle(order)  # many hosts start at a time: each queries other groups first
        for group in order:
            if not missing:
                return
            osd = self._ask(next(self._names_in(group, "map")))
            if osd in missing:
                missing.discard(osd)
                names = self._names_in(group, f"osd.{osd}")
                self.names[osd] = next(names), next(names)

    def _ask(self, name: str) -> int:
        self.asked += 1
        self._pause()
        return self._primary(name)

    def _names_in(self, group: int, part: str) -> Iterator[str]:
        """``<prefix>/osd.3/17``: the names with numbers that map to the group."""
        number = 0
        while True:
            name = f"{self._prefix}/{part}/{number}"
            if stable_mod(hash_name(name, self._namespace), self._groups) == group:
                yield name
            number += 1


def pool_groups(cluster: Cluster, pool: str) -> int:
    return int(cluster.mon_command("osd pool get", {"pool": pool, "var": "pg_num"})["pg_num"])


def primary_of(cluster: Cluster, pool: str, namespace: str, name: str) -> int:
    """The OSD that currently serves an object, -1 for none."""
    return int(
        cluster.mon_command("osd map", {"pool": pool, "object": name, "nspace": namespace}).get("acting_primary", -1)
    )


def osdmap_epoch(cluster: Cluster) -> int:
    return int(cluster.mon_command("osd stat")["epoch"])
