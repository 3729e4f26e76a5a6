"""fio's report → figures, on real outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.probes.fio.fio_output import parse_report, split_notes

FIXTURES = Path(__file__).parents[3] / "fixtures" / "fio"


def report(name: str):
    return parse_report((FIXTURES / name).read_bytes(), job="plumbline", source=name)


def minimal(**write: object) -> bytes:
    nothing = {"total_ios": 0, "iops": 0, "bw_bytes": 0}
    job = {"jobname": "plumbline", "error": 0, "read": nothing, "write": nothing | write}
    return json.dumps({"fio version": "fio-3.36", "jobs": [job]}, indent=2).encode()


def test_capped_write():
    found = report("randwrite-4k-qd1-j1-rate50.json")
    assert (found.error, found.read, found.notes) == (0, None, ())
    assert found.write is not None
    assert found.write.operations == 100
    assert found.write.iops == pytest.approx(49.975012)
    assert found.write.throughput == 204697


def test_latency_is_in_seconds_and_ordered():
    latency = report("randread-4k-qd16-j1.json").read.latency
    assert list(latency.statistics) == ["mean", "p50", "p95", "p99", "p999", "max"]
    assert 1e-5 < latency.statistics["mean"] < 1e-2
    quantiles = [latency.statistics[name] for name in ("p50", "p95", "p99", "p999", "max")]
    assert quantiles == sorted(quantiles)


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("randwrite-4k-qd1-j1-dsync.json", "write"),
        ("randread-4k-qd16-j1.json", "read"),
        ("randrw75-4k-qd16-j4.json", "read"),
        ("randrw75-4k-qd16-j4.json", "write"),
    ],
)
def test_bins_hold_every_operation_and_agree_with_the_percentiles(name: str, direction: str):
    latency = getattr(report(name), direction).latency
    assert sum(count for _, count in latency.bins) == latency.count
    seen, median = 0, 0.0
    for middle, count in latency.bins:
        seen += count
        if seen >= latency.count / 2:
            median = middle
            break
    assert latency.statistics["p50"] == pytest.approx(median, rel=0.01)


def test_mixed_workload_has_both_directions_in_its_ratio():
    found = report("randrw75-4k-qd16-j4.json")
    share = found.read.operations / (found.read.operations + found.write.operations)
    assert share == pytest.approx(0.75, abs=0.01)


def test_flushes_are_kept_apart():
    found = report("randwrite-4k-qd1-j1-fdatasync.json")
    assert found.write is not None
    assert found.write.latency.count == found.write.operations


def test_the_rate_of_every_second_where_fio_reports_the_course():
    write = report("write-4k-qd1-j1-dsync.json").write
    assert len(write.rates) == 3
    seconds = write.operations / write.iops
    assert sum(write.rates) / 3 == pytest.approx(write.iops, rel=0.2)
    assert seconds == pytest.approx(3, rel=0.01)
    assert report("randwrite-4k-qd1-j1-dsync.json").write.rates == ()


def test_what_stands_between_documents_is_a_note():
    status, last = (minimal(total_ios=done, iops=1, bw_bytes=1, runtime=ms) for done, ms in ((10, 1000), (40, 2200)))
    found = parse_report(status + b"\nfio: io_u error\n" + last + b"\n", job="plumbline")
    assert found.notes == ("fio: io_u error",)
    assert found.write.rates == (10, 25)
    end = minimal(total_ios=41, iops=1, bw_bytes=1, runtime=2300)  # too soon after the last status for a rate
    found = parse_report(status + b"\n" + last + b"\n" + end, job="plumbline")
    assert (found.write.operations, found.write.rates) == (41, (10, 25))
    with pytest.raises(ParseError, match="x:21: not what fio writes"):
        parse_report(status + b"\n" + last[:-3], job="plumbline", source="x")


def test_full_disk():
    found = report("enospc.json")
    assert found.error == 28
    assert found.notes[0].startswith("fio: io_u error on file fio.0: No space left on device")


def test_messages_before_the_document():
    assert report("terminated.json").notes == ("fio: terminating on signal 15",)
    found = report("file-missing.json")
    assert (found.read, found.write) == (None, None)
    assert found.notes == ("fio: file creation disallowed by allow_file_create=0",)


def test_percentile_from_a_bucket_never_exceeds_the_maximum():
    times = {"N": 3, "mean": 900, "max": 1000, "percentile": {"99.900000": 1007, "50.000000": 800}}
    figures = parse_report(minimal(total_ios=3, iops=3, bw_bytes=9, lat_ns=times), job="plumbline").write
    assert figures.latency.statistics == {
        "mean": pytest.approx(9e-7),
        "p50": pytest.approx(8e-7),
        "p999": pytest.approx(1e-6),
        "max": pytest.approx(1e-6),
    }


def test_completion_latency_where_total_latency_is_switched_off():
    write = {"lat_ns": {"N": 0}, "clat_ns": {"N": 1, "mean": 5000, "max": 5000}}
    figures = parse_report(minimal(total_ios=1, iops=1, bw_bytes=4096, **write), job="plumbline").write
    assert figures.latency.statistics == {"mean": 5e-6, "max": 5e-6}


def test_operations_without_any_latency():
    figures = parse_report(minimal(total_ios=1, iops=1, bw_bytes=4096), job="plumbline").write
    assert (figures.operations, figures.latency) == (1, None)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "x: holds no JSON document"),
        (b"fio: engine libaio not loadable\n", "x: holds no JSON document, only: fio: engine libaio not loadable"),
        (b"note\n{\n}\n", "x:2: not what fio writes: Object missing required field `fio version`"),
        (b'{\n"fio version": "fio-3.33", "jobs": []\n}\n', "x: expected one job named 'plumbline', found 0 of 0"),
        (minimal(total_ios=-1), "x:1: not what fio writes: Expected `int` >= 0 - at `$.jobs[0].write.total_ios`"),
        (
            minimal(total_ios=1, iops=1, bw_bytes=1, lat_ns={"N": 1, "bins": {"a": 1}}),
            "x: a latency bin is not a number of nanoseconds: invalid literal for int() with base 10: 'a'",
        ),
    ],
)
def test_what_is_refused(data: bytes, says: str):
    with pytest.raises(ParseError) as caught:
        parse_report(data, job="plumbline", source="x")
    assert str(caught.value) == says


def test_cut_off_report():
    whole = (FIXTURES / "randread-4k-qd16-j1.json").read_bytes()
    with pytest.raises(ParseError, match="not what fio writes"):
        parse_report(whole[: len(whole) // 2], job="plumbline")


def test_notes_of_a_broken_report():
    assert split_notes(b"fio: one\n\nfio: two \xff\n{\n") == ("fio: one", "fio: two \ufffd")
    assert split_notes(b"") == ()


def test_notes_say_what_stderr_said():
    said = (FIXTURES / "enospc.stderr").read_text().splitlines()
    assert report("enospc.json").notes[0] == said[0]


@pytest.mark.parametrize("number", ["nan", "-nan", "inf", "-inf", "NaN"])
def test_what_fio_could_not_calculate_is_refused_only_where_it_is_used(number: str):
    write = {"total_ios": 1, "iops": 1, "bw_bytes": 1, "lat_ns": {"N": 1, "mean": 5, "max": 5}}
    text = minimal(**write).decode()
    unused = text.replace('"iops": 0', f'"iops": {number}').replace('"bw_bytes": 0', f'"bw_bytes" : {number} ')
    for document in (unused, " ".join(unused.split()), f"note {{\n{unused}"):
        found = parse_report(document.encode(), job="plumbline")
        assert found.read is None
        assert found.write is not None
        assert (found.write.iops, found.write.latency.statistics["mean"]) == (1, 5e-9)
    for used in ('"iops": 1', '"mean": 5'):
        with pytest.raises(ParseError, match="of the operations that finished"):
            parse_report(text.replace(used, f"{used.split(':')[0]}: {number}").encode(), job="plumbline")


def test_a_document_on_one_line():
    document = json.dumps(json.loads(minimal(total_ios=1, iops=2, bw_bytes=3))).encode()
    for data in (document, b"fio: a note\n" + document + b"\n"):
        assert parse_report(data, job="plumbline").write.iops == 2
