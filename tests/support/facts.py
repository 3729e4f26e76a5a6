"""Facts about a host that has nothing to be mended, to be changed one at a time."""

from __future__ import annotations

from collections.abc import Iterable

from plumbline.checks.facts import Coalescing, Count, NetworkFacts, Nic, Ring, SoftnetCpu
from plumbline.checks.model import Check, Finding

NIC = Nic(
    "ens2f0",
    driver="bnx2x",
    bus="0000:3b:00.0",
    physical=True,
    up=True,
    storage=True,
    mtu_bytes=1500,
    speed_bits_per_second=10e9,
    max_speed_bits_per_second=10e9,
    full_duplex=True,
    rx_ring=Ring(4078, 4078),
    tx_ring=Ring(4078, 4078),
    ring_drops=Count(0, 0),
    fifo_drops=Count(0, 0),
    pause_receive=True,
    pause_transmit=True,
    pause_autonegotiated=False,
    pause_frames_received=Count(0, 0),
    pause_frames_transmitted=Count(0, 0),
    rx_coalescing=Coalescing(8, 128, True),
    tx_coalescing=Coalescing(8, 128, True),
    offloads={"rx-checksumming": True, "tcp-segmentation-offload": True},
    channels=8,
    irq_share_max_ratio=0.15,
    irq_active_vectors=8,
)
VIRTUAL = Nic(
    "eth0",
    driver="virtio_net",
    bus="0000:00:03.0",
    physical=False,
    up=True,
    mtu_bytes=1400,
    rx_ring=Ring(256, 256),
    tx_ring=Ring(256, 256),
    ring_drops=Count(0, 0),
    offloads={"tcp-segmentation-offload": True},
    channels=1,
)
LOOPBACK = Nic("lo", driver="loopback", physical=False, up=True, mtu_bytes=65536)
QUIET = tuple(SoftnetCpu(cpu, Count(1_000_000, 1000), Count(0, 0), Count(0, 0)) for cpu in range(8))


def only(check: Check[NetworkFacts], facts: NetworkFacts) -> Finding | None:
    """The one finding of a check, or that there is none."""
    found = list(check.findings(facts))
    assert len(found) <= 1
    return found[0] if found else None


def on(*nics: Nic, softnet: Iterable[SoftnetCpu] = QUIET) -> NetworkFacts:
    """A host with these interfaces, looked at for two seconds."""
    return NetworkFacts(window_s=2.0, nics=nics, softnet=tuple(softnet))
