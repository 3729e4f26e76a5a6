"""What list and show say of a shipped profile, a recorded file and a hand-written one."""

from __future__ import annotations

import json

import msgspec
import pytest

from plumbline.baseline.describe import show, summaries
from plumbline.baseline.model import Source
from plumbline.baseline.shown import Figure
from plumbline.baseline.site import parse_site
from plumbline.errors import BaselineError, UnknownName
from support.documented import PROFILES

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
  level_spread: {1m: 0.021, 5m: 0}
  calm_seconds: 20
  load_ops_per_second: 1200
  load_bytes_per_second: 3000000
""",
    where="/var/lib/plumbline/baseline.yaml",
    host="storage1",
)
WRITTEN = parse_site(
    "schema_version: 1\nentries:\n- {workload: randread-4k-qd1-j1, device_class: ssd, iops: 12000, rate_iops: 50}\n",
    where="/etc/plumbline/ours.yaml",
    host="storage1",
)


def test_list_has_the_strongest_source_first():
    only = {"unnoba-2020": PROFILES["unnoba-2020"]}
    found = summaries(only, [WRITTEN, RECORDED], {"ssd": "unnoba-2020", "nvme": "another", "tape": "unnoba-2020"})
    assert [(one.name, one.source, one.entries, one.device_classes, one.judges) for one in found] == [
        ("baseline", Source.MEASURED, 1, {"nvme": 1}, ("nvme",)),
        ("ours", Source.SITE, 1, {"ssd": 1}, ("ssd",)),
        ("unnoba-2020", Source.DOCUMENTED, 179, found[2].device_classes, ("ssd",)),
    ]
    classes = found[2].device_classes
    assert {name: classes[name] for name in ("hdd", "nvme", "ssd", "10g", "testec")} == {
        "hdd": 74,
        "nvme": 1,
        "ssd": 79,
        "10g": 2,
        "testec": 7,
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
    assert row.level == "spread 1m 2.1 %, 5m 0 %; calm after 20 s; load 1,200 IOPS, 3 MB/s"
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
    assert len(shown.pictures) == 28
    assert {"8.3", "10.4"} <= {left.where for left in shown.left_out}
    assert "capacity of the HDD" in [one.about for one in shown.contradictions]


def test_a_transfer_says_what_was_sent_again():
    rows = show("unnoba-2020", PROFILES, [], layer="network").rows
    notes = {(row.device_class, row.workload): row.notes for row in rows}
    assert notes["10g", "tcp-throughput-s1"][0] == "119 segments retransmitted in 20.00 s"
    assert notes["1g", "tcp-throughput-s1"][0] == "0 segments retransmitted in 20 s"
    assert notes["1g", "tcp-throughput-s1"][1].startswith("from the prose: ")


def test_filters():
    shown = show("unnoba-2020", PROFILES, [], layer="disk", device_class="ssd")
    assert {row.device_class for row in shown.rows} == {"ssd"}
    assert (len(shown.rows), shown.pictures, shown.left_out, shown.contradictions) == (66, (), (), ())
    with pytest.raises(BaselineError) as caught:
        show("unnoba-2020", PROFILES, [], device_class="tape")
    said = str(caught.value)
    assert said.startswith(
        "unnoba-2020: nothing matches this layer, device class and workload; it has: disk hdd, disk nvme, disk ssd, "
    )
    assert ", network 10g, network 1g, osd hdd, osd ssd, " in said


def test_filter_by_workload_keeps_what_names_it():
    shown = show("fujitsu-2013", PROFILES, [], workload="rbd-write-4k-qd1-j1")
    assert (shown.rows, shown.pictures, shown.settings, shown.contradictions) == ((), (), (), ())
    assert [budget.about for budget in shown.budgets] == ["one 4 KiB write to an image, one in flight"]
    assert [method.tool for method in shown.methods] == ["fio"]
    assert len(show("unnoba-2020", PROFILES, [], workload="randwrite-4k-qd*-j4", device_class="hdd").rows) == 1
    pictures = show("unam-nvme", PROFILES, [], workload="write-512k-qd1-j8").pictures
    assert [picture.where for picture in pictures] == [
        "Figura 9", "Figura 11", "Figura 13", "Figura A11", "Figura A19", "Figura B7", "Figura C7",
    ]  # fmt: skip
    with pytest.raises(BaselineError, match=r"pwr-2017: nothing matches this .*; it has: filesystem pwr-node$"):
        show("pwr-2017", PROFILES, [], workload="rbd-*")


def test_filter_by_device_class_is_a_link_of_a_budget_too():
    shown = show("fujitsu-2013", PROFILES, [], device_class="56g-ipoib")
    assert [[link.link for link in budget.links] for budget in shown.budgets] == [["56 Gb IPoIB"]] * 2
    with pytest.raises(BaselineError, match=r"it has: disk intel-910, .*, rbd 10g, rbd 1g, rbd 40g, "):
        show("fujitsu-2013", PROFILES, [], device_class="25g")


def test_filter_by_layer_keeps_the_settings_of_its_checks():
    shown = show("fujitsu-2013", PROFILES, [], layer="disk")
    assert [one.setting for one in shown.settings] == ["scheduler", "rq_affinity", "rotational", "read_ahead_kb"]
    assert (len(shown.rows), shown.budgets) == (6, ())


def test_a_budget_in_base_units():
    budget = show("fujitsu-2013", PROFILES, []).budgets[0]
    assert (budget.workload, budget.layer) == ("rbd-write-4k-qd1-j1", "rbd")
    link = budget.links[0]
    assert (link.link, link.device_class, link.total) == ("1 GbE", "1g", Figure("total", "2565 us", 0.002565, "s"))
    assert [(stage.stage, stage.layer, stage.printed, stage.times, stage.seconds) for stage in link.stages] == [
        ("network", "network", "182 us", 2, 364e-6),
        ("device", "disk", "54 us", 1, 54e-6),
        ("ack", "network", "26 us", 5, 130e-6),
        ("code", "rados", "2017 us", 1, 2017e-6),
    ]
    assert sum(stage.share_ratio for stage in link.stages) == pytest.approx(1)
    assert link.over_seconds == 0


def test_a_list_says_what_a_profile_holds_beside_its_rows():
    (pwr,) = summaries({"pwr-2017": PROFILES["pwr-2017"]}, [], {"hdd": "pwr-2017"})
    assert (pwr.entries, pwr.judges) == (0, ())
    assert pwr.holds == {"settings": 3, "methods": 4, "pictures": 9, "left out": 7, "contradictions": 5}


def test_no_such_baseline():
    with pytest.raises(UnknownName, match="unoba: no such baseline; there are: unnoba-2020"):
        show("unoba", PROFILES, [RECORDED])


def test_all_of_it_is_json():
    data = json.loads(msgspec.json.encode([show("unnoba-2020", PROFILES, []), *summaries(PROFILES, [RECORDED], {})]))
    assert data[0]["rows"][5]["figures"][0] == {
        "figure": "latency.mean",
        "printed": "15.06 ms",
        "base": 0.01506,
        "unit": "s",
    }
