"""Reads OSDs repeatedly for ``plumbline ceph top``: from admin sockets, from Prometheus, or both."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from plumbline.ceph_top.from_prometheus import QUERY, WINDOW_S, merged, osds_of
from plumbline.ceph_top.model import OsdPerformance, Top, between, slowest_first, with_connections
from plumbline.ceph_top.verdict import suspect
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.ceph.osd_connections import ConnectionReader, OsdConnections
from plumbline.sources.ceph.osds import TIMEOUT_S, OsdReading, OsdState, osds_here, read_osds
from plumbline.sources.prometheus.access import OPEN, Access
from plumbline.sources.prometheus.api import read_vector

PROMETHEUS_TIMEOUT_S = 10.0


class Where(Struct, frozen=True):
    """The sources. ``sockets``: absolute globs; ``prometheus``: a server's URL."""

    sockets: Sequence[str]
    host: str
    prometheus: str | None = None
    access: Access = OPEN
    cluster: str | None = None
    classes: Mapping[str, str] = field(default_factory=dict)  # OSD → device class, as far as this host knows
    roots: Roots | None = None  # for connections of OSDs older than Ceph 19.2.1, which the kernel knows


def tops(
    where: Where,
    *,
    interval_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Top]:
    """One screen after each interval, endlessly. Errors on the first screen are raised; later ones become notes."""
    asked_at = clock()
    before, reader = _sockets(where), ConnectionReader(where.roots)
    connected = _connections(where, reader)
    if where.prometheus and not before:
        yield _top(where, (), interval_s, (), first=True)
    first = not (where.prometheus and not before)
    while True:
        sleep(max(0.0, asked_at + interval_s - clock()))
        now = clock()
        after = _sockets(where)
        took_s = now - asked_at
        denied = tuple(osd.why for osd in after if osd.state is OsdState.UNKNOWN)
        after = tuple(osd for osd in after if osd.state is not OsdState.UNKNOWN)
        local = between(before, after, interval_s=took_s, host=where.host, classes=where.classes)
        connections = _connections(where, reader)
        local = with_connections(local, connected, connections, interval_s=took_s)
        yield _top(where, local, took_s, denied, first=first)
        before, connected, asked_at, first = after, connections, now, False


def _top(
    where: Where, local: Sequence[OsdPerformance], interval_s: float, denied: tuple[str, ...], *, first: bool
) -> Top:
    judged, notes = suspect(local)
    notes = denied + notes
    osds = judged
    sources = [f"admin sockets of {where.host or 'this host'}, last {interval_s:.1f} s"] if local else []
    if where.prometheus:
        try:
            series = read_vector(where.prometheus, QUERY, timeout_s=PROMETHEUS_TIMEOUT_S, access=where.access)
            remote = osds_of(series, cluster=where.cluster, url=where.prometheus)
            osds, more = merged(judged, remote)
            notes += more
            sources.append(f"Prometheus, last {WINDOW_S / 60:.0f} min")
        except PlumblineError as error:
            if first:
                raise
            notes += (str(error),)
    return Top(interval_s=interval_s, sources=tuple(sources), osds=slowest_first(osds), notes=notes)


def _sockets(where: Where) -> tuple[OsdReading, ...]:
    try:
        return read_osds(osds_here(where.sockets), timeout_s=TIMEOUT_S)
    except Unavailable:  # there is no socket, or none that may be read
        if not where.prometheus:
            raise
        return ()


def _connections(where: Where, reader: ConnectionReader) -> tuple[OsdConnections, ...]:
    try:
        return reader.read(osds_here(where.sockets), timeout_s=TIMEOUT_S).osds
    except PlumblineError:
        return ()
