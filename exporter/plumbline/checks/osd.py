"""What this host's OSDs are configured to do."""

import shlex
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.osd_perf import SHARDS, THREADS, SetOption
from plumbline.sources.ceph.osds import OsdsReading
from plumbline.sources.disk.block import DevicesReading

_EARLIER = {f"{SHARDS}_hdd": "5", f"{THREADS}_hdd": "1"}
"""Ceph's defaults before they were changed for mClock."""
_CAUTION = (
    "`ceph config dump | grep osd_op_num_` says whether it is set for osd, global, a host or one OSD: name that instead"
    " of osd. OSDs read it when they start: restart those of one host at a time."
)


class RotatingOsd(Struct, frozen=True):
    """An OSD with its data on a rotating disk, scheduled by mClock."""

    daemon: str
    shards: Mapping[str, SetOption]  # of the options of shards and threads those that are set


Osds: TypeAlias = tuple[RotatingOsd, ...]


def osd_facts(readings: Readings) -> Osds:
    # by the kernel's flag, because the OSD itself decides by it
    reading = readings.or_empty(DevicesReading)
    rotating = [device.name for device in reading.devices if device.device_class == "hdd"]
    daemons = {daemon for name in rotating for daemon in reading.osds.get(name, "").split(",")}
    return tuple(
        RotatingOsd(store.daemon, store.shards)
        for store in readings.or_empty(OsdsReading).stores
        if store.shards is not None and store.daemon in daemons
    )


@check(
    "osd.shards-of-an-earlier-release",
    "Let OSDs on hard disks have the shards that mClock needs.",
    "OSDs of this host whose data is on a rotating disk and whose scheduler is mClock. Not where the numbers of shards "
    "or threads are set to values that were never Ceph's defaults: somebody chose them.",
    "Each shard has an mClock queue of its own, which knows nothing of the others: with several, clients and recovery "
    "do not get the shares they should. Ceph's defaults for hard disks were 5 shards of 1 thread and became 1 shard of "
    "5 threads. A configuration that names the old values outlives the upgrade.",
    "Ceph: mClock configuration reference, OSD shard configuration for HDD based clusters; common/options/osd.yaml.in",
    Severity.WARNING,
    "ceph config rm osd osd_op_num_shards_hdd && ceph config rm osd osd_op_num_threads_per_shard_hdd",
)
def shards(osds: Osds) -> Iterator[Verdict]:
    for osd in osds:
        old = [
            (option, osd.shards[option])
            for option, value in _EARLIER.items()
            if option in osd.shards and osd.shards[option].value == value != osd.shards[option].default
        ]
        if old and not {SHARDS, THREADS} & osd.shards.keys():
            actual = ", ".join(f"{option} = {name.value}" for option, name in old)
            expected = ", ".join(f"{option} = {entry.default}" for option, entry in old)
            yield Verdict(osd.daemon, actual, f"{expected}: this release's default", _fix(osd, dict(old)))
        elif not osd.shards:
            yield Verdict(osd.daemon, "this release's default", "this release's default")


def _fix(osd: RotatingOsd, options: Mapping[str, SetOption]) -> Fix:
    places = {option.where for option in options.values()}
    if places == {"mon"}:
        return Fix(" && ".join(f"ceph config rm osd {option}" for option in options), caution=_CAUTION)
    caution = "Remove it where it is set (file: ceph.conf), then restart the OSDs of one host at a time."
    return Fix(f"ceph config show {shlex.quote(osd.daemon)} | grep osd_op_num_", caution=caution)


CHECKS = (shards,)
