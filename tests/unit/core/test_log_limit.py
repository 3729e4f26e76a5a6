"""What strangers cause is logged at most once in a while, by kind."""

from enum import Enum

from plumbline.core.log_limit import LogLimit


class Kind(Enum):
    A = 1
    B = 2


def test_once_in_an_interval_for_each_kind() -> None:
    now = 0.0
    limit = LogLimit(60.0, clock=lambda: now)
    assert [limit.due(kind) for kind in (Kind.A, Kind.A, Kind.B, Kind.B)] == [True, False, True, False]
    now = 59.9
    assert not limit.due(Kind.A)
    now = 60.0
    assert limit.due(Kind.A)
    now = 61.0
    assert limit.due(Kind.B)
    assert not limit.due(Kind.A)
