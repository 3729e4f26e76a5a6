"""The wall clock is set, the monotonic one is not."""

import msgspec
import pytest

from plumbline.core.wall_clock import WallClock, moved


class Clock:
    def __init__(self) -> None:
        self.set_s, self.elapsed_s = 1.7e9, 0.0
        self.clock = WallClock(lambda: self.set_s + self.elapsed_s, lambda: self.elapsed_s)


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0, 400 * 86400.0, -30 * 365 * 86400.0])
def test_a_jump_is_seen_once(jump_s: float) -> None:
    clock = Clock()
    clock.elapsed_s += 1000
    assert clock.clock.jumped_s() == 0
    clock.set_s += jump_s
    assert clock.clock.jumped_s() == jump_s
    assert clock.clock.jumped_s() == 0
    clock.set_s -= jump_s
    assert clock.clock.jumped_s() == -jump_s
    assert clock.clock.jumped_in_all_s == 0


def test_corrections_do_not_add_up_to_a_jump() -> None:
    clock = Clock()
    for _ in range(100):
        clock.set_s += 59
        assert clock.clock.jumped_s() == 0
    assert clock.clock.jumped_in_all_s == 0


class Record(msgspec.Struct, frozen=True):
    began: float
    ended: float | None = None
    name: str = "x"


def test_times_are_moved_and_nothing_else() -> None:
    assert moved(Record(10.0), 5.0, "began", "ended") == Record(15.0)
    assert moved(Record(10.0, 20.0), -5.0, "ended") == Record(10.0, 15.0)
