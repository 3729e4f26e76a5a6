"""MooseFS, by what its tool printed about a real master."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.collectors.fileservers import moosefs_samples as samples
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.moosefs import parse_chunks, read_chunks

FIXTURES = Path(__file__).parents[2] / "fixtures" / "moosefs"
HEALTHY, MISSING = ((FIXTURES / f"{name}.txt").read_bytes() for name in ("healthy", "missing"))


class Mfscli:
    """Answers as told."""

    def __init__(self) -> None:
        self.asked: tuple[str, ...] = ()

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.asked = tuple(argv)
        return Completed(self.asked, 0, stdout=HEALTHY)


def test_all_chunkservers_run() -> None:
    reading = parse_chunks(HEALTHY)
    assert {state: count for state, count in reading.chunks.items() if count} == {"stable": 11}
    assert reading.chunkservers == {f"10.78.0.{number}:9422": True for number in (1, 2, 3)}


def test_two_are_gone() -> None:
    got = [(spec.name, *labels, value) for spec, labels, value in samples(parse_chunks(MISSING))]
    assert ("plumbline_moosefs_chunks", "missing", 1) in got
    assert ("plumbline_moosefs_chunks", "endangered", 10) in got
    assert [row[1:] for row in got if row[0] == "plumbline_moosefs_chunkserver_connected"] == [
        ("10.78.0.1:9422", 1),
        ("10.78.0.2:9422", 0),
        ("10.78.0.3:9422", 0),
    ]
    assert len(got) == 10


def test_one_in_maintenance_is_not_missed() -> None:
    text = MISSING.replace(b"2|maintenance_off", b"2|maintenance_on")
    assert sorted(parse_chunks(text).chunkservers) == ["10.78.0.1:9422", "10.78.0.3:9422"]


def test_a_master_that_does_not_answer() -> None:
    """What the tool printed then; its exit status was 0."""
    with pytest.raises(ParseError, match="names no chunks: Working master servers not found"):
        parse_chunks(
            b"Working master servers not found !!! - maybe you are using wrong port number or wrong dns name\n"
        )


LINES = st.lists(
    st.sampled_from(
        (
            "all chunks matrix:|chunkclass missing:|1",
            "all chunks matrix:|chunkclass missing:|-1",
            "chunk servers:|a|1|",
            "Disconnected chunk servers:|a|1|maintenance_on",
            "chunk servers:|",
        )
    )
    | st.text(max_size=20)
).map(lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass"))


@given(st.binary() | LINES)
def test_chunks_or_one_clear_error(data: bytes) -> None:
    with suppress(ParseError):
        rows = [(spec, labels) for spec, labels, _ in samples(parse_chunks(data))]
        assert len(rows) == len(set(rows))


def test_a_host_without_a_master_is_asked_nothing(tmp_path: Path) -> None:
    runner = Mfscli()
    with pytest.raises(Unavailable, match="no MooseFS master"):
        read_chunks(Roots.under(tmp_path), runner)
    assert runner.asked == ()


@pytest.mark.parametrize(
    ("config", "host", "port"),
    [
        ("", "127.0.0.1", "9421"),
        ("# MATOCL_LISTEN_HOST = 10.0.0.9\nMATOCL_LISTEN_HOST = *\n", "127.0.0.1", "9421"),
        ("MATOCL_LISTEN_HOST=10.0.0.1\n  MATOCL_LISTEN_PORT = 9521 \n", "10.0.0.1", "9521"),
        ("MATOCL_LISTEN_HOST = -SMO\n", "127.0.0.1", "9421"),
    ],
)
def test_the_master_is_asked_where_it_listens(tmp_path: Path, config: str, host: str, port: str) -> None:
    (tmp_path / "etc" / "mfs").mkdir(parents=True)
    (tmp_path / "etc" / "mfs" / "mfsmaster.cfg").write_text(config)
    runner = Mfscli()
    assert read_chunks(Roots.under(tmp_path), runner).chunks["stable"] == 11
    assert runner.asked[:5] == ("mfscli", "-H", host, "-P", port)
