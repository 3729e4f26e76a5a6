"""The link itself: speed, duplex, MTU, and the work the port can take off the CPU."""

import shlex
from collections import defaultdict
from collections.abc import Iterator

from plumbline.checks import fixes
from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.checks.network.facts import NetworkFacts, Nic
from plumbline.core.units import si
from plumbline.sources.net.roles import CLUSTER, PUBLIC

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


@check(
    "network.link-below-capability",
    "Run each link at the fastest speed its port can do.",
    "Physical ports that are up and report both speeds.",
    "The network is the upper bound of every throughput above it.",
    "unnoba-2020, 5.3 (9.40 Gb/s of 10, 941 Mb/s of 1) and 10.1; ethtool(8) -s",
    Severity.WARNING,
    "ethtool -s <device> autoneg on",
)
def below_capability(facts: NetworkFacts) -> Iterator[Verdict]:
    caution = "Check both ends first: a slower switch port, cable or transceiver explains it. " + fixes.RESETS_LINK
    for nic in facts.nics:
        speed, most = nic.speed_mbps, nic.modes.max_speed_mbps
        if not nic.physical or not nic.up or not speed or not most:
            continue
        fix = None if speed >= most else fixes.autonegotiate(nic, caution=caution)
        severity = Severity.INFO if nic.storage is False else None
        yield Verdict(nic.device, _bits(speed), f"{_bits(most)}, the fastest the port can do", fix, severity)


def _bits(mbps: int) -> str:
    return si(mbps * 1e6, "b/s")


@check(
    "network.half-duplex",
    "Run each link in full duplex.",
    "Physical ports that are up and report their duplex.",
    "In half duplex, sent frames can collide with received ones; throughput falls to a fraction.",
    "ethtool(8) -s; IEEE 802.3 clause 28; unnoba-2020, 5.3 for the throughput of a healthy link",
    Severity.CRITICAL,
    "ethtool -s <device> autoneg on",
)
def half_duplex(facts: NetworkFacts) -> Iterator[Verdict]:
    caution = "The switch's port needs autonegotiation too: half duplex results when one end has it off."
    for nic in facts.nics:
        full = nic.modes.full_duplex
        if not nic.physical or not nic.up or full is None:
            continue
        fix = None if full else fixes.autonegotiate(nic, caution=caution)
        severity = Severity.WARNING if nic.storage is False else None
        yield Verdict(nic.device, "full duplex" if full else "half duplex", "full duplex", fix, severity)


@check(
    "network.mtu-differs",
    "Have the same MTU on every interface of one network: jumbo frames everywhere or nowhere.",
    "Interfaces of this node that have an address in the same Ceph network, and each that lies below, a bond or a port,"
    " which has to fit those above it. An alert compares it between hosts.",
    "A frame that is larger than a station on its path accepts is lost silently.",
    "unnoba-2020, 5.2.5 (Figura 40) and 10.1",
    Severity.WARNING,
    "ip link set dev <device> mtu <MTU of the others>",
)
def mtu_differs(facts: NetworkFacts) -> Iterator[Verdict]:
    networks: dict[str, dict[str, Nic]] = defaultdict(dict)
    for nic in facts.nics:
        for role in nic.roles if nic.mtu_bytes and nic.up is not False else ():
            networks[role][nic.device] = nic
    judged: set[str] = set()
    for role, members in sorted(networks.items()):
        ends = {device for device, nic in members.items() if nic.carries.isdisjoint(members)}
        for device, nic in sorted(members.items(), key=lambda item: (item[1].mtu_bytes or 0, item[0])):
            # what lies below, a bond of two VLANs, has to fit the larger of them, and may be larger
            others = {device} | (ends if device in ends else nic.carries & members.keys())
            if len(others) < 2 or device in judged:
                continue
            judged.add(device)
            largest, where = max((members[other].mtu_bytes or 0, other) for other in others)
            actual = f"{nic.mtu_bytes} ({role})"
            if nic.mtu_bytes == largest:
                yield Verdict(device, actual, str(largest))
                continue
            caution = (
                f"First check that every switch port and host of the network accepts it: "
                f"ping -M do -c 3 -s {largest - 28} -I {shlex.quote(where)} <peer>. Otherwise lower {where} instead."
            )
            yield Verdict(device, actual, f"{largest}, as on {where}", fixes.mtu(device, largest, caution=caution))


@check(
    "network.offloads-off",
    "Leave checksums, segmentation and receive merging to the port.",
    "Physical ports that are up and report their features.",
    "The port does this work for free; otherwise the CPU that empties the ring has to do it.",
    "unnoba-2020, 5.2.4 (Figura 39); Documentation/networking/segmentation-offloads.rst",
    Severity.INFO,
    "ethtool -K <device> <feature> on",
)
def offloads_off(facts: NetworkFacts) -> Iterator[Verdict]:
    caution = "Leave those that were switched off to isolate a fault, and those that `ethtool -k` marks as fixed."
    for nic in facts.nics:
        off = [name for name in OFFLOADS if nic.offloads.get(name) is False]
        if not nic.physical or not nic.up or OFFLOADS.keys().isdisjoint(nic.offloads):
            continue
        if not off:
            yield Verdict(nic.device, "on", "on")
            continue
        words = " ".join(f"{OFFLOADS[name]} on" for name in off)
        yield Verdict(nic.device, f"off: {', '.join(off)}", "on", fixes.ethtool(nic, "-K", words, caution=caution))


_SHARED_UP_TO_MBPS = 10_000  # the ports of the documents


@check(
    "network.ceph-networks-apart",
    "Keep Ceph's cluster network on other ports than its public one.",
    f"Physical ports of up to {_SHARED_UP_TO_MBPS // 1000} Gb/s that are up and carry Ceph's traffic. Faster ports "
    "often carry both on purpose.",
    "Each write from a client becomes two or more between OSDs, and recovery can fill the port that clients use. Still "
    "so on Ceph 20, which works with one network and recommends two for large clusters; fast ports matter more.",
    "unnoba-2020, 4.4.3; INFN 2025, 6.2; Ceph: network configuration reference",
    Severity.INFO,
    "ceph config set global cluster_network <network>",
)
def networks_apart(facts: NetworkFacts) -> Iterator[Verdict]:
    expected = "one of the two networks"
    for nic in facts.nics:
        if not nic.physical or not nic.up or not nic.roles or not 0 < (nic.speed_mbps or 0) <= _SHARED_UP_TO_MBPS:
            continue
        caution = "This only shows. A network on other ports comes first; restart the OSDs of one host at a time then."
        fix = Fix("ceph config get osd cluster_network", caution=caution) if {PUBLIC, CLUSTER} <= nic.roles else None
        actual = f"{_bits(nic.speed_mbps or 0)} for both" if fix else ", ".join(sorted(nic.roles))
        yield Verdict(nic.device, actual, expected, fix)


CHECKS = (below_capability, half_duplex, mtu_differs, offloads_off, networks_apart)
