"""The parser of the load average is total."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.probes.run.gates import parse_loadavg


@given(st.text() | st.from_regex(r"[0-9.]{0,8} [0-9.]{0,8}") | st.text(alphabet="0123456789.eE+-_ \n²٣"))
def test_any_text(text: str) -> None:
    try:
        load = parse_loadavg(text)
    except ParseError:
        return
    assert math.isfinite(load)
    assert load >= 0
