"""The slow tier's look at churn and roles."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.net.bonding import Churn, SlaveChurn
from plumbline.sources.net.links import RTM_GETLINK
from plumbline.sources.net.netlink import attribute
from plumbline.sources.net.portfacts import LinkFacts
from plumbline.sources.net.roles import CLUSTER, PUBLIC, Role
from plumbline.sources.net.routes import RTM_GETADDR, RTM_NEWADDR
from support.bond_messages import NO_PARTNER
from support.replay_network import ReplayNetlink, done, message

FIXTURES = Path(__file__).parents[3] / "fixtures"
ADDRESS = message(RTM_NEWADDR, struct.pack("=BBBBI", 2, 24, 0, 0, 4) + attribute(2, bytes((192, 168, 1, 11)))) + done()
EVERYTHING = tuple(Role(device, role) for device in ("bond0", "enp145s0f0", "enp145s0f1") for role in (CLUSTER, PUBLIC))


def test_both_are_read_and_what_fails_stays_and_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(FIXTURES / "bond-lacp-no-partner", tmp_path, dirs_exist_ok=True)
    conf = tmp_path / "etc" / "ceph" / "ceph.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("public network = 192.168.1.0/24\n")
    kernel = ReplayNetlink({RTM_GETLINK: NO_PARTNER, RTM_GETADDR: ADDRESS})
    facts = LinkFacts(roots=Roots.under(tmp_path), transport=kernel, configured=dict)
    assert (facts.churns, facts.roles) == ({}, ())
    facts.refresh()
    assert facts.churns["bond0", "enp145s0f0"] == SlaveChurn(Churn.CHURNED, Churn.CHURNED, 1, 2)
    assert facts.roles == EVERYTHING

    conf.write_text("public network = here\n")
    facts.refresh()
    facts.refresh()
    assert facts.roles == EVERYTHING
    conf.write_text("public network = 10.0.0.0/8\n")
    facts.refresh()
    assert facts.roles == ()
    assert [record.getMessage() for record in caplog.records] == [
        f"Ceph roles of network links: {conf}:1: not a network: 'here'; write it as 192.0.2.0/24",
        "Ceph roles of network links: determined again",
    ]
