"""Mounts that depend on a server, as samples."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge
from plumbline.sources.kernel.mounts import MountsReading

_LABELS = ("mountpoint", "filesystem")

UP = gauge(
    "plumbline_mount_up",
    "1: a file system with a server (ceph, nfs, lustre, fuse.*) answers; 0: dead or hanging. Absent: not permitted, or"
    " the check got no CPU.",
    _LABELS,
)
IN_FLIGHT = gauge("plumbline_mount_check_in_flight_seconds", "Age of the running check; 0: none.", _LABELS)


def samples(states: MountsReading) -> Iterator[Sample]:
    for state in states:
        labels = (state.mount_point, state.filesystem)
        if state.up is not None:
            yield UP, labels, int(state.up)
        yield IN_FLIGHT, labels, state.in_flight_s


COLLECTOR: Collector[Host, MountsReading] = Collector(
    "mount",
    declared(globals()),
    lambda host, _skip: host.parts.storage.mounts.states,
    samples,
    origin="`/proc/self/mountinfo`, `statvfs` and `statx` in a process of its own",
)
