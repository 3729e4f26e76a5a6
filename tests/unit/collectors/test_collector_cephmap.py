"""The cluster map as samples, with the figures that Ceph 16.2 told."""

from __future__ import annotations

import dataclasses

from plumbline.collectors.cephmap import (
    COLLECTOR,
    OSD_BUCKET,
    POOL_AVAILABLE,
    POOL_DOWN,
    POOL_FAILURES,
    POOL_READ_UNIT,
    POOL_UP,
    samples,
)
from plumbline.sources.ceph.cephmap import CephMap, Pool, PoolAvailability, Rule, parse_cephmap, parse_osd_tree
from support.ceph_map import answers

HEALTHY = parse_cephmap(answers(), read_ts=1_700_000_000.5)


def shown(found: CephMap, about: str = "") -> dict[tuple[str, ...], object]:
    """Samples by name (without the start that all share) and labels; ``about``: those whose first label this is."""
    named = {
        (spec.name.removeprefix("plumbline_ceph_"), *labels): value
        for spec, labels, value in samples(found)
        if not about or labels[:1] == (about,)
    }
    assert len(named) == sum(not about or labels[:1] == (about,) for _, labels, _ in samples(found))
    return named


def test_one_osd() -> None:
    assert shown(HEALTHY, "osd.1") == {
        ("osd_crush_location_info", "osd.1", "hdd", "default", "rack-a", "store-2"): 1,
        ("osd_crush_weight", "osd.1"): 0.0038909912109375,
        ("osd_size_bytes", "osd.1"): 4294967296,
        ("osd_used_bytes", "osd.1"): 500817920,
        ("osd_reweight_ratio", "osd.1"): 1,
        ("osd_in", "osd.1"): 1,
    }


def test_one_that_is_out() -> None:
    found = parse_cephmap(answers("-out"), read_ts=0.0)
    assert shown(found, "osd.1") == {
        ("osd_crush_location_info", "osd.1", "hdd", "default", "rack-a", "store-2"): 1,
        ("osd_crush_weight", "osd.1"): 0.0038909912109375,
        ("osd_reweight_ratio", "osd.1"): 0,
        ("osd_in", "osd.1"): 0,
    }
    assert shown(found, "osd.2")["osd_reweight_ratio", "osd.2"] == 0.8499908447265625
    assert shown(found, "osd.2")["osd_in", "osd.2"] == 1


def test_one_that_crush_does_not_know() -> None:
    assert shown(parse_cephmap(answers("-stray"), read_ts=0.0), "osd.1") == {
        ("osd_size_bytes", "osd.1"): 4294967296,
        ("osd_used_bytes", "osd.1"): 502128640,
        ("osd_reweight_ratio", "osd.1"): 1,
        ("osd_in", "osd.1"): 1,
    }


def test_pools() -> None:
    assert shown(HEALTHY, "2") == {
        ("pool_info", "2", "vms", "replicated", "host", "default", "hdd"): 1,
        ("pool_copies", "2"): 2,
        ("pool_copies_min", "2"): 1,
        ("pool_raw_ratio", "2"): 2,
        ("pool_stored_bytes", "2"): 88211480,
        ("pool_max_avail_bytes", "2"): 3557835520,
    }
    assert shown(HEALTHY, "4") == {
        ("pool_info", "4", "archive", "erasure", "host", "default", ""): 1,
        ("pool_copies", "4"): 3,
        ("pool_copies_min", "4"): 2,
        ("pool_raw_ratio", "4"): 1.5,
        ("pool_stored_bytes", "4"): 47783936,
        ("pool_max_avail_bytes", "4"): 7115671040,
    }


def test_the_whole_cluster() -> None:
    found = shown(HEALTHY)
    assert found["map_timestamp_seconds",] == 1_700_000_000.5
    limits = {key[1]: value for key, value in found.items() if key[0] == "full_ratio"}
    assert limits == {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}
    elsewhere = {OSD_BUCKET, POOL_READ_UNIT, POOL_AVAILABLE, POOL_UP, POOL_DOWN, POOL_FAILURES}
    assert {spec for spec, _, _ in samples(HEALTHY)} == set(COLLECTOR.specs) - elsewhere


def test_buckets_above_the_rack_and_beside_it() -> None:
    nodes = [
        {"id": -1, "name": "default", "type": "root", "children": [-5]},
        {"id": -5, "name": "north", "type": "datacenter", "children": [-4]},
        {"id": -4, "name": "east", "type": "room", "children": [-3]},
        {"id": -3, "name": "stor01", "type": "host", "children": [0]},
        {"id": 0, "name": "osd.0", "type": "osd", "crush_weight": 1.0, "reweight": 1.0, "status": "up"},
    ]
    found = dataclasses.replace(HEALTHY, osds=parse_osd_tree({"nodes": nodes}), osd_use={})
    assert shown(found, "osd.0") == {
        ("osd_crush_location_info", "osd.0", "", "default", "", "stor01"): 1,
        ("osd_crush_bucket_info", "osd.0", "datacenter", "north"): 1,
        ("osd_crush_bucket_info", "osd.0", "room", "east"): 1,
        ("osd_crush_weight", "osd.0"): 1,
        ("osd_reweight_ratio", "osd.0"): 1,
        ("osd_in", "osd.0"): 1,
    }


def test_a_pool_whose_availability_is_tracked() -> None:
    tracked = dataclasses.replace(HEALTHY, pool_availability={"vms": PoolAvailability(False, 79.0, 24.0, 1)})
    found = shown(tracked, "2")
    assert found["pool_available", "2"] == 0
    assert found["pool_available_seconds_total", "2"] == 79
    assert found["pool_unavailable_seconds_total", "2"] == 24
    assert found["pool_failures_total", "2"] == 1
    assert ("pool_available", "4") not in shown(tracked)


def test_a_pool_that_is_read_in_parts() -> None:
    pool = Pool(9, "parts", "erasure", Rule("", "", ""), 6, 4, 1.5, read_unit_bytes=16384)
    assert shown(dataclasses.replace(HEALTHY, pools=(pool,)), "9")["pool_read_unit_bytes", "9"] == 16384


def test_what_is_not_known_is_not_said() -> None:
    pool = Pool(9, "odd", "", Rule("", "mixed", ""), 4, 2, None)
    found = dataclasses.replace(HEALTHY, osds=(), pools=(pool,), osd_use={}, pool_use={})
    assert shown(found, "9") == {
        ("pool_info", "9", "odd", "", "", "", "mixed"): 1,
        ("pool_copies", "9"): 4,
        ("pool_copies_min", "9"): 2,
    }
    without = shown(dataclasses.replace(HEALTHY, osd_use={}, pool_use={}))
    assert not {key[0] for key in without} & {"osd_size_bytes", "osd_used_bytes", "pool_stored_bytes"}
    assert ("osd_in", "osd.0") in without
