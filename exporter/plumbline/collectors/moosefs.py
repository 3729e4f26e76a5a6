"""MooseFS: chunks by how many copies they have, and the chunkservers."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge
from plumbline.sources.moosefs import MoosefsReading

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


def samples(reading: MoosefsReading) -> Iterator[Sample]:
    for state, chunks in reading.chunks.items():
        yield CHUNKS, (state,), chunks
    for name, connected in reading.chunkservers.items():
        yield CONNECTED, (name,), int(connected)


COLLECTOR: Collector[Host, MoosefsReading] = Collector(
    "moosefs",
    declared(globals()),
    lambda host, _skip: host.parts.latest(MoosefsReading),
    samples,
    origin="`mfscli -SIC -SCS` on the host of the master",
)
