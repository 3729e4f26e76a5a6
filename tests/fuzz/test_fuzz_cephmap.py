"""Whatever the monitors say of their map: a reading whose samples the exposition takes, or one clear error."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plumbline.collectors import cephmap
from plumbline.errors import ParseError
from plumbline.metrics.guard import GuardedCollector
from plumbline.sources.ceph.cephmap import (
    parse_availability,
    parse_cephmap,
    parse_df,
    parse_full_ratios,
    parse_osd_df,
    parse_osd_tree,
    parse_pools,
    parse_rules,
)
from support.ceph_map import answers
from support.fake_collectors import fake

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
NUMBER = st.integers(-3, 4) | st.sampled_from([0.5, "2", "x", None, 1e400])
NAME = st.sampled_from(["osd.0", "osd.1", "a", "b", ""]) | JSON
NODE = st.fixed_dictionaries(
    {
        "id": NUMBER,
        "name": NAME,
        "type": st.sampled_from(["osd", "host", "rack", "root", "x"]),
        "reweight": NUMBER,
        "crush_weight": NUMBER,
        "status": NAME,
        "kb": NUMBER,
        "kb_used": NUMBER,
    },
    optional={"children": st.lists(NUMBER, max_size=4), "device_class": NAME},
)
TREE = st.fixed_dictionaries({"nodes": st.lists(NODE, max_size=8)}, optional={"stray": st.lists(NODE, max_size=3)})
STEP = st.fixed_dictionaries(
    {"op": st.sampled_from(["take", "choose_firstn", "chooseleaf_indep", "emit"]), "item_name": NAME, "type": NAME}
)
RULES = st.lists(st.fixed_dictionaries({"rule_id": NUMBER, "steps": st.lists(STEP, max_size=6)}), max_size=4)
POOL = st.fixed_dictionaries(
    {
        "pool": NUMBER,
        "pool_name": NAME,
        "type": NUMBER,
        "size": NUMBER,
        "min_size": NUMBER,
        "crush_rule": NUMBER,
        "erasure_code_profile": NAME,
    }
)
DUMP = st.fixed_dictionaries(
    {
        "pools": st.lists(POOL, max_size=4),
        "full_ratio": NUMBER,
        "nearfull_ratio": NUMBER,
        "backfillfull_ratio": st.floats(),
    },
    optional={"erasure_code_profiles": JSON | st.dictionaries(st.text(max_size=3), st.just({"k": "2"}))},
)
DF = st.fixed_dictionaries(
    {
        "pools": st.lists(
            st.fixed_dictionaries(
                {"id": NUMBER, "stats": st.fixed_dictionaries({"stored": NUMBER, "max_avail": NUMBER})}
            )
        )
    }
)


def value_or_parse_error(parse: Callable[[], Any]) -> Any:
    try:
        return parse()
    except ParseError as error:
        assert str(error).startswith(("ceph ", "the cluster map: "))  # noqa: PT017  (either is fine)
        return None


@given(JSON | TREE)
def test_any_tree(answer: Any) -> None:
    for osd in value_or_parse_error(lambda: parse_osd_tree(answer)) or ():
        assert math.isfinite(osd.reweight_ratio)
        assert osd.place is None or math.isfinite(osd.place.weight)


@given(JSON | TREE)
def test_any_use(answer: Any) -> None:
    found = value_or_parse_error(lambda: parse_osd_df(answer)) or {}
    assert all(each.size_kib > 0 for each in found.values())


@given(JSON | RULES)
def test_any_rules(answer: Any) -> None:
    value_or_parse_error(lambda: parse_rules(answer))


@given(JSON | DUMP, RULES)
def test_any_dump(answer: Any, rules: Any) -> None:
    known = value_or_parse_error(lambda: parse_rules(rules)) or {}
    for pool in value_or_parse_error(lambda: parse_pools(answer, known)) or ():
        assert pool.raw_ratio is None or math.isfinite(pool.raw_ratio)
    ratios = value_or_parse_error(lambda: parse_full_ratios(answer)) or {}
    assert all(0 <= each <= 1 for each in ratios.values())


@given(JSON | DF)
def test_any_df(answer: Any) -> None:
    value_or_parse_error(lambda: parse_df(answer))
    value_or_parse_error(lambda: parse_availability(answer))


@given(JSON)
def test_any_map(told: Any) -> None:
    value_or_parse_error(lambda: parse_cephmap(told, read_ts=0.0))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from _paths(each, (*path, key))


PATHS = tuple(_paths(answers()))


@given(st.sampled_from(PATHS), JSON)
def test_a_real_map_with_a_part_replaced(path: tuple[Any, ...], value: Any) -> None:
    """What is parsed is exported."""
    told = answers()
    place = told
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    found = value_or_parse_error(lambda: parse_cephmap(told, read_ts=0.0))
    if found is None:
        return
    collector = fake("cephmap", cephmap.COLLECTOR.specs, lambda _skip: cephmap.samples(found))
    health, families, _ = GuardedCollector(collector, None, clock=lambda: 0.0, logger=logging.getLogger("test")).run({})
    assert health.success, health.reason
    assert families
