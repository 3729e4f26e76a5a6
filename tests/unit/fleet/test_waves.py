from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.errors import ConfigError
from plumbline.fleet.waves import Limits, Member, waves

MEMBERS = st.lists(
    st.builds(Member, st.text("abc", min_size=1, max_size=6), st.sampled_from(["hdd", "ssd"]), st.sampled_from("123 ")),
    unique_by=lambda member: member.name,
    max_size=60,
).map(lambda members: [Member(one.name, one.fleet_class, one.domain.strip()) for one in members])
LIMITS = st.builds(Limits, st.floats(0.01, 1), st.integers(1, 10))


@given(MEMBERS, LIMITS)
def test_each_node_once_and_no_wave_beyond_a_limit(members: list[Member], limits: Limits) -> None:
    sizes = Counter(member.fleet_class for member in members)
    planned = waves(members, limits, class_sizes=sizes)
    assert sorted(one.name for wave in planned for one in wave) == sorted(member.name for member in members)
    for wave in planned:
        assert 1 <= len(wave) <= limits.at_once
        assert len({one.place for one in wave}) == len(wave)
        for name, count in Counter(one.fleet_class for one in wave).items():
            assert count <= max(1, limits.share * sizes[name] + 1e-9)  # a share of 0.29 of 100 is 28.999…


def test_two_hundred_nodes_in_ten_racks_take_as_many_waves_as_the_largest_rack_has_nodes() -> None:
    members = [Member(f"stor{number:03}", "hdd", f"rack{number % 10}") for number in range(200)]
    planned = waves(members, Limits(0.1, 10), class_sizes={"hdd": 200})
    assert [len(wave) for wave in planned] == [10] * 20


def test_a_share_of_a_small_class_is_still_one_node() -> None:
    members = [Member("a", "hdd"), Member("b", "hdd")]
    assert [len(wave) for wave in waves(members, Limits(0.1), class_sizes={"hdd": 2})] == [1, 1]


def test_the_share_is_of_the_whole_class_not_of_those_that_are_due() -> None:
    members = [Member("a", "hdd"), Member("b", "hdd")]
    assert [len(wave) for wave in waves(members, Limits(0.1), class_sizes={"hdd": 20})] == [2]


@pytest.mark.parametrize(("share", "at_once"), [(0, 1), (1.1, 1), (0.5, 0)])
def test_limits_that_mean_nothing_are_refused(share: float, at_once: int) -> None:
    with pytest.raises(ConfigError, match="must be"):
        Limits(share, at_once)
