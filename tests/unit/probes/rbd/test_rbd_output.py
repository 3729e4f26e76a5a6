"""What rbd writes: figures of its bench over releases, answers about images."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.probes.fio.fio_output import parse_report
from plumbline.probes.rbd.rbd_output import (
    ImageInfo,
    RbdBenchReport,
    Watcher,
    parse_extents,
    parse_info,
    parse_metadata,
    parse_rbd_bench,
    parse_watchers,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
CEPH = FIXTURES / "ceph-16.2"
DEFAULT = ("layering", "exclusive-lock", "object-map", "fast-diff", "deep-flatten")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("ceph-16.2/rbd-bench-write.txt", RbdBenchReport(2048, 2666.67, 2666.67 * 4096)),
        ("ceph-16.2/rbd-bench-read.txt", RbdBenchReport(2048, 4162.6, 4162.6 * 4096)),
        ("ceph-16.2/rbd-bench-readwrite.txt", RbdBenchReport(2048, 1735.59, 1735.59 * 4096)),
        ("rbd-bench/plain.txt", RbdBenchReport(640, 33.06, 33.06 * 8388608)),
        ("rbd-bench/exponent.txt", RbdBenchReport(262144, 37449.0, 37449.0 * 4096)),
        ("rbd-bench/fast.txt", RbdBenchReport(4096, 1100.0, 1100.0 * 4194304)),
    ],
)
def test_the_figures_of_a_bench(file: str, expected: RbdBenchReport) -> None:
    assert parse_rbd_bench((FIXTURES / file).read_text()) == expected


@pytest.mark.parametrize(
    ("said", "bytes_per_s"),
    [("277317603.36", 277317603.36), ("1.5e+08", 1.5e8), ("146 MiB/s", 146 * 2**20), ("0 B/s", 0.0)],
)
def test_without_the_size_of_an_operation_the_last_figure_counts(said: str, bytes_per_s: float) -> None:
    report = parse_rbd_bench(f"elapsed: 7   ops: 9   ops/sec: 1.5   bytes/sec: {said}\n")
    assert report == RbdBenchReport(9, 1.5, bytes_per_s)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "rbd bench: ended without its last line"),
        ("  1   45   44.46  372959697.41\n", "ended without its last line"),
        ("elapsed: 7 ops: 9\n", "rbd bench:1: expected elapsed, ops"),
        ("elapsed: 0  ops: 0  ops/sec: -nan  bytes/sec: -nan\n", "not a number: '-nan'"),
        ("elapsed: 0  ops: 8  ops/sec: inf  bytes/sec: inf\n", "not a number: 'inf'"),
        ("elapsed: 7  ops: x  ops/sec: 1  bytes/sec: 1\n", "not a number of operations: 'x'"),
        ("elapsed: 7  ops: 9  ops/sec: -1  bytes/sec: 1\n", "not a number: '-1'"),
        ("elapsed: 7  ops: 9  ops/sec: 1  bytes/sec: 1 MB/s\n", "unknown unit 'MB/s'"),
    ],
)
def test_half_an_answer_is_none(text: str, said: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_rbd_bench(text)
    assert said in str(raised.value)


def test_what_is_known_of_an_image() -> None:
    assert parse_info((CEPH / "rbd-info.json").read_bytes()) == ImageInfo(268435456, DEFAULT)
    clone = json.loads((CEPH / "rbd-info-clone.json").read_bytes())["parent"]
    assert clone is not None
    assert parse_info((CEPH / "rbd-info-clone.json").read_bytes()) == ImageInfo(4194304, DEFAULT, parent=clone)
    assert parse_info(b'{"size": 1, "snapshot_count": 3}') == ImageInfo(1, (), 3)


def test_who_has_an_image_open() -> None:
    watched = Watcher("127.0.0.1:0/3506735386", 4176)
    assert parse_watchers((CEPH / "rbd-status.json").read_bytes()) == ()
    assert parse_watchers((CEPH / "rbd-status-watched.json").read_bytes()) == (watched,)
    # Ceph 12
    old = b'{"watchers":{"watcher":{"address":"10.0.0.7:0/9","client":4176,"cookie":1}}}'
    assert parse_watchers(old) == (Watcher("10.0.0.7:0/9", 4176),)
    assert str(watched) == "client.4176 at 127.0.0.1:0/3506735386"


@pytest.mark.parametrize(
    ("address", "ip"), [("10.0.0.7:0/9", "10.0.0.7"), ("[fd00::7]:0/9", "fd00::7"), ("nonsense", "")]
)
def test_the_host_of_who_has_it_open(address: str, ip: str) -> None:
    assert Watcher(address).ip == ip


def test_marks_and_data_of_an_image() -> None:
    assert parse_metadata((CEPH / "rbd-image-meta.json").read_bytes()) == {
        "conf_rbd_cache": "false",
        "plumbline.laid-out": "134217728",
        "plumbline.owner": "node-1/a",
    }
    assert parse_metadata((CEPH / "rbd-image-meta-none.json").read_bytes()) == {}
    assert parse_extents((CEPH / "rbd-diff-empty.json").read_bytes()) == 0
    assert parse_extents((CEPH / "rbd-diff.json").read_bytes()) == 16


@pytest.mark.parametrize("parse", [parse_info, parse_watchers, parse_metadata, parse_extents])
def test_no_json_says_which_command_it_was(parse: Callable[[bytes], object]) -> None:
    with pytest.raises(ParseError, match=r"^rbd [a-z-]+( list)?: unexpected output"):
        parse(b"rbd: error opening image")


def test_fio_reports_the_same_of_an_image() -> None:
    report = parse_report((CEPH / "fio-rbd-randwrite.json").read_bytes(), job="randwrite-4k")
    assert report.write is not None
    assert report.write.latency is not None
    assert report.read is None
