"""Promises about all checks: every documented advice has one, and every one says why, whence and how."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from msgspec.structs import replace

from plumbline.checks.growth import Count
from plumbline.checks.model import judge
from plumbline.checks.network import CHECKS
from plumbline.checks.network.facts import NetworkFacts, SoftnetCpu
from plumbline.sources.net.bonding import Bond, Slave
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.port_settings import Moderation, PauseConfig, RingSizes
from support.facts import LOOPBACK, NIC, QUIET, VIRTUAL, infiniband, interrupts, moderated, sysctls
from support.offenders import for_every

IDS = {check.id for check in CHECKS}

BULLETS = {
    # the bullets of 10.1, "La red de datos", in its order → the checks that hold a host to them
    "Verificación de balanceo de las interrupciones de cada interfaz de red en el vector de interrupciones de cada "
    "procesador disponible en el nodo.": {"network.irqs-on-one-cpu"},
    "Aumentar el valor de net.core.netdev_budget si la tercera columna de /proc/net/softnet_stat tiene valores "
    "crecientes.": {"network.netdev-budget", "network.netdev-budget-usecs"},
    "Verificación de pause frames e interrupt coalescing, que por defecto vienen habilitados.": {
        "network.pause-off",
        "network.coalescing-off",
    },
    "Aumentar el valor de net.core.netdev_max_backlog si la segunda columna de /proc/net/softnet_stat tiene valores "
    "distintos de 0.": {"network.netdev-max-backlog"},
    "Ampliación de los buffers de recepción de los adaptadores de red al máximo que permite el driver (ethtool -g)": {
        "network.ring-below-maximum"
    },
    "Si están habilitados los jumbo-frames en el nodo, deben estarlo en todas las interfaces de todos los switches, "
    "servidores y clientes del dominio de broadcast.": {"network.mtu-differs"},
    "Ampliación de los valores de memoria mínimos, default y máximo reservados por el sistema operativo para los "
    "sockets TCP en net.ipv4.tcp_rmem y net.core.rmem_max": {"network.tcp-rmem", "network.rmem-max"},
    # and the figures it says a network so set up reaches
    "los servidores con interfaces de 10 Gbps SFP+ tienen un throughput sostenido de 9.40 Gbps": {
        "network.link-below-capability",
        "network.half-duplex",
    },
}

SECTIONS = {
    # chapter 5 by section → checks
    "5.1 Las interfaces de red y sus drivers": {"network.irqs-on-one-cpu"},
    "5.2 Monitoreo, análisis y ajuste": {"network.netdev-budget"},
    "5.2.1 Pause Frames": {"network.pause-off"},
    "5.2.2 Interrupt Coalescing": {"network.coalescing-off"},
    "5.2.3 Colas de procesamiento": {"network.netdev-max-backlog", "network.ring-below-maximum"},
    "5.2.4 Adapter Offloading": {"network.offloads-off"},
    "5.2.5 Jumbo Frames": {"network.mtu-differs"},
    "5.2.6 TCP timestamps": {"network.tcp-timestamps"},
    "5.2.7 TCP Selective Acknowledgements": {"network.tcp-sack"},
    "5.2.8 Buffers de las Aplicaciones": {
        "network.tcp-rmem",
        "network.tcp-wmem",
        "network.rmem-max",
        "network.wmem-max",
        "network.tcp-window-scaling",
    },
}


@pytest.mark.parametrize("bullet", BULLETS)
def test_every_line_of_10_1_is_a_check(bullet: str) -> None:
    assert BULLETS[bullet] <= IDS


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_of_chapter_5_is_a_check(section: str) -> None:
    assert SECTIONS[section] <= IDS


@pytest.mark.parametrize("bullet", list(BULLETS)[:7])
def test_a_check_for_a_line_of_10_1_names_it_as_its_source(bullet: str) -> None:
    sources = {check.id: check.source for check in CHECKS}
    assert any("10.1" in sources[check] for check in BULLETS[bullet])


@for_every("check", CHECKS, ids=lambda check: check.id)
def test_every_check_says_all_it_has_to(check) -> None:
    assert re.fullmatch(r"(network|infiniband)\.[a-z]+(-[a-z]+)*", check.id)
    for text in (check.advice, check.applies, check.why):
        assert text.endswith(".")
    assert re.search(r"unnoba-2020|Fujitsu|INFN|Documentation/|\(8\)", check.source)
    assert check.fix


def test_ids_are_unique() -> None:
    assert [name for name, count in Counter(check.id for check in CHECKS).items() if count > 1] == []


BAD_NIC = replace(
    NIC,
    rings=RingSizes(rx=453, rx_max=4078),
    ring_drops=Count(9, 9),
    pause=PauseConfig(False, receive=False, transmit=True),
    coalescing=moderated(Moderation(0, 1, False)),
    offloads={"scatter-gather": False},
    speed_mbps=1_000,
    modes=LinkModes(full_duplex=False, max_speed_mbps=10_000),
    interrupts=interrupts(1.0, 8),
    roles=frozenset({"ceph_public"}),
)
BAD = NetworkFacts(
    2.0,
    (
        BAD_NIC,
        replace(NIC, device="ens2f1", mtu_bytes=9000, roles=frozenset({"ceph_public", "ceph_cluster"})),
        replace(NIC, device="ib0"),
        replace(NIC, device="a", speed_mbps=None),
        replace(NIC, device="b", bus="0000:3b:00.1"),
        replace(NIC, device="c", bus="0000:3b:00.2"),
    ),
    tuple(SoftnetCpu(cpu, Count(9, 9), Count(9, 9), Count(9, 9), Count(9, 9), Count(9, 9)) for cpu in range(8)),
    sysctls(
        {
            "net.core.netdev_budget": (300,),
            "net.core.netdev_budget_usecs": (2000,),
            "net.core.netdev_max_backlog": (1000,),
            "net.core.rmem_max": (212992,),
            "net.core.wmem_max": (212992,),
            "net.ipv4.tcp_rmem": (1, 1, 1),
            "net.ipv4.tcp_wmem": (1, 1, 1),
            "net.ipv4.tcp_window_scaling": (0,),
            "net.ipv4.tcp_timestamps": (0,),
            "net.ipv4.tcp_sack": (0,),
        }
    ),
    bonds=(
        Bond(
            "bond0",
            "802.3ad",
            "",
            "",
            "",
            miimon_ms=0,
            arp_interval_ms=0,
            min_links=None,
            aggregator=None,
            slaves=(
                Slave("a", None, True, None, aggregator_id=1),
                Slave("b", None, True, None, aggregator_id=2),
                Slave("c", None, False, None),
            ),
        ),
    ),
    infiniband=infiniband(2, 5, ib0=False),
)


def test_every_check_can_find_something() -> None:
    assert {each.check for each in judge(CHECKS, BAD) if not each.met} == IDS


def test_every_finding_that_is_not_met_has_a_command_of_its_checks_kind() -> None:
    commands = {check.id: check.fix.split()[0] for check in CHECKS}
    for each in judge(CHECKS, BAD):
        if not each.met:
            assert each.fix is not None
            assert each.fix.now.split()[0] == commands[each.check]


def test_a_sound_host_has_nothing_to_mend() -> None:
    found = judge(CHECKS, NetworkFacts(2.0, (NIC, VIRTUAL, LOOPBACK), QUIET))
    assert found
    assert [each.check for each in found if not each.met] == []


def test_a_host_that_tells_nothing_gets_no_advice() -> None:
    assert judge(CHECKS, NetworkFacts()) == ()


def test_this_kind_of_machine_gets_no_advice() -> None:
    """A virtual machine: virtio_net with ring 256 of 256, MTU 1400, two CPUs, Linux 6.18's settings."""
    facts = NetworkFacts(
        2.0,
        (VIRTUAL, LOOPBACK),
        QUIET[:2],
        sysctls(
            {
                "net.core.netdev_budget": (300,),
                "net.core.netdev_max_backlog": (1000,),
                "net.core.rmem_max": (4194304,),
                "net.core.wmem_max": (4194304,),
                "net.ipv4.tcp_rmem": (4096, 131072, 33554432),
                "net.ipv4.tcp_wmem": (4096, 16384, 4194304),
                "net.ipv4.tcp_window_scaling": (1,),
                "net.ipv4.tcp_timestamps": (1,),
                "net.ipv4.tcp_sack": (1,),
            }
        ),
    )
    assert [(each.check, each.subject) for each in judge(CHECKS, facts) if not each.met] == []
