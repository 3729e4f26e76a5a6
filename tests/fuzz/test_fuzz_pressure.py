"""The parsers of pressure stall information and of a choice in brackets are total."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.sources.kernel.hugepages import parse_choice
from plumbline.sources.kernel.pressure import parse_pressure

WORDS = st.sampled_from(("some", "full", "avg10=0.10", "avg60=", "total=7", "total=", "\n", "total=²", "total=-1"))


@given(st.text() | st.lists(WORDS).map(" ".join))
@example("some total=١\n")
def test_a_reading_or_one_clear_error(text: str) -> None:
    try:
        found = parse_pressure(text, "io", source="test")
    except ParseError:
        return
    assert all(value is None or value >= 0 for value in (found.some_us, found.full_us))


@given(st.text() | st.lists(st.sampled_from(("always", "[always]", "[", "]", "[madvise]", " ", "+"))).map("".join))
@example("[always\n]")
def test_a_choice_or_one_clear_error(text: str) -> None:
    with suppress(ParseError):
        assert f"[{parse_choice(text, source='test')}]" in text
