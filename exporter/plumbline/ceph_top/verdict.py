"""The suspected cause for a slow OSD, from the figures on one screen. No I/O. Rather no suspicion than a wrong one.

The thresholds are those of the alerts (``alerts/config/osd.libsonnet``), which have minutes of history. A screen covers
only a few seconds, so OSDs with a handful of operations are not judged. An OSD is compared with the median of its
device class on the screen, itself included, two figures have to agree, and what is out of line has to be a good part of
its operations: so there is no floor as the alerts have one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

import msgspec

from plumbline.ceph_top.model import BLOCKED, HUNG, OsdPerformance, Suspicion
from plumbline.core.grouping import grouped
from plumbline.core.units import count_text, si

DISK, PEER, NETWORK, QUEUE = "disk", "peer", "network", "queue"


class Thresholds(msgspec.Struct, frozen=True):
    """The thresholds of ``alerts/config/osd.libsonnet``, which gives the reasons."""

    minimum_osds: int = 5
    minimum_operations: int = 20
    """In the interval. With fewer, one slow operation dominates the mean. The rules use a rate instead."""
    ratio: float = 3.0
    agree_ratio: float = 2.0
    share: float = 0.5
    queue_share: float = 0.15
    heartbeat_floor_s: float = 30e-3
    heartbeat_spread: float = 1.5
    heartbeat_share: float = 0.5
    connection_floor_s: float = 2e-3
    connection_spread: float = 1.5
    connection_share: float = 0.15
    connection_loss_share: float = 0.5
    connection_loss_per_s: float = 2.0
    connection_timeout_s: float = 0.2


def suspect(
    osds: Sequence[OsdPerformance], limits: Thresholds | None = None
) -> tuple[tuple[OsdPerformance, ...], tuple[str, ...]]:
    """The rows with their suspicions, and a note for each suspected OSD that is not among them."""
    limits = limits or Thresholds()
    accused = _accused(osds, limits)
    least = limits.minimum_operations
    busy = (osd for osd in osds if osd.operations is not None and osd.operations >= least)
    classes = grouped(busy, lambda osd: osd.device_class)
    judged = []
    for osd in osds:
        peers = classes.get(osd.device_class, [])
        verdict = seen(osd) or (
            _of_load(osd, peers, limits) if osd in peers and len(peers) >= limits.minimum_osds else None
        )
        word, reason = verdict or (NETWORK, accused.get(osd.daemon, ""))
        suspicion = Suspicion(word=word, reason=reason, source="sockets") if reason else None
        judged.append(msgspec.structs.replace(osd, suspicion=suspicion))
    shown = {osd.daemon for osd in osds}
    return tuple(judged), tuple(f"{name}: {reason}" for name, reason in accused.items() if name not in shown)


def seen(osd: OsdPerformance) -> tuple[str, str] | None:
    """Verdicts that need no comparison: it hangs or has ended, or operations are blocked."""
    if osd.answers is False:
        known = osd.suspicion
        return (known.word, known.reason) if known else (HUNG, "its admin socket does not answer")
    if osd.blocked:
        age = f" up to {osd.blocked_age_s:.0f} s" if osd.blocked_age_s else ""
        where = f"; most wait for: {osd.blocked_stage}" if osd.blocked_stage else ""
        return BLOCKED, f"{count_text(osd.blocked, 'operation')} blocked{age}{where}"
    return None


def _of_load(osd: OsdPerformance, peers: Sequence[OsdPerformance], limits: Thresholds) -> tuple[str, str] | None:
    def out(figure: Callable[[OsdPerformance], float | None], ratio: float) -> float | None:
        """The median of the peers if this OSD is at least ``ratio`` times above it, else ``None``."""
        own, middle = figure(osd), _median(map(figure, peers))
        if own is None or middle is None or own < ratio * middle:
            return None
        return middle

    def share(part: float | None) -> float:
        """Share of an operation of the kind that is broken down; at most 1, as its counters are not read together."""
        return min(part / osd.split_mean_s, 1.0) if part is not None and osd.split_mean_s else 0.0

    store = out(lambda load: load.store_s, limits.ratio)
    if store is not None and share(osd.store_s) >= limits.share:
        agrees = (out(figure, limits.agree_ratio) for figure in (lambda load: load.replica_s, lambda load: load.p99_s))
        if any(middle is not None for middle in agrees):
            return DISK, _against("its own store", osd, osd.store_s, store, share(osd.store_s))
    slower = out(lambda load: load.mean_s, limits.agree_ratio) is not None
    queue = out(lambda load: load.queue_s, limits.ratio)
    if slower and queue is not None and share(osd.queue_s) >= limits.queue_share and store is None:
        return QUEUE, _against("queue", osd, osd.queue_s, queue, share(osd.queue_s))
    if share(osd.peers_s) < limits.share or store is not None:
        return None
    waits = out(lambda load: load.peers_s, limits.ratio)
    middle = _median(peer.peers_s for peer in peers)
    waiting = _against("replicas and network", osd, osd.peers_s, middle, share(osd.peers_s))
    if slow := _of_connections(osd, peers, limits):
        return NETWORK, f"{waiting}; {slow}"
    return (PEER, waiting) if slower and waits is not None else None


def _of_connections(osd: OsdPerformance, peers: Sequence[OsdPerformance], limits: Thresholds) -> str:
    """What its TCP connections have that explains the wait for replicas; empty where they don't, or none is known."""
    least = limits.connection_share * (osd.peers_s or 0.0)
    worst, middle = osd.rtt_worst_s, osd.rtt_median_s
    if worst is not None and middle is not None:
        if worst >= max(limits.connection_floor_s, least, limits.connection_spread * middle):
            return f"a TCP round trip to {osd.rtt_peer} takes {_time(worst)}, to its median peer {_time(middle)}"
        others = _median(peer.rtt_median_s for peer in peers)
        if others is not None and middle >= max(limits.connection_floor_s, least, limits.ratio * others):
            return f"a TCP round trip to its median peer takes {_time(middle)}, for the median OSD {_time(others)}"
    lost, done = osd.retransmits_per_s, osd.operations_per_s
    costs = limits.connection_timeout_s * (lost or 0.0)
    if lost is None or done is None or lost < limits.connection_loss_per_s:
        return ""
    if costs >= limits.connection_loss_share * (osd.peers_s or 0.0) * done:
        return f"{lost:.1f} TCP segments a second are sent again, most of them to {osd.retransmits_peer}"
    return ""


def _against(what: str, osd: OsdPerformance, own_s: float | None, middle_s: float | None, share: float) -> str:
    return f"{what}: {_time(own_s)} of each {osd.split_of} ({share:.0%}); the median of its class is {_time(middle_s)}"


def _accused(osds: Sequence[OsdPerformance], limits: Thresholds) -> dict[str, str]:
    """OSD → reason, for OSDs that most others find the slowest to answer their pings."""
    reporting = [osd for osd in osds if osd.heartbeat_worst_s is not None and osd.heartbeat_median_s is not None]
    votes: Counter[str] = Counter(
        osd.heartbeat_peer
        for osd in reporting
        if osd.heartbeat_peer != osd.daemon
        and (osd.heartbeat_worst_s or 0.0) >= limits.heartbeat_floor_s
        and (osd.heartbeat_worst_s or 0.0) >= limits.heartbeat_spread * (osd.heartbeat_median_s or 0.0)
    )
    accused = {}
    for name, count in votes.items():
        others = [osd for osd in reporting if osd.daemon != name]
        if len(others) + 1 >= limits.minimum_osds and count > limits.heartbeat_share * len(others):
            slowest = max(osd.heartbeat_worst_s or 0.0 for osd in others if osd.heartbeat_peer == name)
            accused[name] = f"{count} of {len(others)} OSDs find it the slowest to answer pings, up to {_time(slowest)}"
    return accused


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _time(seconds: float | None) -> str:
    return "unknown" if seconds is None else si(seconds, "s")
