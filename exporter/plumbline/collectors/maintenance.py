"""Announced maintenance as metrics: leases of ``plumbline maintenance``, and Ceph's flags for single hosts."""

from collections.abc import Iterator

from plumbline.background.leases import Lease, Leases
from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge

UNTIL = gauge(
    "plumbline_maintenance_until_timestamp_seconds",
    "When announced maintenance of a host ends or ended; no host: of the whole cluster. Started on this node by"
    " `plumbline maintenance start`, maybe for another host. Exported for a day after its end.",
    ("host", "why", "who"),
)


def samples(leases: Leases) -> Iterator[Sample]:
    latest: dict[tuple[str, str, str], Lease] = {}
    for lease in leases:
        labels = (lease.host, lease.why, lease.who)
        if labels not in latest or lease.until_ts > latest[labels].until_ts:
            latest[labels] = lease
    for labels, lease in latest.items():
        yield UNTIL, labels, lease.until_ts


COLLECTOR: Collector[Host, Leases] = Collector(
    "maintenance",
    declared(globals()),
    lambda host, _skip: host.parts.latest(Leases),
    samples,
    origin="`plumbline maintenance`, by a file in the storage path",
    needs_daemon=True,
)
