"""Why a node or one part of it is not as accepted: facts for and against, and a first step that exists."""

from __future__ import annotations

import ast

import pytest
from msgspec.structs import replace

from plumbline.checks.model import Finding, Severity
from plumbline.core.foreign import decode_json
from plumbline.sources.ceph.osds import OsdState
from plumbline.status.model import (
    Comparison,
    DiskRow,
    Level,
    Loss,
    Measure,
    NicRow,
    OsdRow,
    ProbeRow,
    SoftnetRow,
    StatusModel,
    Times,
)
from plumbline.status.page import render_status
from plumbline.status.why import Explanation, Fact, answer, explain
from support.rules import ROOT

GOOD = ProbeRow(
    "canary", "disk", "nvme", "randread-4k-qd1-j1", "read", True, 0.2,
    Comparison(0.00011, 0.0001, 1.3), Comparison(0.0002, 0.0002, 1.3), "measured here", True, canary=True,
)  # fmt: skip
SLOW = replace(GOOD, p50=Comparison(0.0004, 0.0001, 1.3))
RTT = replace(GOOD, probe="rtt", layer="network", operation="", workload="icmp-rtt-56", canary=False)
OSD = replace(SLOW, probe="objects/osd.3", layer="rados", operation="write", workload="rados-write-4k")
DROPS = NicRow("eth0", losses=(Loss("drops", "rx", "ring", 60, 50, 1000),), up=True)
MODEL = StatusModel(
    "stor01", "0.1.0", 1000.0, 0.0, window_s=300.0, probes=(SLOW, RTT, OSD), nics=(NicRow("eth0", up=True),),
    osds=(
        OsdRow("osd.3", OsdState.ANSWERS, ("sdb",), (Times("write", 9, 0.01, 0.06),), blocked=2, blocked_age_s=40.0),
    ),
    disks=(DiskRow("sdb", read_mean_s=0.004, osd="osd.3"), DiskRow("sda")),
    findings=(Finding("disk.scheduler", "sdb", Severity.WARNING, False, "none", "mq-deadline", "w", "s"),),
)  # fmt: skip


def explained(what: str = "", **changes: object) -> Explanation:
    found = explain(replace(MODEL, **changes), what)  # type: ignore[arg-type]
    assert found is not None
    return found


def facts(given: tuple[Fact, ...]) -> list[tuple[str, str]]:
    return [(fact.about, fact.text.replace("\N{NO-BREAK SPACE}", " ")) for fact in given]


def test_the_lowest_layer_is_suspected_and_those_above_may_follow() -> None:
    found = explained()
    assert (found.host, found.level) == ("stor01", Level.BAD)
    worst = "canary: read randread-4k-qd1-j1, p50 4.0× slower (degradation ratio 4.00, up to 1.30 is accepted)"
    headline = found.headline.replace("\N{NO-BREAK SPACE}", " ")
    assert headline == f"disk is suspected: {worst}; osd, rados may only be slow because of it"
    assert facts(found.facts_for)[0] == ("disk", f"worst: {worst}")
    assert [fact.about for fact in found.facts_for] == ["disk", "disk", "osd", "rados"]
    assert [about for about, _ in facts(found.against)] == ["network"]


def test_what_nobody_judges_is_not_good() -> None:
    found = explained(probes=(), osds=(), findings=())
    assert (found.level, found.facts_for, found.against) == (Level.NOTE, (), ())
    assert facts(found.unknown) == [("network", "not judged here: no probe"), ("disk", "not judged here: no probe")]


def test_an_osd_with_its_disks_canary_and_findings() -> None:
    for what in ("osd.3", "3"):
        found = explained(what)
        assert facts(found.facts_for) == [
            ("osd.3", "2 blocked, the oldest 40 s; p99 of the last minutes 60 ms"),
            ("objects/osd.3: write rados-write-4k", "p50 4.0× slower"),
            ("sdb", "disk.scheduler: none; should be mq-deadline"),
        ]
        assert facts(found.unknown) == [("sdb", "read 4 ms on average since boot")]
    assert explained("3").headline.startswith("3: 2 blocked")


def test_a_disk_with_its_osd_a_layer_and_a_port() -> None:
    assert [fact.about for fact in explained("sdb").facts_for][:1] == ["osd.3"]
    assert explained("sdb").notes == ("Who loads osd.3: plumbline ceph top --clients osd.3",)
    assert explained("sda").headline == "sda: nothing judges it here"
    assert explained("network").headline == "network: nothing is out of line"
    assert explained("eth0").level is Level.GOOD
    assert facts(explained("eth0", nics=(DROPS,)).facts_for) == [("eth0", "50 more rx drops (ring)")]


@pytest.mark.parametrize("what", ["osd.33", "osd", "sd", "eth", "cana", "8", "../x"])
def test_what_is_not_here_is_nothing(what: str) -> None:
    assert explain(replace(MODEL, osds=(), probes=(SLOW, RTT)), what) is None


def test_a_name_that_is_not_utf_8_is_escaped() -> None:
    found = answer(replace(MODEL, nics=(replace(DROPS, device="\udcff"),)), "")
    assert found is not None
    decoded = decode_json(found, Explanation, source="why")
    assert decoded.facts_for[0].text == "\0dcff: 50 more rx drops (ring)"


@pytest.mark.parametrize(
    ("row", "alert"),
    [
        (OsdRow("osd.4", OsdState.ENDED), "PlumblineCephOsdDown"),
        (OsdRow("osd.4", OsdState.HANGS), "PlumblineOsdSocketHung"),
        (OsdRow("osd.4", OsdState.ANSWERS, blocked=1), "PlumblineOsdOperationsBlocked"),
        (replace(GOOD, probe="p", stuck_s=99.0, canary=False), "PlumblineProbeStuck"),
        (replace(GOOD, probe="p", overdue=True), "PlumblineCanaryOverdue"),
        (replace(GOOD, probe="p", success=False, canary=False), "PlumblineProbeFailing"),
    ],
)
def test_one_part_leads_to_the_runbook_of_its_layer(row: OsdRow | ProbeRow, alert: str) -> None:
    rows: dict[str, object] = {"osds": (row,)} if isinstance(row, OsdRow) else {"probes": (row,)}
    for what in ("osd.4" if isinstance(row, OsdRow) else "p", ""):
        runbooks = [
            fact.runbook for fact in explained(what, **({"osds": (), "probes": (), "findings": ()} | rows)).facts_for
        ]
        assert [each.partition("?")[0] for each in runbooks] == [f"/runbooks/{alert}"]


EVERY = replace(
    MODEL,
    probes=(
        SLOW,
        replace(SLOW, layer="rbd", canary=False),
        replace(RTT, layer="object", p50=Comparison(None), rate=Comparison(50.0, 100.0, 1.3, Measure.IOPS)),
        *(replace(GOOD, layer="rados", canary=canary, stuck_s=99.0) for canary in (True, False)),
        *(replace(GOOD, layer=layer, canary=canary, success=False, overdue=True)
          for layer, canary in (("network", False), ("client", True))),
    ),
    nics=(DROPS, NicRow("eth1", losses=(Loss("errors", "rx", "crc", 60, 50, 1000),))),
    softnet=SoftnetRow(2, 9, 50, 5, 50, 5),
    osds=(
        *MODEL.osds, OsdRow("osd.4", OsdState.ENDED), OsdRow("osd.5", OsdState.HANGS),
        OsdRow("osd.6", OsdState.ANSWERS, slow=3),
    ),
)  # fmt: skip


def test_every_first_step_has_a_command_and_a_runbook_that_exists() -> None:
    found = explain(EVERY)
    assert found is not None
    bad = [fact for fact in found.facts_for if fact.level is Level.BAD]
    assert len(bad) >= 11
    assert [fact for fact in bad if not fact.command or not fact.runbook] == []
    room = ROOT / "exporter/plumbline/status"
    nodes = [node for file in room.glob("*.py") for node in ast.walk(ast.parse(file.read_text()))]
    words = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    alerts = {word for word in words if word.startswith("Plumbline") and word.isalnum()}
    assert len(alerts) >= 15
    assert [alert for alert in sorted(alerts) if not (ROOT / f"alerts/runbooks/{alert}.md").is_file()] == []


def test_the_page_has_the_step_and_the_link_with_the_names() -> None:
    page = render_status(EVERY)
    assert "<kbd>plumbline nic eth0</kbd>" in page
    assert 'href="/runbooks/PlumblineNicRingDrops?device=eth0"' in page
    assert 'href="/runbooks/PlumblineOsdOperationsBlocked?ceph_daemon=osd.3"' in page
