"""The OSDs of a whole cluster from the recording rules of the alerts, for ``plumbline ceph top``. No I/O.

The rules ``plumbline:osd_…`` give one series per OSD over five minutes, whichever exporter the data is from; see
``alerts/rules``. They are combined with what the hosts' daemons read from admin sockets. Percentiles are those of the
kind of operation that is broken down, because percentiles of two kinds can't be added.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from plumbline.ceph_top.model import ENDED, OsdPerformance, Suspicion, parts
from plumbline.ceph_top.verdict import seen
from plumbline.core.grouping import grouped
from plumbline.core.units import si
from plumbline.errors import PlumblineError
from plumbline.sources.ceph.osd_perf import READ, READ_MODIFY_WRITE, WRITE
from plumbline.sources.prometheus.api import Series

WINDOW_S = 300.0
_LATENCY, _STORE = "plumbline:osd_latency:mean5m", "plumbline:osd_store_latency:mean5m"
_RATE, _P50, _P99 = (
    "plumbline:osd_operations:rate5m",
    "plumbline:osd_latency:p50_seconds",
    "plumbline:osd_latency:p99_seconds",
)
_INFO, _SUSPECT = "plumbline:osd:info", "plumbline:osd_suspect:info"
_HOST_CAUSE = "plumbline:osd_host_cause:info"
_UP, _BLOCKED = "plumbline_osd_socket_up", "plumbline_osd_blocked_operations"
_ENDED = "plumbline_osd_socket_ended"
_AGE = "plumbline_osd_blocked_operation_age_seconds"
_BEAT, _PEER = "plumbline_osd_heartbeat_seconds", "plumbline_osd_heartbeat_worst_peer_id"
_RTT, _RETRANSMITS = "plumbline:osd_connection_rtt:seconds", "plumbline:osd_connection_retransmits:rate5m"
_FAR_END = "plumbline_osd_connection_worst_peer_id"
NAMES = (
    *(_LATENCY, _STORE, _RATE, _P50, _P99, _INFO, _SUSPECT, _HOST_CAUSE, _UP, _ENDED, _BLOCKED, _AGE, _BEAT, _PEER),
    *(_RTT, _RETRANSMITS, _FAR_END),
)
QUERY = f'{{__name__=~"{"|".join(NAMES)}"}}'  # All series at one moment
_KINDS = (WRITE, READ, READ_MODIFY_WRITE)

_By = Mapping[tuple[str, ...], float]


def osds_of(series: Sequence[Series], *, cluster: str | None, url: str) -> tuple[OsdPerformance, ...]:
    """One row for each OSD. Raises :class:`PlumblineError` without OSD series, or for several clusters."""
    ours = [sample for sample in series if sample.name in NAMES and sample.labels.get("ceph_daemon")]
    clusters = sorted({sample.labels.get("cluster", "") for sample in ours})
    if cluster is not None:
        ours = [sample for sample in ours if sample.labels.get("cluster", "") == cluster]
        if not ours:
            there = f"; there are: {', '.join(filter(None, clusters))}" if any(clusters) else ""
            raise PlumblineError(f"{url}: no OSD of a cluster {cluster!r}{there}")
    elif len(clusters) > 1:
        named = ", ".join(name or "one without a name" for name in clusters)
        raise PlumblineError(f"{url}: OSDs of several clusters ({named}); choose one with --cluster")
    if not ours:
        raise PlumblineError(f"{url}: no series of OSDs; are the recording rules of alerts/ loaded there?")
    by_daemon = grouped(ours, lambda own: own.labels["ceph_daemon"])
    return tuple(_row(daemon, samples) for daemon, samples in by_daemon.items())


def merged(
    local: Sequence[OsdPerformance], remote: Sequence[OsdPerformance]
) -> tuple[tuple[OsdPerformance, ...], tuple[str, ...]]:
    """All OSDs, and notes. For this host's OSDs, figures come from their sockets, which are newer, and verdicts from
    the rules, which cover more time. A note says if an OSD's namesake is on another host, and so in another cluster."""
    there = {osd.daemon: osd for osd in remote}
    notes = []
    for osd in local:
        known = there.get(osd.daemon)
        if known is None:
            there[osd.daemon] = osd
        elif known.host and osd.host and known.host.partition(".")[0] != osd.host.partition(".")[0]:
            notes.append(f"{osd.daemon} of this host is left out: in Prometheus, it is on host {known.host}")
        else:
            there[osd.daemon] = msgspec.structs.replace(
                osd,
                host=known.host or osd.host,
                device_class=known.device_class or osd.device_class,
                suspicion=osd.suspicion if seen(osd) else known.suspicion or osd.suspicion,
            )
    return tuple(there.values()), tuple(notes)


def _row(daemon: str, series: Iterable[Series]) -> OsdPerformance:
    by: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    labels: dict[str, Mapping[str, str]] = {}
    for sample in series:
        names = ("operation", "part", "interface", "statistic", "stage", "verdict", "cause", "figure")
        by[sample.name][tuple(sample.labels[name] for name in names if name in sample.labels)] = sample.value
        labels[sample.name] = sample.labels
    rates = {kind: by[_RATE].get((kind,), 0.0) for kind in _KINDS}
    busy = {kind: rate for kind, rate in rates.items() if rate > 0}
    split = max(busy, key=lambda kind: busy[kind], default="")
    queue, store, peers = _split(split, by[_LATENCY], by[_STORE])
    means = {kind: mean for kind in busy if (mean := by[_LATENCY].get((kind, "total"))) is not None}
    weight = sum(busy[kind] for kind in means)
    interface, worst = _worst(by[_BEAT])
    blocked = by[_BLOCKED]
    ended = bool(by[_ENDED].get(()))
    osd = OsdPerformance(
        daemon=daemon,
        host=labels.get(_INFO, {}).get("hostname", ""),
        device_class=labels.get(_INFO, {}).get("device_class", ""),
        answers=False if ended else bool(by[_UP][()]) if by[_UP] else None,
        suspicion=Suspicion(word=ENDED, reason="no process listens on its admin socket", source="prometheus")
        if ended
        else None,
        operations_per_s=sum(rates.values()) if by[_RATE] else None,
        operations=sum(rates.values()) * WINDOW_S if by[_RATE] else None,
        mean_s=sum(busy[kind] * mean for kind, mean in means.items()) / weight if weight else None,
        p50_s=by[_P50].get((split,)),
        p99_s=by[_P99].get((split,)),
        split_of=split,
        split_mean_s=means.get(split),
        queue_s=queue,
        store_s=store,
        peers_s=peers,
        commit_s=by[_STORE].get(("commit",)),
        device_s=by[_STORE].get(("device",)),
        heartbeat_worst_s=worst,
        heartbeat_median_s=by[_BEAT].get((interface, "median")),
        heartbeat_peer=_named(by[_PEER].get((interface,))),
        heartbeat_interface=interface,
        rtt_worst_s=by[_RTT].get(("worst",)),
        rtt_median_s=by[_RTT].get(("median",)),
        rtt_peer=_named(by[_FAR_END].get(("rtt",))),
        retransmits_per_s=by[_RETRANSMITS].get(()),
        retransmits_peer=_named(by[_FAR_END].get(("retransmits",))),
        blocked=round(sum(blocked.values())) if blocked else None,
        blocked_stage=max(blocked, key=lambda stage: blocked[stage])[0] if any(blocked.values()) else "",
        blocked_age_s=by[_AGE].get(()),
    )
    verdicts = sorted(verdict for (verdict,), value in by[_SUSPECT].items() if value)
    causes = sorted(cause for (cause,), value in by[_HOST_CAUSE].items() if value)
    word_and_reason = seen(osd) or ((" ".join(verdicts), _reason(osd, causes)) if verdicts else None)
    suspicion = (
        Suspicion(word=word_and_reason[0], reason=word_and_reason[1], source="prometheus") if word_and_reason else None
    )
    return msgspec.structs.replace(osd, suspicion=suspicion)


def _split(kind: str, latency: _By, store: _By) -> tuple[float | None, float | None, float | None]:
    total, queue, waits = (latency.get((kind, part)) for part in ("total", "queue", "commit_wait"))
    if total is None or queue is None or waits is None:
        return queue, None, None
    in_store = store.get(("read" if kind == READ else "commit",))
    return parts(kind, queue=queue, process=total - queue, waits=waits, in_store=in_store)


def _worst(beats: _By) -> tuple[str, float | None]:
    worst = {key[0]: value for key, value in beats.items() if key[-1] == "worst"}
    interface = max(worst, key=lambda name: worst[name], default="")
    return interface, worst.get(interface)


def _named(number: float | None) -> str:
    return "" if number is None else f"osd.{number:.0f}"


def _reason(osd: OsdPerformance, causes: Sequence[str]) -> str:
    figures = (
        *(("queue", osd.queue_s), ("store", osd.store_s), ("peers", osd.peers_s)),
        *(("ping", osd.heartbeat_worst_s), (f"TCP round trip to {osd.rtt_peer}".removesuffix(" to "), osd.rtt_worst_s)),
    )
    times = ", ".join(f"{name} {si(seconds, 's')}" for name, seconds in figures if seconds is not None)
    host = ", ".join(cause.replace("_", " ") for cause in causes)
    unlike = f"; unlike the other hosts its host has: {host}" if host else ""
    return f"the rules' verdict over the last minutes{f'; {times}' if times else ''}{unlike}"
