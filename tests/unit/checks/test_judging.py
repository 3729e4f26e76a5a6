"""From readings to what the network checks ask, from a page to readings, and from both to findings."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from plumbline.baseline.book import load_book
from plumbline.checks.disk_latency import disk_latency_facts
from plumbline.checks.growth import Count, Growth
from plumbline.checks.network.facts import NetworkFacts, Nic, SoftnetCpu, network_facts
from plumbline.checks.run import Judge
from plumbline.collectors.registry import collectors, configured
from plumbline.config.model import Config
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.guard import SkipHook
from plumbline.metrics.snapshot import Readings, Snapshot
from plumbline.metrics.spec import Samples
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.blocklatency import LatencyReading
from plumbline.sources.disk.diskusers import DiskUsesReading, read_disk_users
from plumbline.sources.kernel import softnet
from plumbline.sources.kernel.squeeze import SoftnetReading, Squeezes
from plumbline.sources.kernel.sysctl import SysctlReading
from plumbline.sources.net import drivers
from plumbline.sources.net.bonding import Bond, BondsReading, Churn, Slave, SlaveChurn
from plumbline.sources.net.features import Offload
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.links import Link, Relation
from plumbline.sources.net.network import (
    CoalescingReading,
    LinkModesReading,
    LinksReading,
    LossesReading,
    OffloadsReading,
    PauseReading,
    PortLosses,
    PortModes,
    RingsReading,
)
from plumbline.sources.net.nic_interrupts import IrqBalance, IrqBalances
from plumbline.sources.net.port_settings import Coalescing, Moderation, PauseConfig, PauseState, RingSizes
from plumbline.sources.net.roles import Role, TopologyReading
from support.fake_collectors import fake
from support.hosts import ixgbe_network, parts, tree


def facts(*readings: object, growth: Growth | None = None, now_s: float = 100.0) -> NetworkFacts:
    growth = growth or Growth()
    growth.look(now_s)
    return network_facts(Readings.of(*readings), growth)


def link(name: str, index: int = 2) -> Link:
    return Link(index, name, name.encode(), "", 0x1, 9000, 6, True, 1, 0, "", "", "", None)


def losses(device: str, driver: str = "ixgbe", bus: str = "0000:3b:00.0", master: str = "", **lost: int) -> PortLosses:
    drops = tuple(drivers.Count("receive", cause, frames) for cause, frames in lost.items())  # type: ignore[arg-type]
    transmitted = drivers.Count("transmit", "ring", 10)
    return PortLosses(device, driver, "", bus, master, "driver", drivers.NicLoss((*drops, transmitted)))


def test_an_empty_page_knows_nothing() -> None:
    assert facts() == NetworkFacts()


def test_everything_about_a_port() -> None:
    balance = IrqBalance("eth0", 1000.0, 9, 0.5, 2.0, None)
    coalescing = Coalescing(Moderation(8, 128, True), Moderation())
    modes = LinkModes(full_duplex=False, max_speed_mbps=10_000)
    (nic,) = facts(
        LinksReading((link("eth0"),), {2: 1_000}),
        LossesReading((losses("eth0", ring=7, fifo=8, filter=9),)),
        LinkModesReading((PortModes("eth0", modes, None, None),)),
        RingsReading((("eth0", RingSizes(rx=512, rx_max=4096)),)),
        PauseReading((("eth0", PauseState(PauseConfig(True, True, False), 3)),)),
        CoalescingReading((("eth0", coalescing),)),
        OffloadsReading((("eth0", (Offload("scatter-gather", False), Offload("rx-checksumming", True))),)),
        IrqBalances((balance,)),
    ).nics
    assert nic == Nic(
        "eth0",
        driver="ixgbe",
        bus="0000:3b:00.0",
        up=True,
        mtu_bytes=9000,
        speed_mbps=1_000,
        modes=modes,
        rings=RingSizes(rx=512, rx_max=4096),
        ring_drops=Count(7),
        fifo_drops=Count(8),
        pause=PauseConfig(True, True, False),
        pause_frames_received=Count(3),
        coalescing=coalescing,
        offloads={"scatter-gather": False, "rx-checksumming": True},
        interrupts=balance,
    )


def test_what_is_physical() -> None:
    assert [
        nic.physical
        for nic in facts(
            LinksReading((link("d"),), {}),
            LossesReading((losses("a"), losses("b", "virtio_net"), losses("c", "loopback", ""))),
        ).nics
    ] == [True, False, False, None]


def test_storage_reaches_down_through_vlan_and_bond() -> None:
    found = facts(
        TopologyReading(
            (Relation("bond0.15", "bond0", "vlan"),), (Role("bond0.15", "ceph_cluster"), Role("eno1", "other"))
        ),
        LossesReading(
            (
                losses("bond0.15", "vlan", ""),
                losses("bond0", "bond", ""),
                losses("ens1f0", master="bond0"),
                losses("ens1f1", master="bond0"),
                losses("eno1"),
            )
        ),
    )
    assert {each.device: (each.storage, set(each.roles)) for each in found.nics} == {
        "bond0.15": (True, {"ceph_cluster"}),
        "bond0": (True, set()),
        "ens1f0": (True, set()),
        "ens1f1": (True, set()),
        "eno1": (False, set()),
    }


def test_relations_in_a_circle_end() -> None:
    relations = (Relation("a", "b", "vlan"), Relation("b", "a", "vlan"))
    found = facts(TopologyReading(relations, (Role("a", "ceph_public"),)), LossesReading((losses("a"), losses("b"))))
    assert [each.storage for each in found.nics] == [True, True]


def test_without_roles_nobody_knows_who_carries_storage() -> None:
    assert [nic.storage for nic in facts(LossesReading((losses("eth0"),))).nics] == [None]


def test_churn_that_only_proc_tells() -> None:
    slaves = (Slave("a", True, True, 0), Slave("b", True, True, 0, actor_churn=Churn.NONE))
    bond = Bond("bond0", "802.3ad", "", "", "", 100, 0, None, None, slaves)
    churned = SlaveChurn(Churn.CHURNED, Churn.CHURNED)
    (found,) = facts(BondsReading((bond,), {("bond0", "a"): churned, ("bond0", "b"): churned})).bonds
    assert [(slave.actor_churn, slave.partner_churn) for slave in found.slaves] == [
        (Churn.CHURNED, Churn.CHURNED),
        (Churn.NONE, Churn.CHURNED),
    ]


def test_counters_with_their_growth() -> None:
    growth = Growth()
    for at in (0, 1):
        found = facts(
            SoftnetReading((softnet.SoftnetCpu(3, 100, 5 + at, 1, None),), {3: Squeezes(2 + at, 7)}),
            LossesReading((losses("eth0", ring=500 + at),)),
            growth=growth,
            now_s=float(at),
        )
    assert (found.window_s, found.softnet) == (
        1.0,
        (SoftnetCpu(3, Count(100, 0), Count(6, 1), Count(1, 0), Count(3, 1), Count(7, 0)),),
    )
    assert [nic.ring_drops for nic in found.nics] == [Count(501, 1)]


def test_looking_judges() -> None:
    judge = Judge()
    assert judge.findings is None
    judge.look(Readings.of(SysctlReading({"net.ipv4.tcp_sack": (0,)}, {})), 0.0)
    assert judge.findings is not None
    assert [(each.check, each.met) for each in judge.findings] == [("network.tcp-sack", False)]


# --- from a page


def page(folder: Path, **switched: bool) -> Snapshot:
    roots = tree(folder / "host", "ceph-cephadm-node", "net-software-links")
    given = parts(roots, ixgbe_network())
    given.links.roles = (Role("eth0", "ceph_public"),)
    given.network.refresh()
    given.kernel.refresh(threading.Event())
    for job in given.storage.jobs():
        job.run(threading.Event())
    config = Config(collectors=switched)
    book = load_book(config.baseline, where="test", storage=folder, host="x", targets=())
    host = configured(given, config, book)
    wanted = [each for each in collectors(config) if each.name not in ("daemon", "finding")]
    exposition = Exposition(wanted, host, clock=lambda: 0.0, logger=logging.getLogger("test"))
    return exposition.scrape()


def test_a_page_has_a_reading_of_its_own_type_for_each_collector_that_worked(tmp_path: Path) -> None:
    snapshot = page(tmp_path)
    working = [health.name for health in snapshot.collectors if health.success and health.available]
    assert len(snapshot.readings.by_type) == len(working) > 15
    assert {tuple, list, dict}.isdisjoint(snapshot.readings.by_type)


def test_a_page_s_readings(tmp_path: Path) -> None:
    readings = page(tmp_path).readings
    ports = [port.device for port in readings.or_empty(LossesReading)]
    assert ports == [port.name for port in readings.or_empty(LinksReading).links] == ["lo", "eth0"]
    assert readings.or_empty(TopologyReading).roles == (Role("eth0", "ceph_public"),)
    assert readings.or_empty(DiskUsesReading).users == read_disk_users(tree(tmp_path / "again", "ceph-cephadm-node"))
    devices, osds = readings.or_empty(DevicesReading)
    assert "osd.0" in osds.values()
    assert osds.keys() <= {device.name for device in devices}
    assert disk_latency_facts(readings) == "nothing gives a LatencyReading here"


def test_what_is_switched_off_is_not_known(tmp_path: Path) -> None:
    readings = page(tmp_path, ethtool=False, device=False, latency=False).readings
    assert [readings.get(kind) for kind in (LossesReading, DevicesReading, LatencyReading)] == [None, None, None]
    assert readings.or_empty(DevicesReading) == ((), {})
    assert disk_latency_facts(readings) is None


def test_a_latency_collector_that_failed_is_no_reason_to_advise() -> None:
    def fail(_skip: SkipHook) -> Samples:
        raise OSError(5, "broken")

    exposition = Exposition([fake("latency", (), fail)], None, clock=lambda: 0.0, logger=logging.getLogger("test"))
    assert disk_latency_facts(exposition.scrape().readings) is None
