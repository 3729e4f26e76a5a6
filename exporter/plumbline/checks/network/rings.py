"""Receive rings and the port's own buffer: is there room for a burst while the host is busy?"""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks import fixes
from plumbline.checks.growth import Count
from plumbline.checks.model import Check, Severity, Verdict
from plumbline.checks.network.facts import NetworkFacts, Nic
from plumbline.checks.text import counted


def _ring_below_maximum(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        entries, most = nic.rings.rx, nic.rings.rx_max
        if not nic.physical or entries is None or not most:
            continue
        is_ = f"{entries:,} of {most:,}"
        should = f"{most:,}, the driver's maximum"
        if entries >= most:
            yield Verdict(nic.device, is_, should)
            continue
        severity = _severity(nic)
        if severity is None:
            continue
        if nic.ring_drops is not None and nic.ring_drops.total:
            is_ += f"; for want of a descriptor it dropped {counted(nic.ring_drops, 'frame')}"
        fix = fixes.ethtool(nic, "-G", f"rx {most}", caution=fixes.RESETS_LINK)
        yield Verdict(nic.device, is_, should, fix, severity)


def _severity(nic: Nic) -> Severity | None:
    """``None``: no reason for a larger ring, which costs cache and latency: no lost frames, no storage traffic."""
    drops = nic.ring_drops or Count(0, 0)
    if drops.grows or (drops.grew is None and drops.total):
        return Severity.WARNING
    return Severity.INFO if drops.total or nic.storage else None


RING_BELOW_MAXIMUM = Check(
    "network.ring-below-maximum",
    "Give the receive ring as many descriptors as the driver allows.",
    "Real ports with a ring below its maximum that have dropped frames for want of a descriptor, or that carry Ceph's "
    "traffic. Ports at the maximum are met. Not a hypervisor's ports: the host side sizes those.",
    "A larger ring gives the kernel more time to process packets before new ones are lost.",
    "unnoba-2020, 5.2.3 (Figuras 37, 38) and 10.1; ethtool(8) -g, -G",
    Severity.WARNING,
    _ring_below_maximum,
    "ethtool -G <device> rx <maximum>",
)

CHECKS = (RING_BELOW_MAXIMUM,)
