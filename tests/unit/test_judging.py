"""From series to facts: by name, with growth between looks, and nothing made up."""

from __future__ import annotations

from collections.abc import Mapping

from plumbline.catalogue import Kind, MetricSpec
from plumbline.checks.facts import (
    Bond,
    BondMember,
    Coalescing,
    Count,
    InfinibandPort,
    NetworkFacts,
    Nic,
    Ring,
    SoftnetCpu,
)
from plumbline.judging import Judge
from plumbline.snapshot import Family, Snapshot

LABELS = {
    "nic_info": ("device", "driver", "firmware", "bus", "master", "drop_source"),
    "nic_up": ("device",),
    "nic_mtu_bytes": ("device",),
    "nic_speed_bits_per_second": ("device",),
    "nic_max_speed_bits_per_second": ("device",),
    "nic_full_duplex": ("device",),
    "nic_ring_entries": ("device", "ring"),
    "nic_ring_max_entries": ("device", "ring"),
    "nic_drops_total": ("device", "direction", "cause"),
    "nic_pause_enabled": ("device", "direction"),
    "nic_pause_autonegotiate": ("device",),
    "nic_pause_frames_total": ("device", "direction"),
    "nic_coalesce_seconds": ("device", "direction"),
    "nic_coalesce_frames": ("device", "direction"),
    "nic_coalesce_adaptive": ("device", "direction"),
    "nic_offload_enabled": ("device", "feature"),
    "nic_channels": ("device", "channel"),
    "nic_irq_share_max_ratio": ("device",),
    "nic_irq_active_vectors": ("device",),
    "nic_role_info": ("device", "role"),
    "nic_relation_info": ("device", "lower", "kind"),
    "softnet_processed_total": ("cpu",),
    "softnet_dropped_total": ("cpu",),
    "softnet_time_squeeze_total": ("cpu",),
    "softnet_time_squeeze_attributed_total": ("cpu", "limit"),
    "sysctl_value": ("name", "field"),
    "tcp_receive_drops_total": ("queue",),
    "infiniband_info": ("device", "port", "link_layer", "netdev"),
    "infiniband_port_state": ("device", "port"),
    "infiniband_physical_state": ("device", "port"),
    "nic_ipoib_connected": ("device",),
    "bond_info": ("device", "mode", "xmit_hash_policy"),
    "bond_monitored": ("device",),
    "bond_slave_up": ("device", "slave"),
    "bond_slave_aggregator": ("device", "slave"),
    "bond_slave_partner_mac_valid": ("device", "slave"),
    "bond_slave_churned": ("device", "slave", "side"),
}


def snapshot(series: Mapping[str, float]) -> Snapshot:
    """``"nic_up eth0": 1`` and the like."""
    families: dict[str, dict[tuple[str, ...], float]] = {}
    for text, value in series.items():
        name, _, labels = text.partition(" ")
        families.setdefault(name, {})[tuple(label.strip("-") for label in labels.split())] = value
    specs = {
        name: MetricSpec(
            f"plumbline_{name}", Kind.COUNTER if name.endswith("_total") else Kind.GAUGE, "Help.", LABELS[name]
        )
        for name in families
    }
    return Snapshot(
        tuple(Family(specs[name], tuple(rows), list(rows.values())) for name, rows in sorted(families.items())), ()
    )


def facts(series: Mapping[str, float]) -> NetworkFacts:
    return Judge().facts(snapshot(series), 100.0)


def nic(series: Mapping[str, float]) -> Nic:
    (only,) = facts(series).nics
    return only


def test_an_empty_collection_knows_nothing() -> None:
    assert facts({}) == NetworkFacts()


def test_everything_about_a_port() -> None:
    assert nic(
        {
            "nic_info eth0 ixgbe - 0000:3b:00.0 - driver": 1,
            "nic_up eth0": 1,
            "nic_mtu_bytes eth0": 9000,
            "nic_speed_bits_per_second eth0": 1e9,
            "nic_max_speed_bits_per_second eth0": 10e9,
            "nic_full_duplex eth0": 0,
            "nic_ring_entries eth0 rx": 512,
            "nic_ring_max_entries eth0 rx": 4096,
            "nic_ring_entries eth0 tx": 256,
            "nic_drops_total eth0 receive ring": 7,
            "nic_drops_total eth0 receive fifo": 8,
            "nic_drops_total eth0 receive filter": 9,
            "nic_drops_total eth0 transmit ring": 10,
            "nic_pause_enabled eth0 receive": 1,
            "nic_pause_enabled eth0 transmit": 0,
            "nic_pause_autonegotiate eth0": 1,
            "nic_pause_frames_total eth0 receive": 3,
            "nic_coalesce_seconds eth0 receive": 8e-6,
            "nic_coalesce_frames eth0 receive": 128,
            "nic_coalesce_adaptive eth0 receive": 1,
            "nic_offload_enabled eth0 tcp-segmentation-offload": 0,
            "nic_offload_enabled eth0 tx-tcp-segmentation": 1,
            "nic_channels eth0 combined": 8,
            "nic_irq_share_max_ratio eth0": 0.5,
            "nic_irq_active_vectors eth0": 9,
        }
    ) == Nic(
        "eth0",
        driver="ixgbe",
        bus="0000:3b:00.0",
        physical=True,
        up=True,
        mtu_bytes=9000,
        speed_bits_per_second=1e9,
        max_speed_bits_per_second=10e9,
        full_duplex=False,
        rx_ring=Ring(512, 4096),
        tx_ring=Ring(256, None),
        ring_drops=Count(7),
        fifo_drops=Count(8),
        pause_receive=True,
        pause_transmit=False,
        pause_autonegotiated=True,
        pause_frames_received=Count(3),
        rx_coalescing=Coalescing(8.0, 128, True),
        offloads={"tcp-segmentation-offload": False, "tx-tcp-segmentation": True},
        channels=8,
        irq_share_max_ratio=0.5,
        irq_active_vectors=9,
    )


def test_what_is_physical() -> None:
    assert nic({"nic_info eth0 virtio_net - 0000:00:03.0 - driver": 1}).physical is False
    assert nic({"nic_info lo loopback - - - rtnl": 1}).physical is False
    assert nic({"nic_up eth0": 1}).physical is None


def test_storage_reaches_down_through_vlan_and_bond() -> None:
    found = facts(
        {
            "nic_role_info bond0.15 ceph_cluster": 1,
            "nic_relation_info bond0.15 bond0 vlan": 1,
            "nic_info bond0.15 vlan - - - rtnl": 1,
            "nic_info bond0 bond - - - members": 1,
            "nic_info ens1f0 ixgbe - 0000:3b:00.0 bond0 driver": 1,
            "nic_info ens1f1 ixgbe - 0000:3b:00.1 bond0 driver": 1,
            "nic_info eno1 igb - 0000:01:00.0 - driver": 1,
        }
    )
    assert {each.device: (each.storage, set(each.roles)) for each in found.nics} == {
        "bond0.15": (True, {"ceph_cluster"}),
        "bond0": (True, set()),
        "ens1f0": (True, set()),
        "ens1f1": (True, set()),
        "eno1": (False, set()),
    }


def test_relations_in_a_circle_end() -> None:
    series = {
        "nic_role_info a ceph_public": 1,
        "nic_relation_info a b vlan": 1,
        "nic_relation_info b a vlan": 1,
        "nic_up a": 1,
        "nic_up b": 1,
    }
    assert [each.storage for each in facts(series).nics] == [True, True]


def test_without_roles_nobody_knows_who_carries_storage() -> None:
    assert nic({"nic_up eth0": 1}).storage is None


def test_sysctls_in_the_kernels_order() -> None:
    assert facts(
        {
            "sysctl_value net.ipv4.tcp_rmem max": 6291456,
            "sysctl_value net.ipv4.tcp_rmem min": 4096,
            "sysctl_value net.ipv4.tcp_rmem default": 131072,
            "sysctl_value net.core.netdev_budget -": 300,
        }
    ).sysctls == {"net.ipv4.tcp_rmem": (4096, 131072, 6291456), "net.core.netdev_budget": (300,)}


def test_bonds() -> None:
    assert facts(
        {
            "bond_info bond0 802.3ad layer3+4": 1,
            "bond_monitored bond0": 0,
            "bond_slave_up bond0 a": 1,
            "bond_slave_up bond0 b": 0,
            "bond_slave_aggregator bond0 a": 1,
            "bond_slave_partner_mac_valid bond0 a": 0,
            "bond_slave_churned bond0 a actor": 0,
            "bond_slave_churned bond0 a partner": 1,
            "bond_slave_churned bond0 b actor": 0,
        }
    ).bonds == (
        Bond(
            "bond0",
            "802.3ad",
            False,
            (BondMember("a", True, 1, False, True), BondMember("b", False, None, None, False)),
        ),
    )


def test_growth_is_what_was_added_between_looks() -> None:
    judge = Judge()
    series = {"softnet_processed_total 0": 100.0, "softnet_dropped_total 0": 5.0, "softnet_time_squeeze_total 0": 1.0}
    first = judge.facts(snapshot(series), 10.0)
    assert (first.window_s, first.softnet) == (None, (SoftnetCpu(0, Count(100), Count(5), Count(1)),))
    second = judge.facts(snapshot({**series, "softnet_dropped_total 0": 9.0}), 12.0)
    assert (second.window_s, second.softnet) == (2.0, (SoftnetCpu(0, Count(100, 0), Count(9, 4), Count(1, 0)),))


def test_growth_is_forgotten_after_the_window() -> None:
    judge = Judge(window_s=60.0)
    drops = "nic_drops_total eth0 receive ring"
    grew = []
    for at, total in ((0, 5), (30, 9), (60, 9), (89, 10), (90, 10), (150, 10)):
        (port,) = judge.facts(snapshot({"nic_up eth0": 1, drops: total}), float(at)).nics
        assert port.ring_drops is not None
        grew.append(port.ring_drops.grew)
    assert grew == [None, 4, 4, 5, 1, 0]


def test_a_reset_counts_from_zero() -> None:
    judge = Judge()
    drops = "nic_drops_total eth0 receive ring"
    for at, total in ((0, 500), (10, 3)):
        (port,) = judge.facts(snapshot({"nic_up eth0": 1, drops: total}), float(at)).nics
    assert port.ring_drops == Count(3, 3)


def test_a_port_that_appears_has_not_grown() -> None:
    judge = Judge()
    judge.facts(snapshot({"nic_up lo": 1}), 0.0)
    found = judge.facts(snapshot({"nic_up eth0": 1, "nic_drops_total eth0 receive ring": 500}), 10.0)
    assert [each.ring_drops for each in found.nics] == [Count(500)]


def test_squeezes_by_limit() -> None:
    judge = Judge()
    for at in (0, 1):
        found = judge.facts(
            snapshot(
                {
                    "softnet_processed_total 3": 1,
                    "softnet_time_squeeze_attributed_total 3 budget": 2 + at,
                    "softnet_time_squeeze_attributed_total 3 time": 7,
                    "tcp_receive_drops_total receive_queue": 4 + 5 * at,
                }
            ),
            float(at),
        )
    assert found.softnet == (SoftnetCpu(3, Count(1, 0), squeezed_by_budget=Count(3, 1), squeezed_by_time=Count(7, 0)),)
    assert found.tcp_receive_drops == Count(9, 5)


def test_looking_judges() -> None:
    judge = Judge()
    assert judge.findings is None
    judge.look(snapshot({"sysctl_value net.ipv4.tcp_sack -": 0}), 0.0)
    assert judge.findings is not None
    assert [(each.check, each.met) for each in judge.findings] == [("network.tcp-sack", False)]


def test_infiniband() -> None:
    found = facts(
        {
            "infiniband_info mlx4_0 1 InfiniBand ib0": 1,
            "infiniband_port_state mlx4_0 1": 4,
            "infiniband_physical_state mlx4_0 1": 5,
            "infiniband_port_state qib0 1": 2,
            "nic_ipoib_connected ib0": 1,
        }
    )
    assert found.infiniband == (
        InfinibandPort("mlx4_0", "1", "InfiniBand", True, True),
        InfinibandPort("qib0", "1", "", False, None),
    )
    assert found.ipoib_connected == {"ib0": True}
