"""The link itself: speed, duplex, MTU, and the work the port can take off the CPU."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator

from plumbline.checks import fixes
from plumbline.checks.model import Check, Severity, Verdict
from plumbline.checks.network.facts import NetworkFacts
from plumbline.core.units import si

OFFLOADS = {
    "rx-checksumming": "rx",
    "tx-checksumming": "tx",
    "scatter-gather": "sg",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
}
"""Feature name in ``ethtool -k`` → its word for ``ethtool -K``. From Figura 39, those that save work for TCP and are on
by default everywhere; LRO is off there and stays off (it breaks bridges), and the others depend on the workload."""


def _slow(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        speed, most = nic.speed_mbps, nic.modes.max_speed_mbps
        if not nic.physical or not nic.up or not speed or not most:
            continue
        is_, should = _bits(speed), f"{_bits(most)}, the fastest the port can do"
        if speed >= most:
            yield Verdict(nic.device, is_, should)
            continue
        caution = "Look at both ends first: a slower switch port, cable or transceiver explains it. "
        fix = fixes.autonegotiate(nic, caution=caution + fixes.RESETS_LINK)
        yield Verdict(nic.device, is_, should, fix, Severity.INFO if nic.storage is False else None)


def _bits(mbps: int) -> str:
    return si(mbps * 1e6, "b/s")


def _half(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        if not nic.physical or not nic.up or nic.modes.full_duplex is None:
            continue
        if nic.modes.full_duplex:
            yield Verdict(nic.device, "full duplex", "full duplex")
            continue
        fix = fixes.autonegotiate(nic, caution=_BOTH_ENDS)
        yield Verdict(nic.device, "half duplex", "full duplex", fix, Severity.WARNING if nic.storage is False else None)


_BOTH_ENDS = "Autonegotiation has to be on at the switch's port too: half duplex comes from one end that has it off."


def _mtu(facts: NetworkFacts) -> Iterator[Verdict]:
    networks: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for nic in facts.nics:
        for role in nic.roles if nic.mtu_bytes and nic.up is not False else ():
            networks[role].append((nic.mtu_bytes or 0, nic.device))
    judged: set[str] = set()
    for role, ports in sorted(networks.items()):
        largest, where = max(ports)
        for mtu, device in sorted(ports):
            if len(ports) < 2 or device in judged:
                continue
            judged.add(device)
            is_ = f"{mtu} ({role})"
            if mtu == largest:
                yield Verdict(device, is_, str(largest))
                continue
            caution = (
                f"First see that every switch port and host of the network carries it: "
                f"ping -M do -c 3 -s {largest - 28} -I {shlex.quote(where)} <peer>. Otherwise lower {where} instead."
            )
            yield Verdict(device, is_, f"{largest}, as {where} has", fixes.mtu(device, largest, caution=caution))


def _offloads(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        known = {name: nic.offloads[name] for name in OFFLOADS if name in nic.offloads}
        if not nic.physical or not nic.up or not known:
            continue
        off = [name for name, on in known.items() if not on]
        if not off:
            yield Verdict(nic.device, "on", "on")
            continue
        words = " ".join(f"{OFFLOADS[name]} on" for name in off)
        caution = "Leave those that were switched off to find a fault, and what `ethtool -k` calls fixed."
        yield Verdict(nic.device, f"off: {', '.join(off)}", "on", fixes.ethtool(nic, "-K", words, caution=caution))


BELOW_CAPABILITY = Check(
    "network.link-below-capability",
    "Run each link at the fastest speed its port can do.",
    "Real ports that are up and tell both speeds.",
    "The network is the upper bound of every throughput above it.",
    "unnoba-2020, 5.3 (9.40 Gb/s of 10, 941 Mb/s of 1) and 10.1; ethtool(8) -s",
    Severity.WARNING,
    _slow,
    "ethtool -s <device> autoneg on",
)
HALF_DUPLEX = Check(
    "network.half-duplex",
    "Run each link in full duplex.",
    "Real ports that are up and tell their duplex.",
    "In half duplex each frame sent may collide with one received; throughput falls to a fraction.",
    "ethtool(8) -s; IEEE 802.3 clause 28; unnoba-2020, 5.3 for what a sound link gives",
    Severity.CRITICAL,
    _half,
    "ethtool -s <device> autoneg on",
)
MTU_DIFFERS = Check(
    "network.mtu-differs",
    "Have the same MTU on every interface of one network: jumbo frames everywhere or nowhere.",
    "Interfaces of this node that have an address in the same Ceph network. Whether other hosts agree is for a rule "
    "that sees them all.",
    "A frame larger than a station on its way takes is lost without a word.",
    "unnoba-2020, 5.2.5 (Figura 40) and 10.1",
    Severity.WARNING,
    _mtu,
    "ip link set dev <device> mtu <the other's>",
)
OFFLOADS_OFF = Check(
    "network.offloads-off",
    "Leave checksums, segmentation and receive merging to the port.",
    "Real ports that are up and tell their features.",
    "The port does this work for nothing; the CPU that does it instead is the one that empties the ring.",
    "unnoba-2020, 5.2.4 (Figura 39); Documentation/networking/segmentation-offloads.rst",
    Severity.INFO,
    _offloads,
    "ethtool -K <device> <feature> on",
)

CHECKS = (BELOW_CAPABILITY, HALF_DUPLEX, MTU_DIFFERS, OFFLOADS_OFF)
