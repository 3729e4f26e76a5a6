"""Bonds: are all members up, and aggregated?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from plumbline.checks import fixes
from plumbline.checks.model import Check, Fix, Keep, Severity, Verdict
from plumbline.checks.network.facts import NetworkFacts
from plumbline.checks.text import listed
from plumbline.sources.net.bonding import Bond, Churn, Slave

LACP = "802.3ad"
_MIIMON_MS = 100


def _degraded(facts: NetworkFacts) -> Iterator[Verdict]:
    for bond in facts.bonds:
        known = [slave for slave in bond.slaves if slave.up is not None]
        if not known:
            continue
        down = [slave.device for slave in known if not slave.up]
        should = f"all {len(known)} members up"
        if not down:
            yield Verdict(bond.device, should, should)
            continue
        none_left = len(down) == len(known)
        fix = Fix(
            "; ".join(f"ip link set dev {shlex.quote(device)} up" for device in down),
            caution="Where that changes nothing: the cable, the transceiver or the switch's port.",
        )
        yield Verdict(
            bond.device, f"down: {listed(down)}", should, fix, Severity.CRITICAL if none_left else Severity.WARNING
        )


def _not_aggregated(facts: NetworkFacts) -> Iterator[Verdict]:
    for bond in facts.bonds:
        slaves = [slave for slave in bond.slaves if slave.up]
        if bond.mode != LACP or not slaves:
            continue
        faults = list(_faults(bond, slaves))
        known = any(slave.aggregator_id is not None or slave.actor is not None for slave in slaves)
        if not known:
            continue
        should = "all members in one aggregator, with a partner"
        if not faults:
            yield Verdict(bond.device, should, should)
            continue
        yield Verdict(bond.device, "; ".join(faults), should, _lacp_fix(bond))


def _faults(bond: Bond, slaves: list[Slave]) -> Iterator[str]:
    silent = [slave.device for slave in slaves if bond.partner_valid(slave) is False]
    if silent:
        yield f"no LACP partner on {listed(silent)}"
    ids = {slave.aggregator_id for slave in slaves if slave.aggregator_id is not None}
    if len(ids) > 1:
        yield f"{len(ids)} aggregators, of which one carries all the traffic"
    churned = [slave.device for slave in slaves if Churn.CHURNED in (slave.actor_churn, slave.partner_churn)]
    if churned:
        yield f"churned: {listed(churned)}"


def _lacp_fix(bond: Bond) -> Fix:
    """Only the switch can fix this; the file shows which port to look for there."""
    return Fix(
        f"cat /proc/net/bonding/{shlex.quote(bond.device)}",
        caution="This only shows; what mends it is at the switch: LACP on these ports, all in one channel group, to "
        "one switch (or a stack that acts as one).",
    )


DEGRADED = Check(
    "network.bond-degraded",
    "Have every member of a bond up.",
    "Bonds that tell their members' state.",
    "A member that is down takes its share of the bandwidth and the redundancy with it, and nothing else shows it.",
    "unnoba-2020, 4.4.3 (bonds of two ports with LACP); Documentation/networking/bonding.rst",
    Severity.WARNING,
    _degraded,
    "ip link set dev <member> up",
)
NOT_AGGREGATED = Check(
    "network.bond-not-aggregated",
    "Have all members of an LACP bond aggregated with the switch.",
    "Bonds in mode 802.3ad that tell aggregators or partners of members that are up.",
    "Members outside the active aggregator are up and carry nothing: the bond has one port's bandwidth.",
    "unnoba-2020, 4.4.3; Documentation/networking/bonding.rst; IEEE 802.1AX",
    Severity.WARNING,
    _not_aggregated,
    "cat /proc/net/bonding/<bond>",
)


def _unmonitored(facts: NetworkFacts) -> Iterator[Verdict]:
    for bond in facts.bonds:
        if bond.monitored is None:
            continue
        should = "miimon (or arp_interval) set"
        if bond.monitored:
            yield Verdict(bond.device, should, should)
            continue
        fix = Fix(
            f"ip link set dev {shlex.quote(bond.device)} type bond miimon {_MIIMON_MS}",
            Keep(fixes.INTERFACES_FILE, f"bond-miimon {_MIIMON_MS}", f"in the stanza of {bond.device}"),
        )
        yield Verdict(bond.device, "nobody watches the links", should, fix)


UNMONITORED = Check(
    "network.bond-unmonitored",
    "Let the bond watch its members' links.",
    "Bonds that tell their settings.",
    "Without it a member whose link is dead goes on getting its share of the packets, which are lost.",
    "Documentation/networking/bonding.rst (miimon; 100 ms is what it calls a good starting point)",
    Severity.WARNING,
    _unmonitored,
    "ip link set dev <bond> type bond miimon 100",
)

CHECKS = (DEGRADED, NOT_AGGREGATED, UNMONITORED)
