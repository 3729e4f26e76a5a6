"""GlusterFS: bricks of this host, peers, quorum, entries to be healed."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge
from plumbline.sources.gluster import GlusterReading

_VOLUME = ("volume",)

BRICK_UP = gauge(
    "plumbline_gluster_brick_up",
    "1: glusterd is connected to the process of this host's brick, of a started volume. subvolume: its replica or"
    " disperse set, from 0.",
    ("volume", "subvolume", "brick"),
)
BRICKS = gauge("plumbline_gluster_subvolume_bricks", "Bricks of a replica or disperse set of the volume.", _VOLUME)
NEEDED = gauge(
    "plumbline_gluster_subvolume_bricks_needed",
    "So many bricks of a replica or disperse set must be up for clients to write (client quorum).",
    _VOLUME,
)
QUORUM = gauge(
    "plumbline_gluster_server_quorum",
    "1: this host sees enough servers of the pool. 0: glusterd has stopped its bricks. Only of volumes with"
    " cluster.server-quorum-type.",
    _VOLUME,
)
PEER = gauge("plumbline_gluster_peer_connected", "1: glusterd is connected to that of this peer.", ("peer",))
HEALS = gauge(
    "plumbline_gluster_heal_pending_entries",
    "Files and directories of a replicated volume that this brick has to bring to others. One host of the pool asks;"
    " bricks that are down don't answer.",
    ("volume", "brick"),
)


def samples(reading: GlusterReading) -> Iterator[Sample]:
    for peer in reading.state.peers:
        yield PEER, (peer.name,), int(peer.connected)
    for volume in reading.state.volumes:
        yield BRICKS, (volume.name,), volume.bricks_each
        yield NEEDED, (volume.name,), volume.needed
        if volume.server_quorum is not None:
            yield QUORUM, (volume.name,), int(volume.server_quorum)
        for brick in volume.bricks:
            yield BRICK_UP, (volume.name, str(brick.subvolume), brick.name), int(brick.up)
    for labels, entries in reading.heals.items():
        yield HEALS, labels, entries


COLLECTOR: Collector[Host, GlusterReading] = Collector(
    "gluster",
    declared(globals()),
    lambda host, _skip: host.parts.latest(GlusterReading),
    samples,
    origin="`gluster get-state` and, on one host of the pool, `gluster volume heal NAME statistics heal-count`",
)
