"""Churn as /proc/net/bonding tells it, on texts that real hosts have printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.net.bonding import Churn, SlaveChurn, parse_bonding, read_churns

FIXTURES = Path(__file__).parents[3] / "fixtures"
CHURNED, NONE, MONITORING = Churn.CHURNED, Churn.NONE, Churn.MONITORING


def parse(name: str) -> dict[str, SlaveChurn]:
    return parse_bonding((FIXTURES / "bond-texts" / name).read_text(), source=name)


def test_privileged_text() -> None:
    assert read_churns(Roots.under(FIXTURES / "bond-lacp-no-partner"), on_skip=pytest.fail) == {
        ("bond0", "enp145s0f0"): SlaveChurn(CHURNED, CHURNED, 1, 2),
        ("bond0", "enp145s0f1"): SlaveChurn(NONE, CHURNED, 0, 1),
    }


def test_without_privilege_the_churn_is_there_all_the_same() -> None:
    assert parse("lacp-unprivileged.txt") == {
        "em1": SlaveChurn(NONE, CHURNED, 0, 1),
        "em2": SlaveChurn(CHURNED, CHURNED, 1, 1),
    }


def test_lines_that_mainline_does_not_have_are_passed_over() -> None:
    assert parse("lacp-patched.txt") == {
        "eth0": SlaveChurn(NONE, NONE, 0, 0),
        "eth1": SlaveChurn(MONITORING, MONITORING, 2, 2),
    }


def test_other_modes_have_no_churn() -> None:
    assert parse("round-robin.txt") == {"eth1": SlaveChurn(), "eth0": SlaveChurn()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Slave Interface: \n", "t:1: slave '' has no name or is listed twice"),
        ("Slave Interface: a\nSlave Interface: a\n", "t:2: slave 'a' has no name or is listed twice"),
        ("Slave Interface: a\nActor Churn State: lost\n", "t:2: Actor Churn State: 'lost'"),
        ("Slave Interface: a\n\nPartner Churned Count: -1\n", "t:3: Partner Churned Count: '-1'"),
    ],
)
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_bonding(text, source="t")
    assert str(caught.value) == message


def test_an_unclear_bond_is_skipped_and_names_that_are_not_utf8_are_those_of_netlink(tmp_path: Path) -> None:
    directory = tmp_path / "proc" / "net" / "bonding"
    directory.mkdir(parents=True)
    (directory / "bad0").write_text("Slave Interface: a\nActor Churn State: lost\n")
    Path(os.fsdecode(bytes(directory) + b"/b\xff")).write_bytes(b"Slave Interface: s\xfe\nActor Churn State: none\n")
    (directory / "gone").symlink_to("nowhere")
    skipped: list[tuple[str, str]] = []
    churns = read_churns(Roots.under(tmp_path), on_skip=lambda item, reason: skipped.append((item, reason)))
    assert churns == {("b\\xff", "s\\xfe"): SlaveChurn(actor=NONE)}
    assert sorted(skipped) == [("bad0", "malformed"), ("gone", "vanished")]


def test_a_host_without_bonds() -> None:
    assert read_churns(Roots.under(Path("/nowhere")), on_skip=pytest.fail) == {}
