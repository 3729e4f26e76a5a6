"""What OSDs stand on: volumes of a RAID controller, memory, the size of a separate database."""

import re
import shlex
from collections.abc import Iterator, Mapping

from msgspec import Struct

from plumbline.checks.disk import Disks, disk_facts
from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.checks.text import plural
from plumbline.core.units import size_text
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.osd_perf import Database
from plumbline.sources.ceph.osds import OsdsReading

# what controllers of Broadcom, Dell, HPE, Lenovo and Adaptec call volumes; a disk that is passed through keeps its name
_VOLUME = re.compile(
    r"\bPERC\b|MegaRAID|\bMR\d{4}|\bSMC\d{4}|LOGICAL VOLUME|ServeRAID|\bRAID\b|LogicalDrv|AACRAID", re.I
)
_GIB = 1 << 30
_LEAST_TARGET_BYTES = 2 * _GIB
_OSDS_SHARE, _MOST_SHARE = 0.8, 1.0  # Ceph: budget 20 % for what OSDs take beyond their target
_LEAST_DATABASE = 0.01


class OsdHost(Struct, frozen=True):
    """A host with OSDs; what is unknown is empty or ``None``."""

    disks: Disks = ()
    databases: Mapping[str, Database] = {}  # OSD → its database
    targets_bytes: Mapping[str, int] = {}  # OSD → its memory target
    memory_bytes: int | None = None


def osd_host_facts(readings: Readings) -> OsdHost:
    osds = readings.or_empty(OsdsReading)
    return OsdHost(
        disk_facts(readings),
        {osd.daemon: osd.database for osd in osds.osds if osd.database is not None},
        {store.daemon: store.memory_target_bytes for store in osds.stores if store.memory_target_bytes},
        osds.memory_bytes,
    )


@check(
    "osd.raid-volume",
    "Give an OSD a disk of its own, not a volume of a RAID controller.",
    "Disks with OSDs: SATA, SAS and NVMe, and what a controller presents under the name of a volume.",
    "Ceph keeps copies itself: a RAID below it adds latency and hides health, wear and failing sectors of its disks. "
    "A controller's cache without a battery loses confirmed writes. Still so on Ceph 20: it recommends IT mode (JBOD).",
    "unnoba-2020, 3.1 (a native disk, not a RAID); Ceph: hardware recommendations, Controllers",
    Severity.INFO,
    "lsblk --scsi /dev/<device>",
)
def raid_volume(host: OsdHost) -> Iterator[Verdict]:
    for disk in host.disks:
        if not disk.osds or not disk.physical:
            continue
        model = disk.block.model or ""
        if not disk.controller:
            yield Verdict(disk.device, "a disk", "a disk")
        elif _VOLUME.search(model):
            caution = (
                "This only shows. To change it, empty the OSD, let the controller pass the disk through (JBOD, HBA or"
                " IT mode), and make the OSD anew; one host at a time."
            )
            fix = Fix(f"lsblk --scsi {shlex.quote(f'/dev/{disk.device}')}", caution=caution)
            yield Verdict(disk.device, f"a volume, {model}", "a disk", fix, because=f"{disk.user} is on it.")


@check(
    "osd.memory-target",
    "Let the memory targets of a host's OSDs fit into its memory.",
    "Hosts whose OSDs say their target. Info from 80 % of the memory, a warning beyond all of it, and for a target "
    "below 2 GiB.",
    "An OSD exceeds its target for a while, above all in recovery: without room for that, the kernel ends OSDs when "
    "they are needed most. Below 2 GiB it reads metadata from the disk and cannot keep to it. The document's 1 GiB for "
    "each TiB is older than this option; Ceph 20 has 4 GiB by default, and advises 20 % beyond the targets.",
    "unnoba-2020, 7.1 (never less than 2 GiB); Ceph: hardware recommendations, Memory",
    Severity.WARNING,
    "ceph config set osd/host:<host> osd_memory_target <bytes>",
)
def memory_target(host: OsdHost) -> Iterator[Verdict]:
    fix = Fix(
        "ceph config dump | grep osd_memory_target",
        caution="This only shows where it is set: change it there, for instance ceph config set osd/host:HOST"
        " osd_memory_target BYTES, which takes effect at once. cephadm sets it itself where"
        " osd_memory_target_autotune is on.",
    )
    for daemon, target in sorted(host.targets_bytes.items()):
        if target < _LEAST_TARGET_BYTES:
            yield Verdict(daemon, size_text(target), f"at least {size_text(_LEAST_TARGET_BYTES)}", fix)
    if not host.targets_bytes or not host.memory_bytes:
        return
    total = sum(host.targets_bytes.values())
    share = total / host.memory_bytes
    actual = f"{plural(len(host.targets_bytes), 'OSD')} with {size_text(total)} of {size_text(host.memory_bytes)}"
    severity = Severity.WARNING if share > _MOST_SHARE else Severity.INFO
    yield Verdict("memory", actual, f"at most {_OSDS_SHARE:.0%}", fix if share > _OSDS_SHARE else None, severity)


@check(
    "osd.database-share",
    "Give an OSD's separate database at least 1 % of its data's size, 4 % for object storage.",
    "OSDs with the database on another device than the data.",
    "What does not fit spills over to the slow device, and each lookup there costs a seek. Still so on Ceph 20; sizes "
    "between the levels of RocksDB are no longer wasted since Ceph 16.",
    "INFN 2025, 6.3 (1 to 4 %); Ceph: BlueStore configuration reference, Sizing",
    Severity.INFO,
    "ceph-volume lvm list",
)
def database_share(host: OsdHost) -> Iterator[Verdict]:
    for daemon, database in sorted(host.databases.items()):
        size, data = database.size_bytes, database.data_bytes
        if not size or not data:
            continue
        caution = (
            "This only shows where the database is. Enlarge its volume, then ceph-bluestore-tool bluefs-bdev-expand"
            " while the OSD is stopped, or move it: ceph-volume lvm migrate."
        )
        fix = Fix("ceph-volume lvm list", caution=caution) if size < _LEAST_DATABASE * data else None
        actual = f"{size / data:.2%} ({size_text(size)} for {size_text(data)})"
        yield Verdict(daemon, actual, f"at least {_LEAST_DATABASE:.0%}", fix)


CHECKS = (raid_volume, memory_target, database_share)
