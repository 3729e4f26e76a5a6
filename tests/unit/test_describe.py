"""What list and show say of a shipped profile, a recorded file and a hand-written one."""

from __future__ import annotations

import json

import msgspec
import pytest

from plumbline.baseline.describe import Figure, show, summaries
from plumbline.baseline.model import Source
from plumbline.baseline.profiles import load_profiles
from plumbline.baseline.site import parse_site
from plumbline.errors import BaselineError
from plumbline.workloads import load_catalogue

CATALOGUE = load_catalogue()
PROFILES = load_profiles(CATALOGUE)
RECORDED = parse_site(
    """\
schema_version: 1
source: measured
host: storage1
recorded: 2025-11-03T10:22:41Z
devices: [{name: nvme0n1, model: Micron 7450, serial: "0123", device_class: nvme}]
entries:
- workload: randread-4k-qd1-j1
  device_class: nvme
  device: nvme0n1
  latency: {p50: 84us, p99: 160us}
  runs: 5
  mad_ratio: 0.012
  spread_ratio: 1.036
  tolerance_ratio: 1.25
""",
    where="/var/lib/plumbline/baseline.yaml",
    host="storage1",
    catalogue=CATALOGUE,
)
WRITTEN = parse_site(
    "schema_version: 1\nentries:\n- {workload: randread-4k-qd1-j1, device_class: ssd, iops: 12000, rate_iops: 50}\n",
    where="/etc/plumbline/ours.yaml",
    host="storage1",
    catalogue=CATALOGUE,
)


def test_list_has_the_strongest_source_first():
    one_profile = {"unnoba-2020": PROFILES["unnoba-2020"]}
    judge = {"ssd": "unnoba-2020", "nvme": "another", "tape": "unnoba-2020"}
    found = summaries(one_profile, [WRITTEN, RECORDED], judge)
    assert [(one.name, one.source, one.entries, one.device_classes, one.judges) for one in found] == [
        ("baseline", Source.MEASURED, 1, {"nvme": 1}, ("nvme",)),
        ("ours", Source.SITE, 1, {"ssd": 1}, ("ssd",)),
        ("unnoba-2020", Source.DOCUMENTED, 172, found[2].device_classes, ("ssd",)),
    ]
    classes = found[2].device_classes
    assert {name: classes[name] for name in ("hdd", "nvme", "ssd", "10g", "testec")} == {
        "hdd": 71,
        "nvme": 1,
        "ssd": 77,
        "10g": 2,
        "testec": 5,
    }
    assert (found[0].title, found[0].recorded) == ("recorded on storage1", "2025-11-03T10:22:41+00:00")
    assert (found[1].title, found[1].where) == ("written by the site", "/etc/plumbline/ours.yaml")


def test_show_a_file():
    shown = show("baseline", PROFILES, [RECORDED])
    assert shown.facts == {
        "file": "/var/lib/plumbline/baseline.yaml",
        "host": "storage1",
        "recorded": "2025-11-03T10:22:41+00:00",
        "devices": "nvme0n1 nvme Micron 7450 0123",
    }
    (row,) = shown.rows
    assert row.figures == (Figure("latency.p50", "84us", 84e-6, "s"), Figure("latency.p99", "160us", 160e-6, "s"))
    assert row.notes == ("5 runs; highest median over lowest 1.04, MAD 1.2%",)
    assert (row.tolerance_ratio, row.series) == (1.25, "nvme nvme0n1")
    assert show("/var/lib/plumbline/baseline.yaml", PROFILES, [RECORDED]) == shown


def test_show_a_hand_written_file():
    (row,) = show("ours", PROFILES, [WRITTEN]).rows
    assert row.figures == (Figure("iops", "12000 IOPS", 12000.0, "1/s"),)
    assert row.notes == ("capped at 50 operations a second per job",)


def test_show_a_profile_with_its_contradictions():
    shown = show("unnoba-2020", PROFILES, [])
    row = next(row for row in shown.rows if row.line == 2702 and row.operation == "write")
    assert [(figure.figure, figure.printed) for figure in row.figures] == [
        ("latency.mean", "398.16 ms"),
        ("iops", "11 IOPS"),
        ("throughput", "44.90 MiB/s"),
    ]
    assert row.breaches == ("IOPS × latency makes 4.4 of 16 in flight",)
    assert not row.judges
    assert row.notes[1].startswith("not used: iops 1 IOPS (Figura 55 as scanned, line 2702): a digit was lost")
    assert len(shown.pictures) == 24
    assert [left.where for left in shown.left_out][:2] == ["Figura 102 and Figura 103", "Figura 104"]
    assert "capacity of the HDD" in [one.about for one in shown.contradictions]


def test_a_transfer_says_what_was_sent_again():
    rows = show("unnoba-2020", PROFILES, [], layer="network").rows
    notes = {(row.device_class, row.workload): row.notes for row in rows}
    assert notes["10g", "tcp-throughput-s1"][0] == "119 segments sent again in 20.00 s"
    assert notes["1g", "tcp-throughput-s1"][0] == "0 segments sent again in 20 s"
    assert notes["1g", "tcp-throughput-s1"][1].startswith("from the prose: ")


def test_filters():
    shown = show("unnoba-2020", PROFILES, [], layer="disk", device_class="ssd")
    assert {row.device_class for row in shown.rows} == {"ssd"}
    assert (len(shown.rows), shown.pictures, shown.left_out, shown.contradictions) == (66, (), (), ())
    with pytest.raises(BaselineError) as caught:
        show("unnoba-2020", PROFILES, [], device_class="tape")
    said = str(caught.value)
    assert said.startswith(
        "unnoba-2020: nothing of this layer and device class; it has: disk hdd, disk nvme, disk ssd, "
    )
    assert ", network 10g, network 1g, osd hdd, osd ssd, " in said


def test_no_such_baseline():
    with pytest.raises(BaselineError, match="unoba: no such baseline; there are: unnoba-2020"):
        show("unoba", PROFILES, [RECORDED])


def test_all_of_it_is_json():
    data = json.loads(msgspec.json.encode([show("unnoba-2020", PROFILES, []), *summaries(PROFILES, [RECORDED], {})]))
    assert data[0]["rows"][5]["figures"][0] == {
        "figure": "latency.mean",
        "printed": "15.06 ms",
        "base": 0.01506,
        "unit": "s",
    }
