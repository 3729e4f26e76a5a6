"""From a page to the input of the checks: the readings behind its series."""

from plumbline.checks.readings import Readings
from plumbline.collectors import (
    array,
    bond,
    cpupower,
    disk,
    health,
    hugepages,
    infiniband,
    interrupts,
    latency,
    nic,
    osd,
    pcie,
    pressure,
    queue,
    softnet,
    sysctl,
    tcp,
    topology,
)
from plumbline.metrics.snapshot import Snapshot
from plumbline.sources.disk.blocklatency import LatencyReading

_NOTHING = Readings()


def readings_of(page: Snapshot) -> Readings:
    """What each collector read for this page; empty for collectors that are off, failed or had nothing."""
    cpus, squeezes = softnet.COLLECTOR.reading(page) or (_NOTHING.softnet, _NOTHING.squeezes)
    bonds, churns = bond.COLLECTOR.reading(page) or (_NOTHING.bonds, _NOTHING.churns)
    relations, roles = topology.COLLECTOR.reading(page) or (_NOTHING.relations, _NOTHING.roles)
    devices, osds = disk.DEVICE.reading(page) or (_NOTHING.devices, _NOTHING.osds)
    daemons, stores = osd.COLLECTOR.reading(page) or ((), _NOTHING.stores)
    users, _ = disk.DISKUSE.reading(page) or (None, None)
    return Readings(
        softnet=cpus,
        squeezes=squeezes,
        interrupts=interrupts.COLLECTOR.reading(page) or _NOTHING.interrupts,
        tcp=tcp.COLLECTOR.reading(page),
        sysctl=sysctl.COLLECTOR.reading(page) or _NOTHING.sysctl,
        links=nic.LINK.reading(page) or _NOTHING.links,
        losses=nic.ETHTOOL.reading(page) or _NOTHING.losses,
        rings=nic.RING.reading(page) or _NOTHING.rings,
        pause=nic.PAUSE.reading(page) or _NOTHING.pause,
        coalescing=nic.COALESCE.reading(page) or _NOTHING.coalescing,
        offloads=nic.OFFLOAD.reading(page) or _NOTHING.offloads,
        link_modes=nic.LINKMODE.reading(page) or _NOTHING.link_modes,
        bonds=bonds,
        churns=churns,
        relations=relations,
        roles=roles,
        infiniband=infiniband.COLLECTOR.reading(page) or _NOTHING.infiniband,
        arrays=array.COLLECTOR.reading(page) or _NOTHING.arrays,
        devices=devices,
        osds={device.name: osds[device.name] for device in devices if device.name in osds},
        disk_uses=users.uses if users else _NOTHING.disk_uses,
        queues=queue.COLLECTOR.reading(page) or _NOTHING.queues,
        pcie=pcie.COLLECTOR.reading(page) or _NOTHING.pcie,
        health=health.COLLECTOR.reading(page) or _NOTHING.health,
        latency=_latency(page),
        stores=stores,
        limits={each.daemon: each.limits for each in daemons if each.limits is not None},
        power=cpupower.COLLECTOR.reading(page),
        hugepages=hugepages.COLLECTOR.reading(page),
        pressures=pressure.COLLECTOR.reading(page) or _NOTHING.pressures,
    )


def _latency(page: Snapshot) -> LatencyReading | str | None:
    name = latency.COLLECTOR.name
    reasons = (collector.reason for collector in page.collectors if collector.name == name and collector.success)
    return latency.COLLECTOR.reading(page) or next(reasons, None)
