"""Disks beside each other on the status page: who is slower than its peers, and who can't be compared."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.status.layers import LayerState, judge_layers
from plumbline.status.model import DiskRow, Level, StatusModel, Times
from plumbline.status.peers import compare
from plumbline.status.verdict import judge
from plumbline.status.why import explain

WINDOW_S = 300.0


def disk(name: str, p99_s: float, count: int = 3_000, operation: str = "write", kind: str = "ssd") -> DiskRow:
    times = (Times(operation, count, p99_s / 2, p99_s),)
    return DiskRow(name, device_class=kind, transport="sata", times=times)


EQUAL = (disk("sdb", 0.004), disk("sdc", 0.005), disk("sdd", 0.0045))
SLOW = disk("sda", 0.040)


def model(*disks: DiskRow) -> StatusModel:
    return StatusModel("host", "0.1.0", 1000.0, 0.0, window_s=WINDOW_S, disks=disks)


def out(*disks: DiskRow) -> set[str]:
    return {name for name, each in compare(disks, WINDOW_S).items() if each.out_of_line}


def test_the_slow_one_is_out_of_line_and_nobody_else() -> None:
    assert out(SLOW, *EQUAL) == {"sda"}
    (found,) = (each for each in compare((SLOW, *EQUAL), WINDOW_S).values() if each.out_of_line)
    assert found.text.replace("\N{NO-BREAK SPACE}", " ") == (
        "p99 of write 40 ms, 8.4 times the median of 4 equal disks here (4.75 ms)"
    )


@pytest.mark.parametrize(
    ("disks", "why"),
    [
        ((SLOW, EQUAL[0]), "two disks have no healthy median"),
        ((SLOW, *(replace(each, device_class="nvme") for each in EQUAL)), "of another class"),
        ((SLOW, *(replace(each, transport="nvme") for each in EQUAL)), "of another transport"),
        ((disk("sda", 0.040, count=599), *EQUAL), "idle"),
        ((disk("sda", 0.040, count=12_001), *EQUAL), "other work"),
        ((disk("sda", 0.040, operation="discard"), *EQUAL), "an operation that is not judged"),
        ((disk("sda", 0.017), *EQUAL), "less than four times"),
        (tuple(replace(each, times=()) for each in (SLOW, *EQUAL)), "no histograms"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_who_is_not_out_of_line(disks: tuple[DiskRow, ...], why: str) -> None:
    assert not out(*disks), why


def test_a_tail_below_the_floor_hurts_nobody() -> None:
    assert not out(disk("sda", 0.0009), *(disk(name, 0.0001) for name in ("sdb", "sdc", "sdd")))
    assert not compare((SLOW, *EQUAL), None)


def test_the_page_suspects_its_disk_and_says_who_was_not_compared() -> None:
    found = model(SLOW, *EQUAL, DiskRow("nvme0n1"))
    (layer,) = judge_layers(found)
    assert (layer.layer, layer.state, layer.suspected) == ("disk", LayerState.OUT_OF_LINE, True)
    assert layer.basis[0].text.startswith("sda: p99 of write")
    assert layer.basis[0].step.command == "plumbline disk sda"
    assert layer.basis[1].text == "4 disks compared with equal ones here; 1 not: idle, of other work, or without peers"
    verdict = judge(found, judge_layers(found))
    assert verdict.level is Level.BAD
    assert verdict.headline.startswith("sda is slower than its peers: p99 of write")


def test_without_a_slow_disk_nothing_is_as_accepted_by_that() -> None:
    (layer,) = judge_layers(model(*EQUAL))
    assert (layer.state, layer.why) == (LayerState.NOT_JUDGED, "no probe")
    assert [each.level for each in layer.basis] == [Level.NEUTRAL]


def test_why_has_it_for_and_against() -> None:
    found = model(SLOW, *EQUAL)
    slow, equal = explain(found, "sda"), explain(found, "sdb")
    assert slow is not None
    assert equal is not None
    assert [fact.text for fact in slow.facts_for if "equal disks" in fact.text]
    assert [fact.text for fact in equal.against if "equal disks" in fact.text]
