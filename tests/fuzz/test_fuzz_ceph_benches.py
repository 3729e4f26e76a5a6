"""The parsers of Ceph's benches and of its tree of OSDs are total: figures that make sense, or ParseError."""

from __future__ import annotations

import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.probes.rados.osd_bench import parse_osd_bench
from plumbline.probes.rados.placement import hash_name, stable_mod
from plumbline.probes.rados.rados_bench import parse_rados_bench
from plumbline.sources.ceph.cluster_osds import parse_osds, to_json

FIXTURES = Path(__file__).parent.parent / "fixtures"
RADOS = [path.read_text() for path in sorted([*FIXTURES.glob("*/rados-*"), *FIXTURES.glob("rados-bench/*.json")])]
OSD = [path.read_text() for path in sorted(FIXTURES.glob("ceph-*/osd-bench*"))]
TREES = [json.loads(path.read_text()) for path in sorted(FIXTURES.glob("ceph-*/osd-tree*.json"))]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def mutated(texts: list[str]) -> st.SearchStrategy[str]:
    piece = st.sampled_from(["", '"', "}", "nan", "-1", "1e999", '"max_latency:"', "9" * 400]) | st.text(max_size=20)

    def change(text: str, at: float, length: int, new: str) -> str:
        start = int(at * len(text))
        return text[:start] + new + text[start + length :]

    return st.builds(change, st.sampled_from(texts), st.floats(0, 1), st.integers(0, 60), piece)


def sensible(*values: float | None) -> bool:
    return all(value is None or (math.isfinite(value) and value > 0) for value in values)


@given(st.text() | mutated(RADOS))
def test_rados_bench(text: str) -> None:
    try:
        report = parse_rados_bench(text)
    except ParseError:
        return
    assert sensible(report.operations, report.duration_s, report.iops, report.bytes_per_second, report.mean_s)
    assert sensible(report.max_s)


@given(st.text() | mutated(OSD) | JSON.map(json.dumps))
def test_osd_bench(text: str) -> None:
    try:
        report = parse_osd_bench(text)
    except ParseError:
        return
    assert sensible(report.bytes_per_second, report.elapsed_s, report.iops)


@given(st.data())
def test_osd_tree(data: st.DataObject) -> None:
    tree = json.loads(json.dumps(data.draw(st.sampled_from(TREES))))
    node = data.draw(st.sampled_from(tree["nodes"]))
    node[data.draw(st.sampled_from([*node, "device_class"]))] = data.draw(JSON)
    try:
        osds = parse_osds(data.draw(st.just(tree) | JSON), data.draw(st.just({"vm": [0]}) | JSON))
    except ParseError:
        return
    json.dumps(to_json(osds))


@given(st.text(max_size=60), st.text(max_size=20), st.integers(1, 70_000))
def test_every_name_has_a_placement_group(name: str, namespace: str, groups: int) -> None:
    hashed = hash_name(name, namespace)
    assert 0 <= hashed < 2**32
    assert 0 <= stable_mod(hashed, groups) < groups
