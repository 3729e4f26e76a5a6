"""Whatever stands on an admin socket: an answer or one clear error."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.sources.ceph.osd_connections import parse_can_dump, parse_dump, parse_names
from plumbline.sources.ceph.osd_mclock import parse_queues, parse_share
from plumbline.sources.ceph.osd_network import parse_heartbeats
from plumbline.sources.ceph.osd_operations import parse_blocked, parse_slow
from plumbline.sources.ceph.osd_perf import (
    parse_capacity,
    parse_compression,
    parse_database,
    parse_fragmentation,
    parse_latencies,
    parse_onode_cache,
    parse_set_options,
    parse_stages,
    parse_tier,
)
from plumbline.sources.ceph.rbd_clients import parse_counters, parse_images
from plumbline.sources.prometheus.api import parse_matrix, parse_vector

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOADED, HEALTHY = FIXTURES / "ceph-16.2-states" / "load-2", FIXTURES / "ceph-16.2"
TENTACLE = FIXTURES / "ceph-20.2"
PARSERS: dict[str, tuple[Callable[[bytes], Any], bytes]] = {
    "latencies": (
        lambda data: parse_latencies(data, data, source="osd.0"),
        (LOADED / "perf-histogram-dump.json").read_bytes(),
    ),
    "stages": (lambda data: parse_stages(data, source="x"), (HEALTHY / "perf-dump.json").read_bytes()),
    "heartbeats": (lambda data: parse_heartbeats(data, source="x"), (HEALTHY / "dump_osd_network.json").read_bytes()),
    "blocked": (lambda data: parse_blocked(data, source="x"), (HEALTHY / "dump_ops_in_flight.json").read_bytes()),
    "slow": (lambda data: parse_slow(data, source="x"), (HEALTHY / "dump_historic_slow_ops.json").read_bytes()),
    "onodes": (lambda data: parse_onode_cache(data, source="x"), (LOADED / "perf-dump.json").read_bytes()),
    "compression": (lambda data: parse_compression(data, source="x"), (HEALTHY / "perf-dump.json").read_bytes()),
    "queues": (lambda data: parse_queues(data, source="x"), (TENTACLE / "perf-dump.json").read_bytes()),
    "share": (
        lambda data: parse_share(data, "osd_mclock_scheduler_client_res", source="x"),
        (TENTACLE / "config.json").read_bytes(),
    ),
    "tier": (lambda data: parse_tier(data, source="x"), (HEALTHY / "perf-dump.json").read_bytes()),
    "database": (lambda data: parse_database(data, source="x"), (LOADED / "perf-dump.json").read_bytes()),
    "vector": (
        lambda data: parse_vector(data, source="x"),
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1.5,"1"]}]}}',
    ),
    "matrix": (
        lambda data: parse_matrix(data, source="x"),
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1.5,"1"],[2,"NaN"]]}]}}',
    ),
    "can dump": (lambda data: parse_can_dump(data, source="x"), (TENTACLE / "version.json").read_bytes()),
    "connections": (
        lambda data: parse_dump(data, source="x"),
        (TENTACLE / "messenger-dump-cluster.json").read_bytes(),
    ),
    "names": (
        lambda data: parse_names(data, source="x"),
        (TENTACLE / "messenger-dump-hb_back_server.json").read_bytes(),
    ),
    "score": (lambda data: parse_fragmentation(data, source="x"), b'{"fragmentation_rating": 0.1}'),
    "set options": (
        lambda data: parse_set_options(data, ("a",), source="x"),
        b'{"diff":{"a":{"default":1,"mon":5,"final":5}}}',
    ),
    "images": (lambda data: parse_images(data, source="x"), (HEALTHY / "rbd-client-help.json").read_bytes()),
    "image": (
        lambda data: parse_counters(data, "vms", "disk-1", source="x"),
        (HEALTHY / "rbd-client-perf-dump.json").read_bytes(),
    ),
    "capacity": (lambda data: parse_capacity(data, "iops", source="x"), b'{"iops": "315.000000"}'),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_any_answer(name: str, data: st.DataObject) -> None:
    parse, recorded = PARSERS[name]
    begin = data.draw(st.integers(0, len(recorded)))
    length = data.draw(st.integers(0, 40))
    garbled = recorded[:begin] + data.draw(st.binary(max_size=8)) + recorded[begin + length :]
    for answer in (garbled, json.dumps(data.draw(JSON)).encode()):
        with contextlib.suppress(ParseError):
            parse(answer)
