"""A verdict for each layer: what it rests on, which is suspected, and that nothing is good without a baseline."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.checks.model import Finding, Severity
from plumbline.sources.ceph.osds import OsdState
from plumbline.status.layers import LayerState, LayerVerdict, judge_layers
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
)

GOOD = ProbeRow(
    "canary", "disk", "nvme", "randread-4k-qd1-j1", "read", True, 0.2,
    Comparison(0.00011, 0.0001, 1.3), Comparison(0.0002, 0.0002, 1.3), "measured here", True,
)  # fmt: skip
SLOW = replace(GOOD, p99=Comparison(0.0004, 0.0002, 1.3))
MODEL = StatusModel("host", "0.1.0", 1000.0, 0.0)
OUT, GOOD_STATE = LayerState.OUT_OF_LINE, LayerState.AS_ACCEPTED


def layers(**changes: object) -> dict[str, LayerVerdict]:
    found = judge_layers(replace(MODEL, **changes))  # type: ignore[arg-type]
    return {each.layer: each for each in found}


def of(layer: str, row: ProbeRow = GOOD, **changes: object) -> ProbeRow:
    return replace(row, layer=layer, **changes)  # type: ignore[arg-type]


def texts(verdict: LayerVerdict) -> list[str]:
    return [each.text.replace("\N{NO-BREAK SPACE}", " ") for each in verdict.basis]


def finding(check: str, severity: Severity, *, met: bool = False) -> Finding:
    return Finding(check, "sda", severity, met, "is", "should", "w", "s")


def test_a_layer_of_which_nothing_is_known_is_not_there() -> None:
    assert layers() == {}
    assert list(layers(probes=(of("rbd"), of("network")))) == ["network", "rbd"]


def test_as_accepted_rests_on_the_worst_ratio() -> None:
    disk = layers(probes=(GOOD,))["disk"]
    assert disk.state is LayerState.AS_ACCEPTED
    assert disk.state.level is Level.GOOD
    assert texts(disk) == [
        "worst: canary: read randread-4k-qd1-j1, p50 as accepted (degradation ratio 1.10, up to 1.30 is accepted)"
    ]


def test_the_worst_is_the_farthest_beyond_its_own_tolerance() -> None:
    wide = replace(GOOD, probe="wide", p50=Comparison(2.0, 1.0, 3.0))
    tight = replace(GOOD, probe="tight", p50=Comparison(1.4, 1.0, 1.2))
    (worst,) = texts(layers(probes=(wide, tight))["disk"])
    assert worst.startswith("worst: tight: read")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (replace(GOOD, baseline="", judges=False), "no baseline"),
        (replace(GOOD, baseline="documented: unnoba-2020", judges=False), "no baseline"),
        (replace(GOOD, p50=Comparison(None), p99=Comparison(None)), "no current result to compare"),
        (replace(GOOD, overdue=True), "no current result to compare"),
    ],
)
def test_what_is_not_judged_is_never_good(row: ProbeRow, why: str) -> None:
    disk = layers(probes=(row,))["disk"]
    assert (disk.state, disk.why) == (LayerState.NOT_JUDGED, why)
    assert disk.state.level is Level.NEUTRAL


def test_a_layer_without_a_probe_is_not_judged_by_what_its_counters_say() -> None:
    network = layers(nics=(NicRow("eth0"),), window_s=300.2)["network"]
    assert (network.state, network.why) == (LayerState.NOT_JUDGED, "no probe")
    assert texts(network) == ["no packet lost in the last 5 min"]
    disk = layers(disks=(DiskRow("sda"),))["disk"]
    assert (disk.state, disk.why, texts(disk)) == (LayerState.NOT_JUDGED, "no probe", [])


def test_partly_judged_is_not_good_either() -> None:
    disk = layers(probes=(GOOD, replace(GOOD, probe="other", judges=False)))["disk"]
    assert disk.state is LayerState.PARTLY
    assert disk.state.level is not Level.GOOD
    assert "1 of 2 measurements has no baseline" in texts(disk)


@pytest.mark.parametrize(
    ("changes", "layer", "said"),
    [
        ({"probes": (SLOW,)}, "disk", "p99 2.0× slower (degradation ratio 2.00, up to 1.30 is accepted)"),
        ({"probes": (SLOW, replace(SLOW, probe="b"))}, "disk", "2 of 2 measurements beyond"),
        ({"probes": (replace(GOOD, success=False),)}, "disk", "canary: read randread-4k-qd1-j1 fails"),
        ({"probes": (replace(GOOD, success=False, stuck_s=9.0),)}, "disk", "canary: read randread-4k-qd1-j1 hangs"),
        ({"probes": (of("network", rate=Comparison(1.0, 4.0, 1.3, Measure.THROUGHPUT)),)}, "network",
         "throughput 4.0× less (degradation ratio 4.00"),
        ({"nics": (NicRow("eth0", losses=(Loss("drops", "receive", "ring", 90, 40),)),)}, "network",
         "eth0: 40 more receive drops (ring)"),
        ({"nics": (NicRow("eth0"),), "softnet": SoftnetRow(2, 90, 30, 0, 30, 0)}, "network",
         "backlog overflow: 30 more packets dropped"),
        ({"osds": (OsdRow("osd.1", OsdState.ANSWERS), OsdRow("osd.2", OsdState.HANGS))}, "osd",
         "1 of 2 OSDs not answering: osd.2"),
        ({"osds": (OsdRow("osd.1", OsdState.ANSWERS), OsdRow("osd.2", OsdState.ENDED))}, "osd",
         "1 of 2 OSDs ended: osd.2"),
        ({"osds": (OsdRow("osd.1", OsdState.ANSWERS, blocked=2),)}, "osd",
         "1 of 1 OSDs with blocked operations: osd.1"),
        ({"findings": (finding("health.smart-failed", Severity.CRITICAL),)}, "disk", "1 critical finding"),
        ({"findings": (finding("network.half-duplex", Severity.CRITICAL),) * 2}, "network", "2 critical findings"),
        ({"findings": (finding("infiniband.x", Severity.CRITICAL),)}, "network", "1 critical finding"),
    ],
)  # fmt: skip
def test_out_of_line(changes: dict[str, object], layer: str, said: str) -> None:
    verdict = layers(**changes)[layer]
    assert verdict.state is OUT
    assert verdict.state.level is Level.BAD
    assert said in texts(verdict)[0]
    assert verdict.basis[0].level is Level.BAD
    assert verdict.suspected


@pytest.mark.parametrize(
    "changes",
    [
        {"probes": (GOOD,), "findings": (finding("disk.scheduler", Severity.WARNING),)},
        {"probes": (GOOD, replace(GOOD, probe="late", overdue=True))},
        {"probes": (of("network"),), "nics": (NicRow("e"),), "softnet": SoftnetRow(2, 9, 0, 7, 0, 7)},
        {"probes": (of("osd"),), "osds": (OsdRow("osd.1", OsdState.ANSWERS, slow=2),)},
    ],
)
def test_worth_a_look(changes: dict[str, object]) -> None:
    (verdict,) = layers(**changes).values()
    assert verdict.state is LayerState.WORTH_A_LOOK
    assert verdict.state.level is Level.NOTE


@pytest.mark.parametrize(
    "changes",
    [
        {"nics": (NicRow("eth0", losses=(Loss("drops", "receive", "filter", 9, 4),)),)},
        {"nics": (NicRow("eth0", losses=(Loss("drops", "receive", "ring", 9, 0),)),)},
        # no alert looks at what a container's veth drops, at a few packets, or at a share of a millionth
        {"nics": (NicRow("veth0", "veth", losses=(Loss("drops", "receive", "other", 900, 900, 1000),)),)},
        {"nics": (NicRow("eth0", losses=(Loss("drops", "receive", "ring", 9, 9, 1000),)),)},
        {"nics": (NicRow("eth0", losses=(Loss("drops", "receive", "ring", 10, 10, 10_000_000),)),)},
        {"nics": (NicRow("eth0"),), "softnet": SoftnetRow(2, 9, 9, 0, 9, 0)},
        {"findings": (finding("network.half-duplex", Severity.CRITICAL, met=True),), "nics": (NicRow("e"),)},
        {"findings": (finding("network.x", Severity.INFO),)},
    ],
)
def test_what_is_benign_old_met_or_for_information_puts_nothing_out_of_line(changes: dict[str, object]) -> None:
    assert layers(probes=(of("network"),), **changes)["network"].state is GOOD_STATE


def test_the_lowest_out_of_line_is_suspected_and_what_is_above_says_so() -> None:
    found = layers(probes=(of("network"), of("disk", SLOW), of("rados", SLOW), of("client", SLOW), of("rbd")))
    assert {name for name, each in found.items() if each.suspected} == {"disk"}
    assert {name: each.above for name, each in found.items() if each.above} == {"rados": "disk", "client": "disk"}
    assert found["disk"].unjudged_below == ()


def test_of_those_beside_each_other_none_is_below() -> None:
    found = layers(probes=(of("rbd", SLOW), of("object", SLOW), of("client", SLOW)))
    assert [name for name, each in found.items() if each.suspected] == ["rbd", "object"]
    assert found["client"].above == "rbd or object"


def test_a_layer_below_that_nobody_judged_is_named_beside_the_suspect() -> None:
    found = layers(nics=(NicRow("eth0"),), disks=(DiskRow("sda"),), probes=(of("rados", SLOW), of("client", SLOW)))
    assert found["rados"].unjudged_below == ("network", "disk")
    assert found["client"].unjudged_below == ()
