"""File servers. GlusterFS: bricks of this host, peers, quorum, entries to be healed; MooseFS: chunks by how many copies
they have, and the chunkservers; Lustre: imports, health and network counters."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, gauge, known
from plumbline.sources.gluster import GlusterReading
from plumbline.sources.kernel.lustre import LustreReading
from plumbline.sources.moosefs import MoosefsReading

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


def gluster_samples(reading: GlusterReading) -> Iterator[Sample]:
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


GLUSTER: Collector[Host, GlusterReading] = Collector(
    "gluster",
    (BRICK_UP, BRICKS, NEEDED, QUORUM, PEER, HEALS),
    lambda host, _skip: host.parts.latest(GlusterReading),
    gluster_samples,
    origin="`gluster get-state` and, on one host of the pool, `gluster volume heal NAME statistics heal-count`",
)

CHUNKS = gauge(
    "plumbline_moosefs_chunks",
    "Chunks: missing (no valid copy), endangered (one copy, more wanted), undergoal, stable, overgoal …",
    ("state",),
)
CONNECTED = gauge(
    "plumbline_moosefs_chunkserver_connected",
    "1: the chunkserver is connected to the master. Absent: gone and in maintenance.",
    ("chunkserver",),
)


def moosefs_samples(reading: MoosefsReading) -> Iterator[Sample]:
    for state, chunks in reading.chunks.items():
        yield CHUNKS, (state,), chunks
    for name, connected in reading.chunkservers.items():
        yield CONNECTED, (name,), int(connected)


MOOSEFS: Collector[Host, MoosefsReading] = Collector(
    "moosefs",
    (CHUNKS, CONNECTED),
    lambda host, _skip: host.parts.latest(MoosefsReading),
    moosefs_samples,
    origin="`mfscli -SIC -SCS` on the host of the master",
)

_IMPORT = ("import", "target")

UP = gauge(
    "plumbline_lustre_import_up",
    "1: this host is connected to the target (FULL), or would connect at once (IDLE); 0: it is not. Absent: an"
    " administrator deactivated it.",
    _IMPORT,
)
INFO = gauge(
    "plumbline_lustre_import_info", "The state of the import, in the kernel's word; always 1.", (*_IMPORT, "state")
)
ATTEMPTS = counter(
    "plumbline_lustre_connection_attempts_total",
    "Attempts to connect; an idle import makes one when it is used again.",
    _IMPORT,
)
TIMEOUTS = counter("plumbline_lustre_timeouts_total", "Requests that got no answer in time.", _IMPORT)
HEALTHY = gauge(
    "plumbline_lustre_healthy",
    "1: healthy; 0: a target of this host cannot write, its threads answer nothing in time, or Lustre met a bug.",
)
LNET_ERRORS = counter("plumbline_lnet_errors_total", "Errors of LNet, Lustre's network.")
LNET_MESSAGES = counter("plumbline_lnet_messages_total", "Messages of LNet.", ("direction",))
LNET_BYTES = counter("plumbline_lnet_bytes_total", "Data of LNet's messages.", ("direction",))
LNET_DROPS = counter("plumbline_lnet_drops_total", "Messages that LNet received and dropped.")


def lustre_samples(reading: LustreReading) -> Iterator[Sample]:
    for connection in reading.imports:
        labels = (connection.name, connection.target)
        up = connection.connected
        yield INFO, (*labels, connection.state), 1
        yield from known(
            labels,
            (UP, None if up is None else int(up)),
            (ATTEMPTS, connection.attempts),
            (TIMEOUTS, connection.timeouts),
        )
    if reading.healthy is not None:
        yield HEALTHY, (), int(reading.healthy)
    if (lnet := reading.lnet) is not None:
        yield LNET_ERRORS, (), lnet.errors
        yield LNET_DROPS, (), lnet.dropped
        for direction, messages, octets in (
            ("receive", lnet.received, lnet.received_octets),
            ("transmit", lnet.sent, lnet.sent_octets),
        ):
            yield LNET_MESSAGES, (direction,), messages
            yield LNET_BYTES, (direction,), octets


def _read_lustre(host: Host, skip: SkipHook) -> LustreReading:
    reading = host.parts.latest(LustreReading)
    for name, reason in reading.skipped:
        skip(name, reason)
    return reading


LUSTRE = Collector(
    "lustre",
    (UP, INFO, ATTEMPTS, TIMEOUTS, HEALTHY, LNET_ERRORS, LNET_MESSAGES, LNET_BYTES, LNET_DROPS),
    _read_lustre,
    lustre_samples,
    skip_reasons=ITEM_REASONS,
    origin="`/proc/fs/lustre`, `/sys/fs/lustre`, and below `/sys/kernel/debug` where a release has them there;"
    " written from Lustre's source and published captures, not run on a Lustre",
    sized_by=("Lustre: import",),
)
