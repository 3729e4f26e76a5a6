"""The parsers of control groups' files are total."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.sources.kernel.cgroup import (
    parse_io_max,
    parse_membership,
    parse_periods,
    parse_quota,
    parse_throttle,
)

WORDS = st.sampled_from((
    "8:16", "wiops=30", "rbps=max", "wiops=", "wiops=²", "30", "-1", "max", "nr_periods", "nr_throttled", "\n",
))  # fmt: skip


@pytest.mark.parametrize("parse", [parse_io_max, parse_periods, parse_quota, parse_throttle])
@given(text=st.text() | st.lists(WORDS).map(" ".join))
@example(text="\n")
@example(text="8:16 ١\n")
def test_a_reading_or_one_clear_error(parse: Callable[..., object], text: str) -> None:
    with suppress(ParseError):
        parse(text, source="test")


@given(st.text() | st.lists(st.sampled_from(("0::", "7:blkio:", "/", "..", "a", "\n", ":"))).map("".join))
def test_no_group_is_outside(text: str) -> None:
    assert all(".." not in path.parts and path.is_absolute() for path in parse_membership(text).values())
