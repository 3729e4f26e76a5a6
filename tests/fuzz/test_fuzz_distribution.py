"""The parser of os-release is total."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.sources.distribution import Family, parse_os_release

LINES = st.sampled_from(("ID=", "ID_LIKE=", "PRETTY_NAME=", "debian", "'", '"', "rhel fedora", "\\", "\n", "#", "="))


@given(st.text() | st.lists(LINES).map("".join))
@example('ID="\n')
def test_a_family_or_none(text: str) -> None:
    family = parse_os_release(text).family
    assert family is None or family in Family
