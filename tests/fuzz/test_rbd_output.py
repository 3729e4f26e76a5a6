"""The parsers of what rbd writes are total: finite figures or ParseError."""

from __future__ import annotations

import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.probes.rbd.rbd_output import (
    parse_extents,
    parse_info,
    parse_metadata,
    parse_rbd_bench,
    parse_watchers,
)

FIXTURES = Path(__file__).parent.parent / "fixtures"
BENCHES = [path.read_text() for folder in ("ceph-16.2", "rbd-bench") for path in (FIXTURES / folder).glob("*.txt")]
ANSWERS = [path.read_bytes() for path in (FIXTURES / "ceph-16.2").glob("rbd-*.json")]
WORD = st.one_of(
    st.text(max_size=6), st.sampled_from(["nan", "-inf", "1e400", "1e308", "-1", "9" * 400, "٣", "5 PiB/s", "\n"])
)


def check_bench(text: str) -> None:
    try:
        report = parse_rbd_bench(text)
    except ParseError:
        return
    assert report.operations >= 0
    for value in (report.iops, report.throughput):
        assert math.isfinite(value)
        assert value >= 0


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    check_bench(text)


@given(st.lists(WORD, min_size=4, max_size=4), WORD)
def test_a_last_line_with_any_words(words: list[str], size: str) -> None:
    elapsed, operations, iops, amount = words
    last = f"elapsed: {elapsed}   ops: {operations}   ops/sec: {iops}   bytes/sec: {amount}"
    check_bench(f"bench  type write io_size {size} io_threads 4 bytes 8388608 pattern random\n{last}\n")


@given(st.data())
def test_a_real_bench_with_a_piece_replaced(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(BENCHES))
    at = data.draw(st.integers(0, len(text)))
    check_bench(text[:at] + data.draw(WORD) + text[at + data.draw(st.integers(0, 40)) :])


@given(st.data())
def test_answers_with_a_piece_replaced(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(ANSWERS))
    at = data.draw(st.integers(0, len(whole)))
    piece = data.draw(st.one_of(st.binary(max_size=8), st.sampled_from([b"null", b"-1", b"[" * 2000, b"{}", b"1e400"])))
    answer = whole[:at] + piece + whole[at + data.draw(st.integers(0, 20)) :]
    for parse in (parse_info, parse_watchers, parse_metadata, parse_extents):
        try:
            parse(answer)
        except ParseError:
            continue
    try:
        for watcher in parse_watchers(answer):
            assert isinstance(watcher.ip, str)
        assert parse_info(answer).size_bytes >= 0
    except ParseError:
        pass
