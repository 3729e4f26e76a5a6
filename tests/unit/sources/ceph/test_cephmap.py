"""The cluster map from what Ceph 16.2 said, and 18.2 and 20.2: places, rules, pools, limits, and what is used."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.errors import ParseError
from plumbline.sources.ceph.cephmap import (
    NO_RULE,
    OsdInMap,
    OsdUse,
    Place,
    Pool,
    PoolAvailability,
    PoolUse,
    Rule,
    parse_availability,
    parse_cephmap,
    parse_df,
    parse_full_ratios,
    parse_monitors,
    parse_osd_addresses,
    parse_osd_df,
    parse_osd_tree,
    parse_pools,
    parse_rules,
)
from support.ceph_map import answers, said

WEIGHT = 0.0038909912109375
CAPTURES = Path(__file__).parents[3] / "fixtures"


def rule(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    """A dump of one rule, 7."""
    return [{"rule_id": 7, "rule_name": "r", "steps": [*steps, {"op": "emit"}]}]


def take(name: str) -> dict[str, Any]:
    return {"op": "take", "item": -1, "item_name": name}


def test_places() -> None:
    assert parse_osd_tree(said("osd-tree")) == (
        OsdInMap("osd.0", 1.0, Place("hdd", "default", "rack-a", "store-1", WEIGHT), True),
        OsdInMap("osd.1", 1.0, Place("hdd", "default", "rack-a", "store-2", WEIGHT), True),
        OsdInMap("osd.2", 1.0, Place("ssd", "default", "rack-b", "store-3", WEIGHT), True),
    )


def test_what_is_out_keeps_its_place_and_loses_its_size() -> None:
    osds = {each.daemon: each for each in parse_osd_tree(said("osd-tree-out"))}
    assert osds["osd.1"] == OsdInMap("osd.1", 0.0, Place("hdd", "default", "rack-a", "store-2", WEIGHT), True)
    assert osds["osd.2"].reweight_ratio == 0.8499908447265625
    assert parse_osd_df(said("osd-df-out")).keys() == {"osd.0", "osd.2"}


def test_what_crush_does_not_know_has_no_place() -> None:
    assert [each for each in parse_osd_tree(said("osd-tree-stray")) if each.place is None] == [
        OsdInMap("osd.1", 1.0, None, True)
    ]
    assert parse_osd_df(said("osd-df-stray")) == {
        "osd.0": OsdUse(4194304, 529308),
        "osd.1": OsdUse(4194304, 490360),
        "osd.2": OsdUse(4194304, 451064),
    }


def test_of_two_places_the_first_counts() -> None:
    tree = said("osd-tree")
    again = {"id": -40, "name": "other", "type": "root", "children": [-41]}
    linked = {"id": -41, "name": "store-9", "type": "host", "children": [0]}
    tree["nodes"] += [again, linked]
    assert parse_osd_tree(tree)[0] == parse_osd_tree(said("osd-tree"))[0]


def test_an_osd_right_below_the_root_and_a_circle() -> None:
    osd = {"id": 0, "name": "osd.0", "type": "osd", "crush_weight": 1, "reweight": 1, "status": "up"}
    root = {"id": -1, "name": "fast", "type": "root", "children": [0]}
    assert parse_osd_tree({"nodes": [root, osd]}) == (OsdInMap("osd.0", 1.0, Place("", "fast", "", "", 1.0), True),)
    circle = {"id": -2, "name": "h", "type": "host", "children": [-1]}
    turned = {"nodes": [{**root, "children": [0, -2]}, circle, osd]}
    assert parse_osd_tree(turned)[0].place == Place("", "fast", "", "h", 1.0)


def test_rules() -> None:
    assert parse_rules(said("osd-crush-rule-dump-several-steps")) == {
        0: Rule("default", "", "host"),
        1: Rule("default", "hdd", "host"),
        2: Rule("default", "", "rack"),
        3: Rule("default", "", "host"),
        4: Rule("default", "mixed", ""),
        5: Rule("default", "", "osd"),
    }


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([take("fast~ssd"), {"op": "choose_firstn", "num": 2, "type": "rack"}], Rule("fast", "ssd", "rack")),
        ([take("a~ssd"), {"op": "choose_firstn", "type": "x"}, take("b~ssd")], Rule("", "ssd", "")),
        ([take("a"), {"op": "choose_firstn", "type": "x"}, take("a~ssd")], Rule("a", "mixed", "")),
        ([take("osd.3")], Rule("osd.3", "", "")),
        ([], NO_RULE),
    ],
)
def test_rules_nobody_captured(steps: list[dict[str, Any]], expected: Rule) -> None:
    assert parse_rules(rule(*steps)) == {7: expected}


def test_pools() -> None:
    rules = parse_rules(said("osd-crush-rule-dump"))
    assert parse_pools(said("osd-dump"), rules) == (
        Pool(1, "images", "replicated", Rule("default", "", "host"), 3, 2, 3.0, pgs=8),
        Pool(2, "vms", "replicated", Rule("default", "hdd", "host"), 2, 1, 2.0, pgs=8),
        Pool(3, "spread", "replicated", Rule("default", "", "rack"), 2, 1, 2.0, pgs=8),
        Pool(4, "archive", "erasure", Rule("default", "", "host"), 3, 2, 1.5, pgs=8),
    )
    assert {pool.rule for pool in parse_pools(said("osd-dump"), {})} == {NO_RULE}


def test_raw_bytes_of_erasure_coding() -> None:
    dump = said("osd-dump")
    dump["pools"] = [each for each in dump["pools"] if each["type"] == 3]
    (pool,) = dump["pools"]
    pool["size"] = 8  # the plugin lrc with k=4 m=2 l=3 keeps a chunk more for each group of three
    dump["erasure_code_profiles"]["two-one"] = {"k": "4", "m": "2", "l": "3", "plugin": "lrc"}
    assert parse_pools(dump, {})[0].raw_ratio == 2.0
    dump["erasure_code_profiles"]["two-one"] = {"mapping": "__DD__DD", "plugin": "lrc"}
    assert parse_pools(dump, {})[0].raw_ratio is None
    pool["type"] = 9
    assert (parse_pools(dump, {})[0].kind, parse_pools(dump, {})[0].raw_ratio) == ("", None)


CEPH_20 = Path(__file__).parents[3] / "fixtures" / "ceph-20.2" / "osd-dump-erasure.json"


def reads_of(**changed: object) -> dict[str, int | None]:
    """Pool → what a read may find on one OSD, of a real Ceph 20.2.4 with these facts changed in each of its pools."""
    dump = json.loads(CEPH_20.read_text())
    for each in (*dump["pools"], *dump["erasure_code_profiles"].values(), dump):
        each |= {key: value for key, value in changed.items() if key in each}
    return {pool.name: pool.read_unit_bytes for pool in parse_pools(dump, {})}


def test_reads_that_ask_only_who_holds_what_is_wanted() -> None:
    assert reads_of() == {".mgr": None, "legacy": 4096, "fast": 4096}
    assert reads_of(stripe_width=32768)["fast"] == 16384
    assert reads_of(require_osd_release="umbrella")["fast"] == 4096
    assert {pool.read_unit_bytes for pool in parse_pools(said("osd-dump"), {})} == {None}


@pytest.mark.parametrize("changed", [{"require_osd_release": "squid"}, {"plugin": "lrc"}, {"fast_read": True}], ids=str)
def test_reads_that_ask_all_who_hold_data(changed: dict[str, object]) -> None:
    assert reads_of(**changed) == {".mgr": None, "legacy": None, "fast": None}


def test_limits_and_use() -> None:
    assert parse_full_ratios(said("osd-dump")) == {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}
    assert parse_df(said("df"))[4] == PoolUse(47783936, 7115671040)


def test_all_of_it() -> None:
    found = parse_cephmap(answers(), read_ts=5.0)
    assert found.read_ts == 5.0
    assert (len(found.osds), len(found.pools), len(found.osd_use), len(found.pool_use)) == (3, 4, 3, 4)
    assert not found.unread
    without = parse_cephmap({**answers(), "use": None, "unread": "no manager"}, read_ts=5.0)
    assert (without.osds, without.pools) == (found.osds, found.pools)
    assert (without.osd_use, without.pool_use, without.unread) == ({}, {}, "no manager")


@pytest.mark.parametrize(
    ("folder", "used_kib", "pool_use"),
    [
        ("ceph-18.2", (172304, 151588, 206848), PoolUse(61399064, 5802609664)),
        ("ceph-20.2", (232860, 181964, 178812), PoolUse(77451288, 5762655232)),
    ],
)
def test_newer_releases(folder: str, used_kib: tuple[int, ...], pool_use: PoolUse) -> None:
    read = {path.stem: json.loads(path.read_text()) for path in (CAPTURES / folder).glob("*.json")}
    told = {
        **{key: read[key.replace(" ", "-")] for key in ("osd tree", "osd dump", "osd crush rule dump")},
        "use": {"osd df": read["osd-df"], "df": read["df"]},
        "unread": "",
    }
    found = parse_cephmap(told, read_ts=0.0)
    by_host = Rule("default", "", "host")
    assert found.osds == tuple(
        OsdInMap(f"osd.{number}", 1.0, Place("hdd", "default", "", f"node-{number}", WEIGHT), True)
        for number in range(3)
    )
    assert found.osd_use == {f"osd.{number}": OsdUse(4194304, used) for number, used in enumerate(used_kib)}
    assert found.pools == (
        Pool(1, ".mgr", "replicated", by_host, 2, 1, 2.0, pgs=1),
        Pool(2, "plumbline-probe", "replicated", by_host, 2, 1, 2.0, pgs=16),
    )
    assert found.pool_use[2] == pool_use
    assert (found.full_ratios, found.unread) == ({"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}, "")


@pytest.mark.parametrize(
    ("status", "reweight", "unread"),
    [
        ("up", 1, "the manager has no report yet from osd.1"),
        ("up", 0, ""),  # out: forgotten
        ("down", 1, ""),  # since before the manager began
    ],
)
def test_a_manager_that_has_just_begun(status: str, reweight: int, unread: str) -> None:
    """Its first answer, seen on a real cluster 1 s after ``ceph mgr fail``, has 0 KiB for every OSD."""
    told = answers()
    told["use"]["osd df"]["nodes"][1].update(kb=0, kb_used=0)
    next(node for node in told["osd tree"]["nodes"] if node["id"] == 1).update(status=status, reweight=reweight)
    found = parse_cephmap(told, read_ts=0.0)
    assert (found.unread, found.osd_use.keys()) == (unread, {"osd.0", "osd.2"})


def test_a_manager_that_knows_no_osd_yet() -> None:
    told = answers()
    told["use"]["osd df"]["nodes"] = []
    assert parse_cephmap(told, read_ts=0.0).unread == "the manager has no report yet from osd.0 and 2 more"


@pytest.mark.parametrize("command", ["osd tree", "osd dump", "osd crush rule dump", "osd df", "df"])
@pytest.mark.parametrize("answer", [None, [], {}, 3, {"nodes": 3, "pools": [{}]}, [{}]])
def test_what_is_no_answer(command: str, answer: Any) -> None:
    wrong = copy.deepcopy(answers())
    (wrong if command in wrong else wrong["use"])[command] = answer
    if command == "osd crush rule dump" and answer in ([], {}):
        assert {pool.rule for pool in parse_cephmap(wrong, read_ts=0.0).pools} == {NO_RULE}
        return
    with pytest.raises(ParseError, match=rf"^ceph {command}: not in the format of Ceph 16 to 20: "):
        parse_cephmap(wrong, read_ts=0.0)


@pytest.mark.parametrize("key", ["osd tree", "osd dump", "osd crush rule dump", "use", "unread"])
def test_a_missing_answer(key: str) -> None:
    with pytest.raises(ParseError, match=r"^the cluster map: an answer is missing: "):
        parse_cephmap({name: value for name, value in answers().items() if name != key}, read_ts=0.0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("osd tree", "nodes", 3, "reweight"), "NaN"),
        (("osd tree", "nodes", 3, "crush_weight"), float("inf")),
        (("osd dump", "full_ratio"), 1.2),
        (("osd dump", "full_ratio"), float("nan")),
        (("osd dump", "erasure_code_profiles", "two-one", "k"), "0"),
        (("osd dump", "pools", 0, "size"), None),
        (("use", "osd df", "nodes", 0, "kb"), float("inf")),
    ],
)
def test_impossible_values(path: tuple[Any, ...], value: Any) -> None:
    wrong = answers()
    place = wrong
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ParseError):
        parse_cephmap(wrong, read_ts=0.0)


def test_fixtures_are_whole() -> None:
    """The tree's fourth node is an OSD: what the test above changes."""
    folder = CAPTURES / "ceph-16.2-map"
    assert json.loads((folder / "osd-tree.json").read_text())["nodes"][3]["type"] == "osd"


def test_where_each_osd_listens_for_others():
    dump = {
        "osds": [
            {
                "osd": 3,
                "public_addrs": {"addrvec": [{"type": "v2", "addr": "10.0.0.3:6800"}]},
                "cluster_addrs": {
                    "addrvec": [{"type": "v2", "addr": "10.1.0.3:6802"}, {"type": "v1", "addr": "10.1.0.3:6803"}]
                },
                "heartbeat_back_addrs": {"addrvec": [{"type": "v2", "addr": "[fd00::3]:6804"}]},
            },
            {"osd": 4},
        ]
    }
    assert parse_osd_addresses(dump) == {"10.1.0.3:6802": 3, "10.1.0.3:6803": 3, "[fd00::3]:6804": 3}
    assert parse_osd_addresses({}) == {}
    with pytest.raises(ParseError):
        parse_osd_addresses({"osds": [{"cluster_addrs": {"addrvec": [{"addr": "10.1.0.3:6802"}]}}]})


def test_an_osd_that_is_down_listens_nowhere() -> None:
    """After a restart of the host its neighbour has the port, and the map still has both."""
    addresses = {"cluster_addrs": {"addrvec": [{"addr": "10.1.0.3:6802"}]}}
    dump = {"osds": [{"osd": 1, "up": 1, **addresses}, {"osd": 3, "up": 0, **addresses}]}
    assert parse_osd_addresses(dump) == {"10.1.0.3:6802": 1}


def test_availability_as_ceph_20_tracks_it() -> None:
    said_of_pools = json.loads((CAPTURES / "ceph-20.2" / "osd-pool-availability-status.json").read_text())
    found = parse_availability(said_of_pools)
    assert found == {
        ".mgr": PoolAvailability(True, 103, 0, 0),
        "p": PoolAvailability(True, 79, 24, 1),
    }
    # what is not kept follows from it
    (pool,) = [each for each in said_of_pools if each["pool"] == "p"]
    assert pool["score"] == pytest.approx(79 / (79 + 24))
    assert (pool["mtbf"], pool["mttr"]) == (79, 24)


def test_without_availability() -> None:
    assert parse_availability(None) == {}
    assert parse_cephmap(answers(), read_ts=1.0).pool_availability == {}


@pytest.mark.parametrize(
    "answer", [[{}], [{"pool": "p", "uptime": -1, "downtime": 0, "num_failures": 0, "available": True}], [7], {"a": 1}]
)
def test_availability_in_another_form(answer: object) -> None:
    with pytest.raises(ParseError, match="availability-status"):
        parse_availability(answer)


@pytest.mark.parametrize("answer", [[], {}, {"mons": 3}])
def test_monitors_in_another_form(answer: object) -> None:
    with pytest.raises(ParseError, match="mon dump"):
        parse_monitors(answer)


def test_monitors_that_nobody_asked_for() -> None:
    assert parse_monitors(None) is None


def test_the_autoscaler_is_on_or_not() -> None:
    dump = said("osd-dump")
    for pool, mode in zip(dump["pools"], ("on", "warn", "off", None), strict=True):
        pool["pg_autoscale_mode"] = mode
    assert [pool.autoscaled for pool in parse_pools(dump, {})] == [True, False, False, False]
