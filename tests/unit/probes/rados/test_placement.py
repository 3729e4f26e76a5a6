"""Objects' names by the OSD that serves them: Ceph's own hash, and the choice over maps that change."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from plumbline.probes.rados.placement import Placement, hash_name, stable_mod

CEPH = Path(__file__).parents[3] / "fixtures" / "ceph-16.2"


@pytest.mark.parametrize("fixture", ["osd-map.json", "osd-map-namespace.json"])
def test_the_hash_is_cephs(fixture: str) -> None:
    answer = json.loads((CEPH / fixture).read_text())
    namespace, _, name = answer["objname"].rpartition("/")
    raw, group = (int(answer[key].partition(".")[2], 16) for key in ("raw_pgid", "pgid"))
    assert hash_name(name, namespace) == raw
    assert stable_mod(raw, 16) == group


@pytest.mark.parametrize(("hashed", "groups", "group"), [(13, 12, 5), (11, 12, 11), (12, 12, 4), (7, 1, 0), (9, 8, 1)])
def test_any_number_of_groups(hashed: int, groups: int, group: int) -> None:
    assert stable_mod(hashed, groups) == group


class Map:
    """Monitors with a map: placement group → primary."""

    def __init__(self, primaries: list[int]) -> None:
        self.primaries = primaries
        self.asked: list[str] = []

    def primary(self, name: str) -> int:
        self.asked.append(name)
        return self.primaries[stable_mod(hash_name(name, "ns"), len(self.primaries))]


def placement(cluster: Map) -> Placement:
    return Placement(cluster.primary, namespace="ns", prefix="plumbline/h/c", random=Random(1))


def test_every_osd_gets_two_names_in_one_group_of_its_own() -> None:
    cluster = Map([0, 1, 2, 1, 2, 0, 3, 3])
    chosen = placement(cluster)
    chosen.choose({0, 1, 2, 3}, 8)
    assert set(chosen.names) == {0, 1, 2, 3}
    assert len(cluster.asked) <= 8
    for osd, (first, second) in chosen.names.items():
        assert first.startswith(f"plumbline/h/c/osd.{osd}/")
        assert first != second
        groups = {stable_mod(hash_name(name, "ns"), 8) for name in (first, second)}
        assert len(groups) == 1
        assert cluster.primaries[groups.pop()] == osd


def test_an_osd_that_is_primary_for_nothing_gets_none() -> None:
    cluster = Map([0, 0, 1, -1])
    chosen = placement(cluster)
    chosen.choose({0, 1, 7}, 4)
    assert set(chosen.names) == {0, 1}
    assert len(cluster.asked) == 4


def test_a_new_map_moves_only_what_moved() -> None:
    cluster = Map([0, 1, 2, 0, 1, 2, 0, 1])
    chosen = placement(cluster)
    chosen.choose({0, 1, 2}, 8)
    before, cluster.asked = dict(chosen.names), []
    chosen.choose({0, 1, 2}, 8)
    assert chosen.names == before
    assert len(cluster.asked) == 3
    moved = stable_mod(hash_name(before[0][0], "ns"), 8)
    cluster.primaries[moved] = 2
    chosen.choose({0, 1, 2}, 8)
    assert chosen.names[1] == before[1]
    assert chosen.names[2] == before[2]
    assert chosen.names[0] != before[0]
    chosen.choose({1, 2}, 8)
    assert set(chosen.names) == {1, 2}


def test_more_groups_and_every_name_is_chosen_anew() -> None:
    cluster = Map([0, 1])
    chosen = placement(cluster)
    chosen.choose({0, 1}, 2)
    cluster.primaries = [0, 1, 1, 0]
    chosen.choose({0, 1}, 4)
    for osd, names in chosen.names.items():
        assert {cluster.primary(name) for name in names} == {osd}
