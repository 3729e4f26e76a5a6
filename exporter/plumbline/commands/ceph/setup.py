"""What Plumbline needs in a Ceph cluster, and the commands that create or remove it. Pure: facts in, steps out.

Needed: a pool for objects, one for images, a user that can reach only these two; on request a pool per device class,
and a second user for ``ceph tell osd.N bench``. Everything is marked: pools by an application of our own (or a key of
the application ``rbd``), users by their capabilities. What has our name but not our mark belongs to somebody else, and
is neither changed nor removed.

https://docs.ceph.com/en/latest/rados/operations/user-management/ (capabilities)
https://docs.ceph.com/en/latest/rados/operations/pools/ (pools, applications)
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from plumbline.probes.ceph.ceph_access import IMAGE_PREFIX, NAMESPACE

OBJECTS, IMAGES = "objects", "images"
APPLICATION, MARK = "plumbline", ("plumbline", "probe")
"""The application of object pools; the key and value in the application ``rbd`` of image pools."""
GROUPS_PER_OSD = 4
"""Placement groups of an object pool, rounded up to a power of two, so that nearly every OSD is primary of some:
otherwise the canary could not reach it. The autoscaler would remove them again, so it is off there."""
IMAGE_GROUPS = 32  # Ceph's own default; on image pools the autoscaler follows the cluster's settings
MON_CAPS = "allow service mon r, allow service osd r"
"""Allows status, health, mappings and finding the OSDs; no other monitor command, no list of users."""
BENCH_OSD_CAPS = "allow *"
"""``tell osd.N bench`` needs nothing less: the OSD demands all of its rights, in releases 16 to 20."""
BENCH_SUFFIX = "-bench"

# Objects of an image pool without an image name: directories, and parts of images by their id
_RBD_OWN = re.compile(r"rbd_(?!id\.)|journal")


class Pool(Struct, frozen=True):
    name: str
    kind: str  # objects or images
    groups: int
    rule: str = ""  # CRUSH rule; empty: the cluster's default
    device_class: str = ""


class Requirements(Struct, frozen=True):
    pools: tuple[Pool, ...]
    user: str
    keyring: str  # The file to write the user's key to
    bench_user: str = ""
    bench_keyring: str = ""
    root: str = "default"
    failure_domain: str = "host"  # For the rules of device classes

    @property
    def osd_caps(self) -> str:
        """The user's OSD capabilities: our namespace in the object pools, images in the image pools."""
        words = {OBJECTS: "allow rwx pool={0} namespace=" + NAMESPACE, IMAGES: "profile rbd pool={0}"}
        return ", ".join(words[pool.kind].format(pool.name) for pool in self.pools)

    @property
    def users(self) -> dict[str, tuple[str, dict[str, str]]]:
        users = {self.user: (self.keyring, {"mon": MON_CAPS, "osd": self.osd_caps})}
        if self.bench_user:
            users[self.bench_user] = (self.bench_keyring, {"mon": MON_CAPS, "osd": BENCH_OSD_CAPS})
        return users


class PoolFacts(Struct, frozen=True):
    applications: Mapping[str, Mapping[str, str]]
    rule: str = ""
    foreign: str = ""  # An object or image in it that is not ours, if any; known only for pools with our mark

    def is_ours(self, kind: str) -> bool:
        if kind == OBJECTS:
            return APPLICATION in self.applications
        return self.applications.get("rbd", {}).get(MARK[0]) == MARK[1]


class Facts(Struct, frozen=True):
    pools: Mapping[str, PoolFacts] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)  # CRUSH rule → the root it takes (default~ssd)
    users: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # User → capabilities; of the required users
    keyrings: Mapping[str, str] = field(default_factory=dict)
    """Keyring path → the only user whose key it holds, or ``""`` when it holds other keys too; existing files only."""
    outdated: frozenset[str] = frozenset()
    """Users whose key was changed in the cluster since it was written here."""


class Step(Struct, frozen=True):
    argv: tuple[str, ...]
    why: str
    keyring: str = ""  # The only place to write the command's output to, which is a key
    user: str = ""  # User whose key the file holds


class Plan(Struct, frozen=True):
    """Steps in order; ``foreign``: what has our names but is not ours, and what to do about it."""

    steps: tuple[Step, ...] = ()
    foreign: tuple[str, ...] = ()
    there: tuple[str, ...] = ()  # What already is as it should be


def groups_for(osds: int) -> int:
    return max(8, 1 << (max(1, osds * GROUPS_PER_OSD) - 1).bit_length())


def first_foreign(kind: str, listing: Iterable[str]) -> str:
    """The first object in ``rados -p POOL --all ls`` (namespace, tab, object) that is not ours; empty: all are."""
    for line in listing:
        namespace, _, name = line.partition("\t")
        if kind == OBJECTS:
            ours = namespace == NAMESPACE
        else:
            ours = bool(_RBD_OWN.match(name)) or name.startswith(f"rbd_id.{IMAGE_PREFIX}")
        if not ours:
            return f"{namespace}/{name}" if namespace else name
    return ""


def setup(requirements: Requirements, facts: Facts) -> Plan:
    """Create what is missing. No steps at all when anything foreign has one of our names."""
    steps: list[Step] = []
    there: list[str] = []
    foreign = tuple(_foreign(requirements, facts))
    for pool in requirements.pools:
        if pool.rule and pool.rule not in facts.rules:
            words = (pool.rule, requirements.root, requirements.failure_domain, pool.device_class)
            why = f"a rule that places on {pool.device_class} alone"
            steps.append(Step(("ceph", "osd", "crush", "rule", "create-replicated", *words), why))
        if pool.name in facts.pools:
            there.append(f"pool {pool.name}")
        else:
            steps += _make_pool(pool)
    for user, (keyring, caps) in requirements.users.items():
        steps += _make_user(user, keyring, caps, facts)
        if facts.users.get(user) == caps:
            there.append(f"user {user}")
    return Plan((), foreign) if foreign else Plan(tuple(steps), (), tuple(there))


def remove(requirements: Requirements, facts: Facts) -> Plan:
    """Remove what is ours, including pools for device classes; what is not ours stays, and is named."""
    steps: list[Step] = []
    foreign = tuple(_foreign(requirements, facts))
    names = {pool.name: pool for pool in requirements.pools}
    rules: set[str] = set()
    for name, pool in names.items():
        existing = facts.pools.get(name)
        if existing is None or not existing.is_ours(pool.kind) or existing.foreign:
            continue
        confirmed = (name, name, "--yes-i-really-really-mean-it")
        steps.append(Step(("ceph", "osd", "pool", "delete", *confirmed), f"the pool for {pool.kind}, and all in it"))
        rules.add(existing.rule)
    in_use = {existing.rule for name, existing in facts.pools.items() if name not in names or existing.foreign}
    steps += [
        Step(("ceph", "osd", "crush", "rule", "rm", rule), "its rule; no other pool uses it")
        for rule in sorted(rules & {pool.rule for pool in requirements.pools if pool.rule} - in_use)
    ]
    for user, (keyring, caps) in requirements.users.items():
        if user in facts.users and _is_our_user(facts.users[user], caps, requirements):
            steps.append(Step(("ceph", "auth", "rm", user), "the user"))
        if facts.keyrings.get(keyring) == user:
            steps.append(Step(("rm", keyring), "its key on this node; remove it on the others, too", user=user))
    return Plan(tuple(steps), foreign)


def _make_pool(pool: Pool) -> list[Step]:
    groups = str(pool.groups)
    options = (*([pool.rule] if pool.rule else []), *(["--autoscale-mode=off"] if pool.kind == OBJECTS else []))
    create = ("ceph", "osd", "pool", "create", pool.name, groups, groups, "replicated", *options)
    application = ("ceph", "osd", "pool", "application")
    steps = [Step(create, f"for {pool.kind}, with the cluster's default number of replicas")]
    if pool.kind == OBJECTS:
        return [*steps, Step((*application, "enable", pool.name, APPLICATION), "marks it as ours")]
    return [
        *steps,
        Step((*application, "enable", pool.name, "rbd"), "states its purpose"),
        Step((*application, "set", pool.name, "rbd", *MARK), "marks it as ours"),
        Step(("rbd", "pool", "init", pool.name), "so that our user can create images; it waits for an OSD that is up"),
    ]


def _make_user(user: str, keyring: str, caps: Mapping[str, str], facts: Facts) -> list[Step]:
    words = tuple(word for pair in caps.items() for word in pair)
    steps = []
    if user in facts.users and facts.users[user] != caps:
        steps.append(Step(("ceph", "auth", "caps", user, *words), "the rights it needs, and no more"))
    if user not in facts.users or keyring not in facts.keyrings or user in facts.outdated:
        why = "the user, with only the rights it needs; its key goes to a file"
        if user in facts.outdated:
            why = "its key was changed; the new one replaces that in the file"
        steps.append(Step(("ceph", "auth", "get-or-create", user, *words), why, keyring, user))
    return steps


def _foreign(requirements: Requirements, facts: Facts) -> Iterator[str]:
    """What has one of our names but is not ours, and what to do about it."""
    for pool in requirements.pools:
        actual = facts.pools.get(pool.name)
        if actual is not None and not actual.is_ours(pool.kind):
            what = f"used by {', '.join(sorted(actual.applications))}" if actual.applications else "without our mark"
            advice = "keep it" if actual.applications else f"mark it: {_mark_command(pool)}"
            yield f"pool {pool.name} is {what}: name another pool in `ceph`, or, if it is yours and empty, {advice}"
        elif actual is not None and actual.foreign:
            yield f"pool {pool.name} holds an object that is not ours ({actual.foreign}): move it, or name another pool"
    for user, (keyring, caps) in requirements.users.items():
        if user in facts.users and not _is_our_user(facts.users[user], caps, requirements):
            rights = "; ".join(f"{part} '{cap}'" for part, cap in sorted(facts.users[user].items())) or "none"
            yield f"user {user} has rights beyond ours ({rights}): name another user as ceph.user"
        if facts.keyrings.get(keyring, user) != user:
            yield f"{keyring} holds other keys: name another file"
    for pool in requirements.pools:
        root = facts.rules.get(pool.rule)
        if pool.rule and root is not None and root != f"{requirements.root}~{pool.device_class}":
            yield f"CRUSH rule {pool.rule} takes {root}, so it is not ours: rename it"


def _mark_command(pool: Pool) -> str:
    enable = f"ceph osd pool application enable {pool.name}"
    if pool.kind == OBJECTS:
        return f"{enable} {APPLICATION}"
    return f"{enable} rbd; ceph osd pool application set {pool.name} rbd {' '.join(MARK)}"


def _is_our_user(actual: Mapping[str, str], caps: Mapping[str, str], requirements: Requirements) -> bool:
    """Whether its rights are ours, or part of ours under another set of device classes: only our pools."""
    if actual == caps:
        return True
    if not actual.keys() <= {"mon", "osd"} or actual.get("mon", MON_CAPS) != MON_CAPS:
        return False
    prefixes = {pool.name for pool in requirements.pools if not pool.device_class}
    clauses = [clause.strip() for clause in actual.get("osd", "").split(",")]
    pools = [re.fullmatch(r"(?:allow rwx|profile rbd) pool=([^ ]+)(?: namespace=[^ ]+)?", clause) for clause in clauses]
    return all(
        match and any(match[1] == prefix or match[1].startswith(f"{prefix}-") for prefix in prefixes) for match in pools
    )
