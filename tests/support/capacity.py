"""Clusters for tests of capacity, as the map and the manager tell them: promtool's input series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

Series = dict[str, str]
READER = {"instance": "stor01.example:10047", "job": "plumbline"}
MANAGER = {"instance": "mgr-x:9283", "job": "ceph"}
_GB = 10**9


@dataclass(frozen=True, slots=True)
class Osd:
    """One OSD; sizes in 10^9 bytes, ``used_gb`` as promtool's values where it is text."""

    number: int
    host: str
    used_gb: float | str
    size_gb: float = 1000
    device_class: str = "hdd"
    root: str = "default"
    rack: str = ""
    others: tuple[tuple[str, str], ...] = ()
    is_in: bool = True
    weight: float = 1


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool and its rule."""

    number: int
    name: str
    copies: int = 3
    failure_domain: str = "host"
    device_class: str = "hdd"
    root: str = "default"
    kind: str = "replicated"
    raw_ratio: float | None = None
    read_unit: int | None = None
    stored_gb: float = 100
    max_avail_gb: float = 100


def one(metric: str, values: str, **labels: str) -> Series:
    """A series with its labels in order."""
    inside = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return {"series": f"{metric}{{{inside}}}", "values": values}


def mapped(
    osds: Iterable[Osd],
    pools: Iterable[Pool] = (),
    *,
    samples: int,
    step_s: int,
    reader: Mapping[str, str] = READER,
    cluster: str = "north",
    read: str = "",
    limits: Mapping[str, float] | None = None,
) -> Iterator[Series]:
    """What a daemon exports that reads the map anew at every scrape; ``read``: the values of its age's series."""
    target = {**reader, "cluster": cluster} if cluster else dict(reader)
    yield one("plumbline_ceph_map_timestamp_seconds", read or f"0+{step_s}x{samples}", **target)
    for limit, ratio in (limits or {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}).items():
        yield one("plumbline_ceph_full_ratio", f"{ratio}x{samples}", limit=limit, **target)
    for osd in osds:
        labels = {"ceph_daemon": f"osd.{osd.number}", **target}
        place = {"device_class": osd.device_class, "root": osd.root, "rack": osd.rack, "host": osd.host}
        yield one("plumbline_ceph_osd_crush_location_info", f"1x{samples}", **labels, **place)
        for kind, bucket in osd.others:
            yield one("plumbline_ceph_osd_crush_bucket_info", f"1x{samples}", **labels, bucket_type=kind, bucket=bucket)
        yield one("plumbline_ceph_osd_crush_weight", f"{osd.weight}x{samples}", **labels)
        yield one("plumbline_ceph_osd_in", f"{int(osd.is_in)}x{samples}", **labels)
        yield one("plumbline_ceph_osd_size_bytes", _bytes(osd.size_gb, samples), **labels)
        yield one("plumbline_ceph_osd_used_bytes", _bytes(osd.used_gb, samples), **labels)
    for pool in pools:
        labels = {"pool_id": str(pool.number), **target}
        rule = {"failure_domain": pool.failure_domain, "device_class": pool.device_class, "root": pool.root}
        yield one("plumbline_ceph_pool_info", f"1x{samples}", **labels, **rule, pool=pool.name, pool_type=pool.kind)
        yield one("plumbline_ceph_pool_copies", f"{pool.copies}x{samples}", **labels)
        yield one("plumbline_ceph_pool_raw_ratio", f"{pool.raw_ratio or pool.copies}x{samples}", **labels)
        if pool.read_unit is not None:
            yield one("plumbline_ceph_pool_read_unit_bytes", f"{pool.read_unit}x{samples}", **labels)
        yield one("plumbline_ceph_pool_stored_bytes", _bytes(pool.stored_gb, samples), **labels)
        yield one("plumbline_ceph_pool_max_avail_bytes", _bytes(pool.max_avail_gb, samples), **labels)


def managed(
    osds: Iterable[Osd], *, samples: int, manager: Mapping[str, str] = MANAGER, cluster: str = "north"
) -> Iterator[Series]:
    """The same OSDs as the manager's module tells them: no CRUSH, no rule."""
    target = {**manager, "cluster": cluster} if cluster else dict(manager)
    for osd in osds:
        labels = {"ceph_daemon": f"osd.{osd.number}", **target}
        yield one(
            "ceph_osd_metadata", f"1x{samples}", **labels, device_class=osd.device_class, hostname=osd.host,
            back_iface="", front_iface="", ceph_version="16", cluster_addr="", objectstore="bluestore", public_addr="",
        )  # fmt: skip
        yield one("ceph_osd_in", f"{int(osd.is_in)}x{samples}", **labels)
        yield one("ceph_osd_stat_bytes", _bytes(osd.size_gb, samples), **labels)
        yield one("ceph_osd_stat_bytes_used", _bytes(osd.used_gb, samples), **labels)


def _bytes(gb: float | str, samples: int) -> str:
    return gb if isinstance(gb, str) else f"{round(gb * _GB)}x{samples}"
