"""The parsers of a fleet: any text is a value or one line of error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.errors import ConfigError
from plumbline.fleet.crush import PLACE, racks_of
from plumbline.fleet.inventory import Host, parse_inventory
from plumbline.fleet.ssh import words_of

LINE = st.sampled_from(
    ["[all]", "[a:vars]", "[a:children]", "a", "b[1:3]", "x=1", "a ansible_port=1", "all:", "  hosts:", "{", "}", "'"]
)
TEXT = st.one_of(st.text(max_size=200), st.lists(LINE, max_size=8).map("\n".join))


def _refused(call: Callable[[], object]) -> str:
    try:
        assert call()
    except ConfigError as error:
        return str(error)
    return ""


@given(TEXT)
def test_an_inventory(text: str) -> None:
    found: list[Host] = []
    said = _refused(lambda: found.extend(parse_inventory(text, where="fleet")) or True)
    assert "\n" not in said
    assert bool(found) is not bool(said)
    assert all(not host.name.startswith("-") and "/" not in host.name for host in found)


@given(st.one_of(st.text(max_size=200), st.text(max_size=60).map(lambda text: f"{PLACE}{{{text}}} 1\n")))
def test_a_page_of_metrics(text: str) -> None:
    _refused(lambda: racks_of(text, where="page"))


@given(st.text(max_size=50))
def test_a_command_of_the_node(text: str) -> None:
    _refused(lambda: words_of(text))


def test_json_that_is_no_inventory() -> None:
    with pytest.raises(ConfigError):
        parse_inventory('{"_meta": []}', where="fleet")
