"""A test of many items names every offender, and cannot pass for want of items."""

from __future__ import annotations

import inspect

import pytest

from support.offenders import for_every


def test_every_offender_is_named() -> None:
    @for_every("number", [1, 2, 3, 4])
    def odd(number: int) -> None:
        assert number % 2, "even"
        if number == 3:
            raise KeyError("three")

    with pytest.raises(pytest.fail.Exception) as failed:
        odd()
    assert str(failed.value).splitlines()[0] == "3 of 4:"
    assert [line.split(":")[0] for line in str(failed.value).splitlines() if line[0].isdigit()][1:] == ["2", "3", "4"]
    assert "KeyError" in str(failed.value)


def test_several_values_fixtures_and_ids() -> None:
    seen = []

    @for_every(("left", "right"), [("a", 1), ("b", 2)], ids=lambda pair: pair[0].upper())
    def pairs(left: str, fixture: str, right: int) -> None:
        seen.append((left, fixture, right))
        assert right != 2

    assert list(inspect.signature(pairs).parameters) == ["fixture"]
    with pytest.raises(pytest.fail.Exception, match=r"^1 of 2:\nB: assert 2 != 2"):
        pairs(fixture="x")
    assert seen == [("a", "x", 1), ("b", "x", 2)]


def test_nothing_to_look_at_fails_and_a_skip_is_none() -> None:
    @for_every("item", [])
    def never(item: object) -> None: ...

    with pytest.raises(AssertionError, match="nothing to look at"):
        never()

    @for_every("item", [1])
    def skips(item: object) -> None:
        pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception):
        skips()
