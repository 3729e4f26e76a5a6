"""Flow control (802.3x pause frames) and interrupt moderation: both are on by default and should stay on."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks import fixes
from plumbline.checks.model import Check, Severity, Verdict
from plumbline.checks.network.facts import NetworkFacts, Nic
from plumbline.sources.net.coalesce import Coalescing, Moderation

_AUTHOR_DELAY_US = 8  # Figura 35: rx-usecs 8, rx-frames 128
_AUTHOR_FRAMES = 128


def _pause_off(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        if not nic.physical or not nic.up or nic.pause is None:
            continue
        receive, transmit = nic.pause.receive, nic.pause.transmit
        if receive is None or transmit is None:
            continue
        is_ = f"receive {_on(receive)}, transmit {_on(transmit)}"
        should = "receive on, transmit on"
        if receive and transmit:
            yield Verdict(nic.device, is_, should)
            continue
        if _paused_by_others(nic):
            continue
        yield Verdict(
            nic.device,
            is_,
            should,
            fixes.ethtool(nic, "-A", "rx on tx on", caution=_PAUSE_CAUTION),
            Severity.WARNING if nic.loses else None,
            "Frames are being lost here for want of room." if nic.loses else "",
        )


def _paused_by_others(nic: Nic) -> bool:
    """Whether the other end already pauses this port, which must then not be advised to send pause frames too."""
    return nic.pause_frames_received is not None and nic.pause_frames_received.grows


_PAUSE_CAUTION = (
    "The switch's port has to have flow control on too. Not with RoCE and priority flow control, which excludes this "
    "one. " + fixes.RESETS_LINK
)

PAUSE_OFF = Check(
    "network.pause-off",
    "Have flow control (pause frames) on, on the port and on the switch.",
    "Real ports that are up and have 802.3x flow control; not while the other end keeps pausing this one.",
    "When the buffers are full the switch holds the packets back for some milliseconds, instead of the port losing "
    "them.",
    "unnoba-2020, 5.2.1 (Figura 33) and 10.1; ethtool(8) -a, -A",
    Severity.INFO,
    _pause_off,
    "ethtool -A <device> rx on tx on",
)


def _coalescing_off(facts: NetworkFacts) -> Iterator[Verdict]:
    for nic in facts.nics:
        if not nic.physical or not nic.up or nic.coalescing is None:
            continue
        rx = nic.coalescing.receive
        if _moderates(rx) is None:
            continue
        should = "adaptive, or some microseconds or frames an interrupt"
        if _moderates(rx):
            yield Verdict(nic.device, _shown(rx), should)
            continue
        yield Verdict(nic.device, _shown(rx), should, fixes.ethtool(nic, "-C", _moderation(nic.coalescing)))


def _moderates(rx: Moderation) -> bool | None:
    """``None``: the driver reports too little. No delay and at most one frame is an interrupt for every frame."""
    if rx.adaptive or rx.delay_us or (rx.frames or 0) > 1:
        return True
    if rx.delay_us is None:
        return None
    return False


def _moderation(now: Coalescing) -> str:
    """Adaptive mode where the driver has one, else the author's figures."""
    rx = now.receive
    if rx.adaptive is not None:
        return "adaptive-rx on" + (" adaptive-tx on" if now.transmit.adaptive is False else "")
    return f"rx-usecs {_AUTHOR_DELAY_US}" + (f" rx-frames {_AUTHOR_FRAMES}" if rx.frames is not None else "")


def _shown(rx: Moderation) -> str:
    parts = [] if rx.adaptive is None else [f"adaptive {_on(rx.adaptive)}"]
    if rx.delay_us is not None:
        parts.append(f"rx-usecs {rx.delay_us:g}")
    if rx.frames is not None:
        parts.append(f"rx-frames {rx.frames}")
    return ", ".join(parts)


COALESCING_OFF = Check(
    "network.coalescing-off",
    "Have interrupt moderation (coalescing) on.",
    "Real ports that are up and whose driver tells its moderation.",
    "An interrupt for every packet costs the CPU that should empty the ring. Latency probes may want it so; then "
    "leave it.",
    "unnoba-2020, 5.2.2 (Figura 35) and 10.1; ethtool(8) -c, -C",
    Severity.INFO,
    _coalescing_off,
    "ethtool -C <device> adaptive-rx on",
)


def _on(enabled: bool) -> str:
    return "on" if enabled else "off"


CHECKS = (PAUSE_OFF, COALESCING_OFF)
