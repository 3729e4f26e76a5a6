"""Both parsers of disks' health are total, and what they give always becomes samples."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.collectors import health as metrics
from plumbline.errors import ParseError
from plumbline.sources.disk.diskhealth import Answer, DiskHealth, DiskState, NoHealth, Reason
from plumbline.sources.disk.nvme_smart import Limits, parse_health, parse_limits
from plumbline.sources.disk.smartctl import parse_answer

ANSWERS = [
    json.loads(path.read_bytes())
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "disk-health").glob("*.json"))
]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "12.345", "9" * 30, "0 (2 0)", "12h+30m", "Device is in STANDBY mode", "\ud800"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An answer with some of its values replaced."""

    def walk(value: object) -> object:
        if draw(st.integers(0, 40)) == 0:
            return draw(leaves)
        if isinstance(value, dict):
            return {key: walk(each) for key, each in value.items() if draw(st.integers(0, 40))}
        if isinstance(value, list):
            return [walk(each) for each in value]
        return value

    return json.dumps(walk(draw(st.sampled_from(ANSWERS)))).encode("utf-8", "surrogatepass")


def show(health: DiskHealth) -> None:
    for spec, labels, value in metrics.samples([DiskState("sda", health, False, "", "", 1.0, 0.0)]):
        assert len(labels) == len(spec.labels)
        assert isinstance(value, int | float)
        assert float(value) == float(value)  # no NaN, no overflow
    if health.temperature_celsius is not None:
        assert -273 <= health.temperature_celsius < 65536


@given(st.one_of(damaged(), st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8"))))
@example(b'{"smartctl":{"exit_status":' + b"9" * 400 + b"}}")
@example(b"[" * 5000)
def test_smartctl_of_anything(text: bytes) -> None:
    with suppress(ParseError):
        answer = _answer(text)
        if isinstance(answer, DiskHealth):
            show(answer)
        elif isinstance(answer, NoHealth):
            assert answer.reason in Reason


def _answer(text: bytes) -> Answer | NoHealth:
    try:
        return parse_answer(text, source="smartctl /dev/sda")
    except NoHealth as error:
        return error


@given(st.one_of(st.binary(max_size=600), st.binary(min_size=512, max_size=512)), st.binary(max_size=4))
def test_nvme_page_of_anything(page: bytes, limits: bytes) -> None:
    with suppress(ParseError):
        show(parse_health(page, Limits(int.from_bytes(limits[:2]), int.from_bytes(limits[2:])), source="nvme0"))


@given(
    st.one_of(
        st.binary(max_size=600), st.binary(min_size=4, max_size=4).map(lambda four: bytes(266) + four + bytes(3826))
    )
)
def test_identify_of_anything(page: bytes) -> None:
    with suppress(ParseError):
        limits = parse_limits(page, source="nvme0")
        assert 0 <= limits.warning_kelvin < 65536
