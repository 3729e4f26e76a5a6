"""The checks of bonds and InfiniBand."""

import shlex
from collections.abc import Iterator

from plumbline.checks import fixes
from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.checks.network.facts import NetworkFacts
from plumbline.core.words import first_few
from plumbline.sources.net.bonding import Bond, Churn, Slave

# --- bonds: are all members up, and aggregated?

LACP = "802.3ad"
_MIIMON_MS = 100


@check(
    "network.bond-degraded",
    "Have every member of a bond up.",
    "Bonds that report their members' state.",
    "A member that is down reduces bandwidth and redundancy, and nothing else shows it.",
    "unnoba-2020, 4.4.3 (bonds of two ports with LACP); Documentation/networking/bonding.rst",
    Severity.WARNING,
    "ip link set dev <member> up",
)
def degraded(facts: NetworkFacts) -> Iterator[Verdict]:
    for bond in facts.bonds:
        slaves = [slave for slave in bond.slaves if slave.up is not None]
        if not slaves:
            continue
        down = [slave.device for slave in slaves if not slave.up]
        expected = f"all {len(slaves)} members up"
        if not down:
            yield Verdict(bond.device, expected, expected)
            continue
        fix = Fix(
            "; ".join(f"ip link set dev {shlex.quote(device)} up" for device in down),
            caution="If that changes nothing: check the cable, the transceiver and the switch's port.",
        )
        severity = Severity.CRITICAL if len(down) == len(slaves) else Severity.WARNING
        yield Verdict(bond.device, f"down: {first_few(down)}", expected, fix, severity)


@check(
    "network.bond-not-aggregated",
    "Have all members of an LACP bond aggregated with the switch.",
    "Bonds in mode 802.3ad with members that are up and report their aggregator or partner.",
    "Members outside the active aggregator are up and carry nothing: the bond has one port's bandwidth.",
    "unnoba-2020, 4.4.3; Documentation/networking/bonding.rst; IEEE 802.1AX",
    Severity.WARNING,
    "cat /proc/net/bonding/<bond>",
)
def not_aggregated(facts: NetworkFacts) -> Iterator[Verdict]:
    expected = "all members in one aggregator, with a partner"
    for bond in facts.bonds:
        slaves = [slave for slave in bond.slaves if slave.up]
        reports = any(slave.aggregator_id is not None or slave.actor is not None for slave in slaves)
        if bond.mode != LACP or not reports:
            continue
        faults = "; ".join(_faults(bond, slaves))
        # only the switch can fix this; the file shows which port to look for there
        fix = Fix(
            f"cat /proc/net/bonding/{shlex.quote(bond.device)}",
            caution="This only shows. Fix it at the switch: LACP on these ports, all in one channel group, on one "
            "switch (or a stack that acts as one).",
        )
        yield Verdict(bond.device, faults or expected, expected, fix if faults else None)


def _faults(bond: Bond, slaves: list[Slave]) -> Iterator[str]:
    silent = [slave.device for slave in slaves if bond.partner_valid(slave) is False]
    if silent:
        yield f"no LACP partner on {first_few(silent)}"
    ids = {slave.aggregator_id for slave in slaves if slave.aggregator_id is not None}
    if len(ids) > 1:
        yield f"{len(ids)} aggregators, of which one carries all the traffic"
    churned = [slave.device for slave in slaves if Churn.CHURNED in (slave.actor_churn, slave.partner_churn)]
    if churned:
        yield f"churned: {first_few(churned)}"


@check(
    "network.bond-speed-unknown",
    "Know the speed of every member of a bond.",
    "Members of bonds, of physical ports, that are up.",
    "The bond chooses and weighs its members by their speed. A port that is up without one negotiated nothing with the "
    "switch, or its transceiver or driver is at fault: in active-backup, nothing else shows it before a failover.",
    "Documentation/networking/bonding.rst (primary_reselect, ad_select: by speed and duplex); ethtool(8)",
    Severity.WARNING,
    "ethtool <member>",
)
def speed_unknown(facts: NetworkFacts) -> Iterator[Verdict]:
    nics = {nic.device: nic for nic in facts.nics}
    expected = "a known speed"
    for bond in facts.bonds:
        for slave in bond.slaves:
            nic = nics.get(slave.device)
            if nic is None or not nic.physical or not slave.up:
                continue
            caution = (
                "This only shows. Check the transceiver and the switch's port, and the driver's messages in dmesg."
            )
            fix = None if nic.speed_mbps else Fix(f"ethtool {shlex.quote(slave.device)}", caution=caution)
            yield Verdict(slave.device, f"up in {bond.device}, with unknown speed" if fix else expected, expected, fix)


@check(
    "network.bond-one-card",
    "Spread the members of a bond over two cards.",
    "Bonds of two physical ports or more whose bus addresses are known.",
    "Ports of one card share its slot, its firmware and its fate: a bond of them outlives a cable or a switch, but not "
    "the card. This holds on every kernel.",
    "INFN 2025, 6.2 (the ports of each bond spread over both cards)",
    Severity.INFO,
    "lspci -s <card>",
)
def one_card(facts: NetworkFacts) -> Iterator[Verdict]:
    nics = {nic.device: nic for nic in facts.nics if nic.physical}
    expected = "members on two cards"
    for bond in facts.bonds:
        cards = {nics[slave.device].bus.rpartition(".")[0] for slave in bond.slaves if slave.device in nics}
        if len(bond.slaves) < 2 or any(slave.device not in nics for slave in bond.slaves) or "" in cards:
            continue
        caution = "This only shows the card. Where the host has a second one, give each bond a port of either."
        fix = Fix(f"lspci -s {shlex.quote(min(cards))}", caution=caution) if len(cards) == 1 else None
        actual = f"all {len(bond.slaves)} members on card {min(cards)}" if fix else expected
        yield Verdict(bond.device, actual, expected, fix)


@check(
    "network.bond-unmonitored",
    "Have the bond monitor its members' links.",
    "Bonds that report their settings.",
    "Without it a member whose link is dead still gets its share of the packets, which are lost.",
    "Documentation/networking/bonding.rst (miimon; 100 ms is what it calls a good starting point)",
    Severity.WARNING,
    "ip link set dev <bond> type bond miimon 100",
)
def unmonitored(facts: NetworkFacts) -> Iterator[Verdict]:
    expected = "miimon (or arp_interval) set"
    for bond in facts.bonds:
        if bond.monitored is None:
            continue
        fix = fixes.miimon(bond.device, _MIIMON_MS)
        actual = expected if bond.monitored else "the links are not monitored"
        yield Verdict(bond.device, actual, expected, None if bond.monitored else fix)


# --- InfiniBand, as in the Fujitsu slides: ``ibstatus``, and IP over it in connected mode

CONNECTED_MTU = 65520
"""Slides: ``ib0 … mtu 65520``; Documentation/infiniband/ipoib.rst."""
_ACTIVE, _LINK_UP = 4, 5  # the numbers that ibstatus prints before these words


@check(
    "infiniband.port-not-active",
    "Have each InfiniBand port with a link in state ACTIVE.",
    "InfiniBand ports (not RoCE) whose physical link is up. A port without a cable is not judged.",
    "A link that no subnet manager has configured carries nothing.",
    "Fujitsu, SDC 2013, slide 21 (ibstatus: ACTIVE, LinkUp); ibstat(8)",
    Severity.WARNING,
    "ibstat <device> <port>",
)
def inactive(facts: NetworkFacts) -> Iterator[Verdict]:
    expected = "ACTIVE, LinkUp"
    for port in facts.infiniband.ports:
        if port.link_layer != "InfiniBand" or port.state is None or port.physical_state != _LINK_UP:
            continue
        subject = f"{port.device}/{port.port}"
        if port.state == _ACTIVE:
            yield Verdict(subject, expected, expected)
        else:  # a link without a state: no subnet manager has configured it
            fix = Fix(
                f"ibstat {shlex.quote(port.device)} {shlex.quote(port.port)}",
                caution="This only shows. The link is up but not configured: is a subnet manager (opensm) running?",
            )
            yield Verdict(subject, "LinkUp, not ACTIVE", expected, fix)


@check(
    "infiniband.ipoib-datagram",
    "Carry IP over InfiniBand in connected mode.",
    "IPoIB interfaces that are up, with a driver that offers both modes (not mlx5).",
    "Packets of up to 65,520 bytes instead of about 2,000: more bandwidth, and the better compromise overall.",
    "Fujitsu, SDC 2013, summary (CM is the better compromise); Documentation/infiniband/ipoib.rst",
    Severity.INFO,
    "echo connected > /sys/class/net/<device>/mode && ip link set dev <device> mtu 65520",
)
def datagram(facts: NetworkFacts) -> Iterator[Verdict]:
    nics = {nic.device: nic for nic in facts.nics}
    for device, connected in facts.infiniband.ipoib_connected.items():
        nic = nics.get(device)
        # mlx5 implements IPoIB in its own way ("enhanced"), without a connected mode
        if nic is None or not nic.up or nic.driver is None or nic.driver.startswith("mlx5"):
            continue
        caution = (
            "On every host of the network, or large packets are lost. Datagram mode is slightly faster for small "
            "blocks."
        )
        fix = fixes.connected_ipoib(device, CONNECTED_MTU, caution=caution)
        yield Verdict(device, "connected" if connected else "datagram", "connected", None if connected else fix)


CHECKS = (degraded, not_aggregated, speed_unknown, one_card, unmonitored, inactive, datagram)
