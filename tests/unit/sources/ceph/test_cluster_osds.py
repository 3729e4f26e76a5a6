"""OSDs as the monitors tell: their host, class and state."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.errors import ParseError
from plumbline.sources.ceph.cluster_osds import ClusterOsds, Osd, from_json, parse_osds, to_json

CEPH = Path(__file__).parents[3] / "fixtures" / "ceph-16.2"


def tree(name: str = "osd-tree.json", release: str = "16.2") -> Any:
    return json.loads((CEPH.parent / f"ceph-{release}" / name).read_text())


@pytest.mark.parametrize("release", ["16.2", "18.2", "20.2"])
def test_a_healthy_cluster(release: str) -> None:
    osds = parse_osds(tree(release=release), {"vm": [0, 1, 2]})
    assert [(f"osd.{osd.number}", osd.device_class, osd.crush_host, osd.state) for osd in osds.by_number.values()] == [
        ("osd.0", "hdd", "node-0", ""),
        ("osd.1", "hdd", "node-1", ""),
        ("osd.2", "hdd", "node-2", ""),
    ]
    assert osds.of_host("vm") == (0, 1, 2)
    assert osds.of_host("node-1") == (1,)  # no daemon told so: CRUSH's word
    assert osds.of_host("elsewhere") == ()


def test_down_out_and_stray() -> None:
    assert parse_osds(tree("osd-tree-osd-down.json"), {}).by_number[2].state == "down"
    facts = tree()
    osd = next(node for node in facts["nodes"] if node["id"] == 1)
    osd["reweight"] = 0
    facts["stray"] = [{"id": 9, "type": "osd", "status": "up", "reweight": 1}]
    osds = parse_osds(facts, {})
    assert (osds.by_number[1].state, osds.by_number[9].crush_host) == ("out", "")


@pytest.mark.parametrize(
    ("told", "asked", "same"),
    [
        ("node1", "node1", True),
        ("node1.example.org", "node1", True),
        ("node1", "node1.example.org", True),
        ("node1.example.org", "node1.example.net", False),
        ("node1", "node10", False),
        ("", "", False),
    ],
)
def test_long_and_short_names(told: str, asked: str, same: bool) -> None:
    osds = ClusterOsds({4: Osd(4, "ssd", "", "")}, {told: [4]})
    assert osds.of_host(asked) == ((4,) if same else ())


def test_words() -> None:
    osds = parse_osds(tree(), {"vm": [0, 1]})
    assert osds.chosen(["host"], "vm") == (0, 1)
    assert osds.chosen(["all"], "vm") == (0, 1, 2)
    assert osds.chosen(["osd.7", "host"], "vm") == (0, 1, 7)


def test_survives_another_process() -> None:
    osds = parse_osds(tree(), {"vm": [0, 1]})
    again = from_json(json.loads(json.dumps(to_json(osds))))
    assert json.dumps(to_json(again)) == json.dumps(to_json(osds))
    assert again.of_host("vm") == (0, 1)


@pytest.mark.parametrize("broken", [None, [], {}, {"nodes": [{}]}, {"nodes": [{"type": "osd", "id": "x"}]}])
def test_what_is_no_tree(broken: Any) -> None:
    with pytest.raises(ParseError):
        parse_osds(broken, {})


def test_what_is_no_list_of_hosts() -> None:
    for nodes in (None, [], {"vm": 3}, {"vm": ["x"]}):
        with pytest.raises(ParseError):
            parse_osds(copy.deepcopy(tree()), nodes)
