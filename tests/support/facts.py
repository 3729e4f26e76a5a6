"""Facts about a host that has nothing to be mended, to be changed one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plumbline.checks.growth import Count
from plumbline.checks.model import Check, Finding
from plumbline.checks.network.facts import NetworkFacts, Nic, SoftnetCpu
from plumbline.sources.kernel.sysctl import SysctlReading
from plumbline.sources.net.infiniband import InfinibandPort, InfinibandReading
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.nic_interrupts import IrqBalance
from plumbline.sources.net.port_settings import Coalescing, Moderation, PauseConfig, RingSizes


def interrupts(share_max: float, vectors: int) -> IrqBalance:
    """Interrupts of which the busiest CPU had this share."""
    return IrqBalance(
        "", per_second=1000.0, active_vectors=vectors, share_max=share_max, effective_cpus=1.0, numa_remote=None
    )


def moderated(receive: Moderation, transmit: Moderation = Moderation()) -> Coalescing:  # noqa: B008  (it is frozen)
    """Interrupt moderation of a port."""
    return Coalescing(receive, transmit)


def sysctls(values: Mapping[str, tuple[int, ...]]) -> SysctlReading:
    """These settings."""
    return SysctlReading(values, {})


def infiniband(
    state: int | None = None, link: int | None = None, layer: str = "InfiniBand", device: str = "mlx4_0", **ipoib: bool
) -> InfinibandReading:
    """One port, and IPoIB interfaces."""
    port = InfinibandPort(device, "1", layer, "", "", "", state, link, None, {}, {})
    return InfinibandReading((port,), ipoib)


NIC = Nic(
    "ens2f0",
    driver="bnx2x",
    bus="0000:3b:00.0",
    up=True,
    storage=True,
    mtu_bytes=1500,
    speed_mbps=10_000,
    modes=LinkModes(full_duplex=True, max_speed_mbps=10_000),
    rings=RingSizes(rx=4078, rx_max=4078),
    ring_drops=Count(0, 0),
    fifo_drops=Count(0, 0),
    pause=PauseConfig(False, receive=True, transmit=True),
    pause_frames_received=Count(0, 0),
    coalescing=moderated(Moderation(8, 128, True), Moderation(8, 128, True)),
    offloads={"rx-checksumming": True, "tcp-segmentation-offload": True},
    interrupts=interrupts(0.15, 8),
)
VIRTUAL = Nic(
    "eth0",
    driver="virtio_net",
    bus="0000:00:03.0",
    up=True,
    mtu_bytes=1400,
    rings=RingSizes(rx=256, rx_max=256),
    ring_drops=Count(0, 0),
    offloads={"tcp-segmentation-offload": True},
)
LOOPBACK = Nic("lo", driver="loopback", up=True, mtu_bytes=65536)
QUIET = tuple(SoftnetCpu(cpu, Count(1_000_000, 1000), Count(0, 0), Count(0, 0)) for cpu in range(8))


def only(check: Check[NetworkFacts], facts: NetworkFacts) -> Finding | None:
    """The one finding of a check, or that there is none."""
    found = list(check.findings(facts))
    assert len(found) <= 1
    return found[0] if found else None


def on(*nics: Nic, softnet: Iterable[SoftnetCpu] = QUIET) -> NetworkFacts:
    """A host with these interfaces, looked at for two seconds."""
    return NetworkFacts(window_s=2.0, nics=nics, softnet=tuple(softnet))
