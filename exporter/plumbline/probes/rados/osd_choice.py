"""Which OSDs a configuration means on this host, and their device classes.

The cluster's answer comes first; its last answer is stored in case it does not answer. If it never did, this host's own
directories name its OSDs, with the class that the kernel gives their disks; the canary detects the difference when the
cluster is back, and requests a new plan.
"""

import socket
from collections.abc import Sequence

from msgspec import Struct

from plumbline.config.probes.ceph import OSD_NAME
from plumbline.probes.ceph.osd_lookup import remembered
from plumbline.probes.run.model import Host
from plumbline.sources.ceph.cluster_osds import ALL, HOST


class ChosenOsd(Struct, frozen=True):
    """An OSD. ``crush_class`` is empty if the cluster did not report it."""

    number: int
    crush_class: str
    device_class: str
    """The class for comparing figures: the configured one, the CRUSH class, the disk's, or ``unknown``."""
    device: str = ""
    """The underlying disk, if it is on this host."""

    @property
    def name(self) -> str:
        return f"osd.{self.number}"


def look_up(words: Sequence[str], device_class: str | None, host: Host) -> tuple[ChosenOsd, ...]:
    """The OSDs, ordered by number; never raises because of the cluster."""
    disks = {int(osd.removeprefix("osd.")): disk for disk, osd in host.osd_disks().items() if OSD_NAME.fullmatch(osd)}
    kernel = {disk.name: disk.device_class for disk in host.disks()} if disks else {}
    cluster = host.cluster_osds() or remembered(host.storage)
    if cluster is not None:
        osds = [cluster.by_number.get(number) for number in cluster.chosen(words, socket.gethostname())]
        classes = {osd.number: osd.device_class for osd in osds if osd is not None}
    else:
        named = {int(word.removeprefix("osd.")) for word in words if word not in (HOST, ALL)}
        classes = dict.fromkeys(named | (disks.keys() if {HOST, ALL} & set(words) else set()), "")
    chosen = []
    for number, crush_class in sorted(classes.items()):
        disk = disks.get(number, "")
        chosen.append(
            ChosenOsd(number, crush_class, device_class or crush_class or kernel.get(disk) or "unknown", disk)
        )
    return tuple(chosen)


def only_class(host: Host) -> str:
    """The class of all OSDs of the cluster, if they have only one; otherwise ``unknown``."""
    cluster = host.cluster_osds()
    classes = {osd.device_class for osd in cluster.by_number.values()} if cluster is not None else set()
    return classes.pop() if len(classes) == 1 else "unknown"
