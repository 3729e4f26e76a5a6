"""Bonds as metrics.

How to read them: a slave whose ``plumbline_bond_slave_aggregator_id`` differs from its bond's
``plumbline_bond_aggregator_id`` carries nothing (the switch has its ports in two groups, or in none);
``…_partner_mac_valid`` 0 means that the switch does not speak LACP on that port.
"""

from collections.abc import Iterator, Mapping

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.net.bonding import Bond, BondsReading, Churn, LacpState, Slave, SlaveChurn, no_mac

_SLAVE = ("device", "slave")

INFO = gauge(
    "plumbline_bond_info",
    "The bond's settings in the kernel's words; empty: not used in this mode.",
    ("device", "bond_mode", "xmit_hash_policy", "lacp_rate", "ad_select"),
)
SLAVES = gauge("plumbline_bond_slaves", "Number of ports in the bond.", ("device",))
MONITORED = gauge(
    "plumbline_bond_link_monitoring_enabled",
    "1: links are monitored (miimon or arp_interval); 0: a dead link stays in use.",
    ("device",),
)
MIN_LINKS = gauge("plumbline_bond_min_links", "Slaves that must be up for the bond to be up (802.3ad).", ("device",))
AGGREGATOR = gauge(
    "plumbline_bond_aggregator_id", "Id of the active LACP aggregator, which carries traffic.", ("device",)
)
AGGREGATOR_PORTS = gauge("plumbline_bond_aggregator_ports", "Slaves in the active LACP aggregator.", ("device",))
PARTNER_MAC_VALID = gauge("plumbline_bond_partner_mac_valid", "0: no LACP answer (partner MAC all zeros).", ("device",))
SLAVE_UP = gauge("plumbline_bond_slave_up", "1: link monitoring finds the slave's link up (MII status).", _SLAVE)
SLAVE_ACTIVE = gauge("plumbline_bond_slave_active", "1: the slave may carry traffic; 0: backup or failed.", _SLAVE)
SLAVE_LINK_FAILURES = counter("plumbline_bond_slave_link_failures_total", "How often the slave's link failed.", _SLAVE)
SLAVE_AGGREGATOR = gauge("plumbline_bond_slave_aggregator_id", "LACP aggregator id; must equal the bond's.", _SLAVE)
SLAVE_PARTNER_MAC_VALID = gauge("plumbline_bond_slave_partner_mac_valid", "0: no LACP partner (MAC all zeros).", _SLAVE)
SLAVE_LACP_FLAG = gauge(
    "plumbline_bond_slave_lacp_flag",
    "LACP port state bits of this end (actor) and of the switch (partner).",
    ("device", "slave", "side", "flag"),
)
SLAVE_CHURNED = gauge(
    "plumbline_bond_slave_churned",
    "1: this side (actor: this end, partner: switch) did not reach LACP sync within a minute.",
    ("device", "slave", "side"),
)
SLAVE_CHURNS = counter("plumbline_bond_slave_churns_total", "How often this side churned.", ("device", "slave", "side"))

FLAGS: Mapping[str, LacpState] = {(flag.name or "").lower(): flag for flag in LacpState}
_NO_CHURN = SlaveChurn()


def samples(reading: BondsReading) -> Iterator[Sample]:
    for bond in reading.bonds:
        yield from _bond_samples(bond)
        for slave in bond.slaves:
            yield from _slave_samples(bond, slave, reading.churns.get((bond.device, slave.device), _NO_CHURN))


def _bond_samples(bond: Bond) -> Iterator[Sample]:
    labels = (bond.device,)
    yield INFO, (bond.device, bond.mode, bond.xmit_hash_policy, bond.lacp_rate, bond.ad_select), 1
    yield SLAVES, labels, len(bond.slaves)
    yield from known(labels, (MONITORED, bond.monitored), (MIN_LINKS, bond.min_links))
    active = bond.aggregator
    if active is not None:
        yield AGGREGATOR, labels, active.aggregator_id
        yield from known(labels, (AGGREGATOR_PORTS, active.ports))
        if active.partner_mac:
            yield PARTNER_MAC_VALID, labels, 0 if no_mac(active.partner_mac) else 1


def _slave_samples(bond: Bond, slave: Slave, churn: SlaveChurn) -> Iterator[Sample]:
    labels = (bond.device, slave.device)
    yield from known(
        labels,
        (SLAVE_UP, slave.up),
        (SLAVE_ACTIVE, slave.active),
        (SLAVE_LINK_FAILURES, slave.link_failures),
        (SLAVE_AGGREGATOR, slave.aggregator_id),
        (SLAVE_PARTNER_MAC_VALID, bond.partner_valid(slave)),
    )
    sides = (
        ("actor", slave.actor, slave.actor_churn or churn.actor, churn.actor_times),
        ("partner", slave.partner, slave.partner_churn or churn.partner, churn.partner_times),
    )
    for side, state, churned, times in sides:
        if state is not None:
            for flag, bit in FLAGS.items():
                yield SLAVE_LACP_FLAG, (*labels, side, flag), 1 if state & bit else 0
        if churned is not None:
            yield SLAVE_CHURNED, (*labels, side), 1 if churned is Churn.CHURNED else 0
        yield from known((*labels, side), (SLAVE_CHURNS, times))


COLLECTOR: Collector[Host, BondsReading] = Collector(
    "bond",
    declared(globals()),
    lambda host, skip: BondsReading(host.parts.network.read_bonds(skip), host.parts.links.churns),
    samples,
    skip_reasons=ITEM_REASONS,
    origin="rtnetlink `IFLA_BOND_*`; churn from `/proc/net/bonding` where netlink does not report it",
    sized_by=("bond",),
)
