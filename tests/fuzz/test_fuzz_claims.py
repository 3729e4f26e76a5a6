"""Whatever Kubernetes answers and whatever stands in the storage path: a value, or one clear error."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plumbline.claims.api import Claim, Events, Pod, Pods, PodTemplate, Version, parse
from plumbline.claims.claim import ClaimFailed, written
from plumbline.claims.claim_file import VERSION, _File, identity_of, parse_claim
from plumbline.core import jsontext
from plumbline.errors import ParseError
from plumbline.probes.run.result import OperationResult, Outcome
from plumbline.probes.run.state import ProbeRecord

IDENTITY = identity_of("fast", "ssd")
ONE = OperationResult(operation="total", latency={"mean": 2.0, "p50": 2.0}, bins=((2.0, 1),))
RESULT = IDENTITY.result(tool_version="v1.34.4", started=1.0, duration=2.0, outcome=Outcome.SUCCESS, operations=(ONE,))
REAL = jsontext.encode(
    _File(
        version=VERSION,
        storage_class="ssd",
        interval_s=60.0,
        timeout_s=9.0,
        record=ProbeRecord().with_result(RESULT).with_result(RESULT),
    )
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=8)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "status", "spec", "items", "state", "name", "phase", "terminated", "template"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(JSON | st.binary(max_size=30))
def test_an_answer(said: Any) -> None:
    data = said if isinstance(said, bytes) else json.dumps(said).encode()
    for kind in (Pod, Pods, Claim, Events, PodTemplate, Version):
        with contextlib.suppress(ParseError):
            parse(data, kind, source="x")


@given(st.text(st.characters(codec="utf-8"), max_size=60) | JSON.map(json.dumps), st.integers(0, 255))
def test_a_last_message(message: str, code: int) -> None:
    with contextlib.suppress(ClaimFailed):
        assert 0 < written(message, code, "x") <= 10**13


@given(
    st.integers(0, len(REAL)),
    st.integers(0, 40),
    st.binary(max_size=12) | SCALARS.map(lambda it: json.dumps(it).encode()),
)
def test_a_damaged_file(begin: int, length: int, put_in: bytes) -> None:
    parse_claim(REAL, name="fast", source="x")
    with contextlib.suppress(ParseError):
        found = parse_claim(REAL[:begin] + put_in + REAL[begin + length :], name="fast", source="x")
        assert found.name == "fast"
        assert all(total.count >= 0 for total in (each.histogram() for each in found.record.totals.values()))


@given(JSON)
def test_a_file_of_anything(said: Any) -> None:
    with contextlib.suppress(ParseError):
        parse_claim(json.dumps(said).encode(), name="fast", source="x")
