"""Who loads this host's OSDs: ``plumbline ceph top --clients``.

The operations in flight are looked at ten times a second. How often one is seen is how long it takes, so a share of all
that was seen is a share of the OSDs' working time. How sure that is depends on how many different operations it is.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from plumbline.errors import Unavailable
from plumbline.sources.ceph.adminsocket import Answer, ask
from plumbline.sources.ceph.osd_clients import LOOK_EVERY_S, InFlight, Owner, look
from plumbline.sources.ceph.osds import TIMEOUT_S

ENOUGH = 10
"""Different operations below which nobody is named: so few may be one client's burst."""
_Z = 2.576  # standard deviations: 99 % of all samples are within them
_A_THIRD, _TIMES = 1 / 3, 3.0  # the least work of who is named: so much of all, so many times as much as the next one


class Load(Struct, frozen=True, kw_only=True):
    """One image, bucket, file or namespace. ``share`` of what was seen in flight, ``writes`` of its own operations.
    ``hosts``: the clients' addresses, those with the most operations first."""

    owner: Owner
    share: float
    operations: int
    writes: float
    hosts: tuple[str, ...]


class Clients(Struct, frozen=True, kw_only=True):
    """``loads``: the largest first. ``culprit``: the one that stands out, if any does; it makes at least
    ``at_least`` of the work, in 99 of 100 samples."""

    osds: tuple[str, ...]
    interval_s: float
    operations: int
    loads: tuple[Load, ...]
    culprit: Load | None
    at_least: float
    notes: tuple[str, ...]


def watch_clients(
    sockets: Mapping[str, Path],
    *,
    interval_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    ask_all: Callable[..., list[Answer]] = ask,
) -> Clients:
    """Look for ``interval_s`` at the OSDs with these ``sockets``. One that does not answer is asked no more, and noted;
    raises its error when none answers."""
    asked = dict(sockets)
    notes: list[str] = []
    seen: Counter[InFlight] = Counter()
    began = clock()
    while asked and clock() - began < interval_s:
        look_at = clock()
        operations, faults = look(asked, TIMEOUT_S, ask_all)
        seen.update(operations)
        for osd, fault in faults.items():
            notes.append(str(fault))
            del asked[osd]
        sleep(max(0.0, look_at + LOOK_EVERY_S - clock()))
    if not asked:
        raise Unavailable(notes[0] if notes else "no OSD was asked")
    return summary(seen, osds=tuple(asked), interval_s=clock() - began, notes=tuple(notes))


def summary(seen: Iterable[InFlight], *, osds: tuple[str, ...], interval_s: float, notes: tuple[str, ...]) -> Clients:
    """What was seen at all looks: an operation as often as it was, or a counter of them."""
    loads = sorted(_loads(Counter(seen)), key=lambda load: (-load.share, load.owner))
    operations = sum(load.operations for load in loads)
    culprit, at_least = None, 0.0
    if operations >= ENOUGH:
        first, rest = loads[0], loads[1].share if len(loads) > 1 else 0.0
        both = first.share + rest
        lowest, of_both = _lowest(first.share, operations), _lowest(first.share / both, operations * both)
        if lowest >= _A_THIRD and of_both > 1 / 2 and first.share >= _TIMES * rest:
            culprit, at_least = first, lowest
    return Clients(
        osds=osds,
        interval_s=interval_s,
        operations=operations,
        loads=tuple(loads),
        culprit=culprit,
        at_least=at_least,
        notes=notes,
    )


def _loads(seen: Counter[InFlight]) -> Iterable[Load]:
    by_owner: dict[Owner, list[InFlight]] = defaultdict(list)
    addresses: dict[str, str] = {}
    for operation in seen:
        by_owner[operation.owner].append(operation)
        if operation.host:
            addresses[operation.client] = operation.host
    total = seen.total()
    for owner, operations in by_owner.items():
        different = {(operation.client, operation.number): operation for operation in operations}
        hosts = Counter(addresses.get(client, client) for client, _ in different)
        yield Load(
            owner=owner,
            share=sum(map(seen.__getitem__, operations)) / total,
            operations=len(different),
            writes=sum(operation.writes for operation in different.values()) / len(different),
            hosts=tuple(host for host, _ in hosts.most_common()),
        )


def _lowest(share: float, count: float) -> float:
    """The lower end of Wilson's interval: the least share in the whole that explains this one in a sample."""
    middle = share + _Z**2 / (2 * count)
    half = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return (middle - half) / (1 + _Z**2 / count)
