"""InfiniBand, as in the Fujitsu slides: ``ibstatus``, and IP over it in connected mode."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from plumbline.checks import fixes
from plumbline.checks.model import Check, Fix, Keep, Severity, Verdict
from plumbline.checks.network.facts import NetworkFacts

CONNECTED_MTU = 65520
"""Slides: ``ib0 … mtu 65520``; Documentation/infiniband/ipoib.rst."""
_ACTIVE, _LINK_UP = 4, 5  # the numbers that ibstatus prints before these words


def _inactive(facts: NetworkFacts) -> Iterator[Verdict]:
    for port in facts.infiniband.ports:
        if port.link_layer != "InfiniBand" or port.state is None or port.physical_state is None:
            continue
        link_up = port.physical_state == _LINK_UP
        subject = f"{port.device}/{port.port}"
        should = "ACTIVE, LinkUp"
        if port.state == _ACTIVE and link_up:
            yield Verdict(subject, should, should)
        elif link_up:  # a link without a state: no subnet manager has configured it
            is_ = "LinkUp, not ACTIVE"
            fix = Fix(
                f"ibstat {shlex.quote(port.device)} {shlex.quote(port.port)}",
                caution="This only shows. The link is there and has no state: is a subnet manager (opensm) running?",
            )
            yield Verdict(subject, is_, should, fix)


def _datagram(facts: NetworkFacts) -> Iterator[Verdict]:
    nics = {nic.device: nic for nic in facts.nics}
    for device, connected in facts.infiniband.ipoib_connected.items():
        nic = nics.get(device)
        # mlx5 implements IPoIB in its own way ("enhanced"), without a connected mode
        if nic is None or not nic.up or nic.driver is None or nic.driver.startswith("mlx5"):
            continue
        should = "connected"
        if connected:
            yield Verdict(device, should, should)
        else:
            name = shlex.quote(device)
            yield Verdict(
                device,
                "datagram",
                should,
                Fix(
                    f"echo connected > /sys/class/net/{name}/mode && ip link set dev {name} mtu {CONNECTED_MTU}",
                    Keep(
                        fixes.INTERFACES_FILE,
                        f"pre-up echo connected > /sys/class/net/{name}/mode\nmtu {CONNECTED_MTU}",
                        f"in the stanza of {device}",
                    ),
                    "On every host of the network, or large packets are lost. Datagram mode is a little faster for "
                    "small blocks.",
                ),
            )


INACTIVE = Check(
    "infiniband.port-not-active",
    "Have each InfiniBand port with a link in state ACTIVE.",
    "InfiniBand ports (not RoCE) whose physical link is up. A port without a cable is left in peace.",
    "A link that no subnet manager has configured carries nothing.",
    "Fujitsu, SDC 2013, slide 21 (ibstatus: ACTIVE, LinkUp); ibstat(8)",
    Severity.WARNING,
    _inactive,
    "ibstat <device> <port>",
)
DATAGRAM = Check(
    "infiniband.ipoib-datagram",
    "Carry IP over InfiniBand in connected mode.",
    "IPoIB interfaces that are up, of drivers that have the choice (not mlx5).",
    "Packets of up to 65,520 bytes instead of about 2,000: more bandwidth; on the whole the better compromise.",
    "Fujitsu, SDC 2013, summary (CM is the better compromise); Documentation/infiniband/ipoib.rst",
    Severity.INFO,
    _datagram,
    "echo connected > /sys/class/net/<device>/mode && ip link set dev <device> mtu 65520",
)

CHECKS = (INACTIVE, DATAGRAM)
