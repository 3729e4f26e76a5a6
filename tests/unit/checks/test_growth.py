"""What counters grow by between looks."""

from __future__ import annotations

from plumbline.checks.growth import Count, Growth


def counts(growth: Growth, *looks: tuple[float, int | None]) -> list[Count | None]:
    """One counter of one CPU at these times."""
    found = []
    for now_s, total in looks:
        growth.look(now_s)
        found.append(growth.count("softnet dropped", total, 0))
    return found


def test_one_look_knows_no_growth() -> None:
    growth = Growth()
    assert counts(growth, (10.0, 100)) == [Count(100)]
    assert growth.seen_s is None


def test_growth_is_what_was_added_between_looks() -> None:
    growth = Growth()
    assert counts(growth, (10.0, 5), (12.0, 9), (13.0, 9)) == [Count(5), Count(9, 4), Count(9, 4)]
    assert growth.seen_s == 3.0


def test_growth_is_forgotten_after_the_window() -> None:
    growth = Growth(window_s=60.0)
    found = counts(growth, (0, 5), (30, 9), (60, 9), (89, 10), (90, 10), (150, 10))
    assert [count.grew if count else None for count in found] == [None, 4, 4, 5, 1, 0]
    assert growth.seen_s == 60.0


def test_a_reset_counts_from_zero() -> None:
    assert counts(Growth(), (0, 500), (10, 3)) == [Count(500), Count(3, 3)]


def test_what_was_not_there_at_the_last_look_has_not_grown() -> None:
    assert counts(Growth(), (0, 500), (10, None), (20, 700), (30, 701)) == [Count(500), None, Count(700), Count(701, 1)]


def test_each_counter_of_each_thing_is_its_own() -> None:
    growth = Growth()
    for now_s in (0.0, 1.0):
        growth.look(now_s)
        dropped = [growth.count("softnet dropped", total, cpu) for cpu, total in ((0, 3), (1, 5 + int(now_s)))]
        squeezed = growth.count("softnet squeezed", 7, 0)
    assert (dropped, squeezed) == ([Count(3, 0), Count(6, 1)], Count(7, 0))
