"""The lab's verdicts and its report; the rows themselves are taken by `make lab`."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy.demo.webhook import Notification

from lab import report
from lab.cluster import table
from lab.cluster.run import judged, quiet
from lab.cluster.scenarios import SCENARIOS
from lab.cluster.watch import Told
from lab.guest import Guest
from lab.report import Result
from lab.ses import Enclosure
from lab.table import Seen, said
from support.debian_host import lacking


@pytest.mark.parametrize(
    ("truth", "figure", "tolerance", "right"),
    [
        (200, 200.0, 0, True),
        (200, 201.0, 0, False),
        (200, 201.0, 1, True),
        (0.1 + 0.2, 0.3, 0, True),
        (1.0, None, 0, False),
        (None, None, 0, False),  # nothing was looked at
        ({}, {}, 0, False),
        (set(), set(), 0, False),
        ({"rx": 256.0}, {"rx": 256.0}, 0, True),
        ({"rx": 256.0}, {"rx": 256.0, "tx": 256.0}, 0, False),
        ({"rx": 256.0, "driver": "igb"}, {"rx": 255.0, "driver": "igb"}, 1, True),
        ({"driver": "igb"}, {"driver": "igc"}, 1, False),
    ],
)
def test_both_sides_agree(truth: object, figure: object, tolerance: float, right: bool) -> None:
    assert Seen(truth, figure, tolerance).right() is right


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "none"),
        (2.0, "2"),
        (0.05123456, "0.0512346"),
        ({"b": 1.0, "a": None}, "a none, b 1"),
        ({"y", "x"}, "x, y"),
    ],
)
def test_a_value_in_words(value: object, words: str) -> None:
    assert said(value) == words


def test_what_was_seen_of_a_guest_is_kept_by_it() -> None:
    """``rows/boot.py`` reboots once for all its rows; a light of the enclosure makes it no other guest."""
    guest = Guest("trixie", Path("run"), 22, Enclosure(1, {}))
    seen = {guest: "told"}
    guest.enclosure.lit.add(3)
    assert seen[guest] == "told"
    assert Guest("trixie", Path("run"), 22, Enclosure(1, {})) not in seen


def test_a_kept_debian_is_asked_for_what_it_lacks(tmp_path: Path) -> None:
    """dpkg names the files of a library by its architecture, too; one package's name begins another's."""
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    for name in ("libbpf1:amd64.list", "python3.13.list", "python3.13.postinst", "crun-wasm.list"):
        (info / name).touch()
    assert lacking(tmp_path, ("libbpf1", "python3.13", "python3", "crun")) == ["python3", "crun"]


def row(**changed: str) -> Result:
    fields = {
        "group": "nvme", "device": "NVMe drive", "feature": "paths", "kernel": "6.12.57+deb13-amd64", "truth": "2",
        "figure": "2", "verdict": "right", "date": "2026-11-24",
    }  # fmt: skip
    return Result(**fields | changed)


def test_a_report_is_read_as_it_was_written() -> None:
    rows = [row(), row(feature="pulled", verdict="wrong: no answer within 300 s", truth="", figure="a|b")]

    again = report.parse(report.render(rows))

    assert again == [row(), row(feature="pulled", verdict="wrong: no answer within 300 s", truth="-", figure="a/b")]


def test_a_run_replaces_its_rows_and_keeps_those_of_other_kernels() -> None:
    before = [row(), row(kernel="7.2.1"), row(feature="pulled")]

    after = report.merged(before, [row(kernel="6.12.60", verdict="wrong")])

    assert after == [row(kernel="6.12.60", verdict="wrong"), row(kernel="7.2.1"), row(feature="pulled")]


def test_the_summary_counts_the_verdicts() -> None:
    text = report.render([row(), row(feature="a", verdict="wrong"), row(feature="b", verdict="not shown: no SMART")])

    assert "3 rows on 6.12.57+deb13-amd64: 1 right, 1 wrong, 1 not shown." in text


FAULT = next(each for each in SCENARIOS if each.name == "disk")


def told(at: float, name: str, **labels: str) -> Told:
    return Told(at, Notification("tickets-storage", "firing", {"alertname": name, **labels}, {"summary": "Slow."}))


@pytest.mark.parametrize(
    ("first", "over", "verdict"),
    [
        (told(103, FAULT.alerts[0], layer="osd", instance="s2:10047", ceph_daemon="osd.2"), "9 s", "right"),
        (
            told(103, FAULT.alerts[0], layer="osd", instance="s2:10047", ceph_daemon="osd.2"),
            "no",
            "not right: not over",
        ),
        (told(103, FAULT.alerts[0], layer="osd", instance="s1:10047", ceph_daemon="osd.2"), "9 s", "no host named"),
        (told(103, FAULT.alerts[0], layer="osd", instance="s2:10047", ceph_daemon="osd.21"), "9 s", "no device named"),
        (told(103, FAULT.alerts[0], layer="rados", instance="s2:10047", ceph_daemon="osd.2"), "9 s", "another layer"),
        (
            told(103, "PlumblineDown", layer="osd", instance="s2:10047", device="osd.2"),
            "9 s",
            "another alert came first",
        ),
    ],
)
def test_the_first_notification_of_a_fault_is_judged(first: Told, over: str, verdict: str) -> None:
    line = judged(FAULT, "18.2.7", [first, told(110, "PlumblineCanaryLatencyHigh", layer="rados")], 100.0, over)
    assert verdict in line.verdict
    assert (line.verdict == "right") is (verdict == "right")
    assert (line.after, line.others) == ("3 s", "PlumblineCanaryLatencyHigh (tickets-storage)")


@pytest.mark.parametrize("part", ["osd.2 on s2:10047 (disk loop3; {}, pending).", "{}: osd.2 on s2."])
def test_a_page_that_names_the_guilty_part_is_right(part: str) -> None:
    labels = {"alertname": "PlumblineCanaryLatencyExtreme", "layer": "rados", "instance": "client:10047"}
    said = {"description": "Slow.\nSuspected: " + part.format(FAULT.alerts[0])}
    line = judged(FAULT, "18.2.7", [Told(103, Notification("pager", "firing", labels, said))], 100.0, "9 s")
    assert (line.verdict, line.layer) == ("right", f"rados, suspected: {FAULT.alerts[0]}")


def test_nobody_told_is_not_right() -> None:
    assert judged(FAULT, "18.2.7", [], 100.0, "no").verdict == "not right: nobody was told"


WORK = next(each for each in SCENARIOS if each.informs)


@pytest.mark.parametrize(
    ("sent", "informed", "verdict"),
    [
        ([], {WORK.informs}, "right"),
        ([], set(), f"not right: no {WORK.informs}"),
        ([told(103, "PlumblineDown")], {WORK.informs}, "not right: people were told after 3 s"),
    ],
)
def test_work_is_right_when_it_only_informs(sent: list[Told], informed: set[str], verdict: str) -> None:
    assert quiet(WORK, "18.2.7", sent, informed, 100.0).verdict == verdict


def test_a_run_of_one_fault_keeps_the_rows_of_the_others_in_their_order() -> None:
    lines = [judged(each, "18.2.7", [], 100.0, "no") for each in SCENARIOS[:3]]
    order = [each.fault for each in SCENARIOS]
    page = table.written(f"before {table.BEGIN} {table.END} after", [lines[2], lines[0]], order)
    page = table.written(page, [lines[1]], order)
    assert table.parse(page) == lines
    assert page.startswith("before ")
    assert page.endswith(" after")
    assert table.written(page, [lines[1]], order) == page
    newer = judged(SCENARIOS[1], "20.2.4", [], 100.0, "no")
    page = table.written(page, [newer], order)
    assert table.parse(page) == [*lines[:2], newer, lines[2]]
    again = judged(SCENARIOS[1], "20.2.5", [], 100.0, "no")
    assert table.parse(table.written(page, [again], order)) == [*lines[:2], again, lines[2]]


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no <!--"):
        table.written("a page", [], [])
