"""Five weeks of a made-up cluster that fills up, through the shipped rules, for the picture of the capacity page.

No test cluster grows for a month. So the map of a cluster as the daemon exports it is written into a real Prometheus,
at moments gone by, and each capacity rule is evaluated over that time, in the order of its group.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml

from bench.history_store import Series, Store, labels_of
from support.rules import rendered

STEP_S = 900
SITE = "{ _config+:: { ceph+: { window: '1h' }, capacity+: { bridge: '1h' } } }"
"""Samples here are :data:`STEP_S` apart."""
DAYS = 36
AT_ONCE = 40
"""Moments: what a rule records may be as old as half a day when it is written."""
GROUPS = (
    "plumbline-osd-store.rules", "plumbline-capacity-map.rules", "plumbline-capacity-pool.rules",
    "plumbline-capacity-loss.rules", "plumbline-capacity-growth.rules",
)  # fmt: skip
TARGET = {"cluster": "main", "instance": "mon-1:10047", "job": "plumbline"}
TIB = 2**40
CLASSES = {"hdd": (6, 4, 16 * TIB, 0.56, 0.0016, 0.0026), "ssd": (4, 2, 4 * TIB, 0.38, 0.0004, 0.0006)}
"""Class → hosts, OSDs of each, size of one, how full at first, growth a day until and since
:data:`FASTER_DAYS` ago."""
FASTER_DAYS = 12
UNEVEN = 0.025
"""By how much the fullest OSD and the emptiest differ from the mean of their class."""
POOLS = {
    "1": {"pool": "vms", "device_class": "hdd", "copies": 3.0, "share": 0.7},
    "2": {"pool": "backup", "device_class": "hdd", "copies": 3.0, "share": 0.3},
    "3": {"pool": "databases", "device_class": "ssd", "copies": 3.0, "share": 1.0},
}


@contextlib.contextmanager
def capacity_history() -> Iterator[tuple[str, float]]:
    """Prometheus's URL, and the moment at which the history ends."""
    end = time.time() // STEP_S * STEP_S
    times = np.arange(end - DAYS * 86400, end + 1, STEP_S)
    with Store(lookback_s=2 * STEP_S) as store, tempfile.TemporaryDirectory() as folder:
        rules = rendered(Path(folder), SITE)
        groups = {
            group["name"]: group["rules"]
            for file in sorted(rules.glob("*.yaml"))
            for group in yaml.load(file.read_bytes(), yaml.CSafeLoader)["groups"]
        }
        exported = tuple(_map(times))
        for begin in range(0, len(times), AT_ONCE):
            piece = slice(begin, begin + AT_ONCE)
            store.write(Series(each.labels, each.times_ms[piece], each.values[piece]) for each in exported)
            for rule in (rule for name in GROUPS for rule in groups[name]):
                _record(store, rule, times[piece])
        yield store.url, end


def _record(store: Store, rule: Mapping[str, str], times: np.ndarray) -> None:
    for labels, values in store.query_range(rule["expr"], times[0], times[-1], STEP_S):
        named = {**{key: value for key, value in labels.items() if key != "__name__"}, **dict(rule.get("labels", {}))}
        points = [(float(at) * 1000, float(value)) for at, value in values]
        at_ms, figures = np.array(points).T
        store.write([Series(labels_of(rule["record"], named), at_ms.astype(np.int64), figures)])


def _map(times: np.ndarray) -> Iterator[Series]:
    """What a daemon exports of such a cluster: as ``support/capacity.py`` has it for rule tests."""
    at_ms = (times * 1000).astype(np.int64)
    days = (times - times[-1]) / 86400

    def one(name: str, values: object, **labels: str) -> Series:
        filled = np.broadcast_to(np.asarray(values, np.float64), times.shape)
        return Series(labels_of(name, {**TARGET, **labels}), at_ms, filled)

    # the rules are evaluated here, and a page asks this alert whether they are
    yield one("ALERTS", 1, alertname="PlumblineWatchdog", alertstate="firing", severity="info")
    yield one("plumbline_ceph_map_timestamp_seconds", times)
    for limit, ratio in {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}.items():
        yield one("plumbline_ceph_full_ratio", ratio, limit=limit)
    number, used_of = 0, {}
    for device_class, (hosts, each, size, first, before, since) in CLASSES.items():
        week = 0.3 * since * np.sin(2 * np.pi * days / 7)
        ratio = first + before * (days + DAYS) + (since - before) * np.clip(days + FASTER_DAYS, 0, None) + week
        used_of[device_class] = ratio * size * hosts * each
        for index in range(hosts * each):
            osd = {"ceph_daemon": f"osd.{number}"}
            place = {
                "device_class": device_class,
                "root": "default",
                "rack": "",
                "host": f"{device_class}-{index // each + 1}",
            }
            mine = ratio * (1 + UNEVEN * np.cos(index))
            yield one("plumbline_ceph_osd_crush_location_info", 1, **osd, **place)
            yield one("plumbline_ceph_osd_crush_weight", 1, **osd)
            yield one("plumbline_ceph_osd_in", 1, **osd)
            yield one("plumbline_ceph_osd_size_bytes", size, **osd)
            yield one("plumbline_ceph_osd_used_bytes", mine * size, **osd)
            number += 1
    for pool_id, pool in POOLS.items():
        hosts, each, size, *_ = CLASSES[pool["device_class"]]
        stored = used_of[pool["device_class"]] * pool["share"] / pool["copies"]
        room = (0.95 * size * hosts * each / (1 + UNEVEN) - used_of[pool["device_class"]]) / pool["copies"]
        rule = {"failure_domain": "host", "device_class": pool["device_class"], "root": "default"}
        yield one("plumbline_ceph_pool_info", 1, pool_id=pool_id, pool=pool["pool"], pool_type="replicated", **rule)
        yield one("plumbline_ceph_pool_copies", pool["copies"], pool_id=pool_id)
        yield one("plumbline_ceph_pool_raw_ratio", pool["copies"], pool_id=pool_id)
        yield one("plumbline_ceph_pool_stored_bytes", stored, pool_id=pool_id)
        yield one("plumbline_ceph_pool_max_avail_bytes", room, pool_id=pool_id)
