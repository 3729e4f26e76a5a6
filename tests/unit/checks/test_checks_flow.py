"""Pause frames and interrupt moderation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.checks.growth import Count
from plumbline.checks.model import Severity
from plumbline.checks.network.facts import Nic
from plumbline.checks.network.receive import coalescing_off, pause_off
from plumbline.sources.net.port_settings import Moderation, PauseConfig
from support.facts import LOOPBACK, NIC, VIRTUAL, moderated, on, only

OFF = PauseConfig(False, receive=False, transmit=False)
NO_PAUSE = replace(NIC, pause=OFF)


@pytest.mark.parametrize(
    "nic",
    [
        LOOPBACK,
        VIRTUAL,
        replace(VIRTUAL, pause=OFF),
        replace(NIC, pause=None),
        replace(NIC, pause=PauseConfig(None, receive=None, transmit=None)),
        replace(NO_PAUSE, up=False),
        pytest.param(replace(NO_PAUSE, pause_frames_received=Count(900, 5)), id="paused by the other end already"),
    ],
)
def test_pause_does_not_apply(nic: Nic) -> None:
    assert only(pause_off, on(nic)) is None


def test_pause_met() -> None:
    found = only(pause_off, on(NIC))
    assert found is not None
    assert (found.met, found.actual) == (True, "receive on, transmit on")


def test_pause_met_while_paused() -> None:
    found = only(pause_off, on(replace(NIC, pause_frames_received=Count(900, 5))))
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    ("changes", "severity", "actual"),
    [
        ({}, Severity.INFO, "receive off, transmit off"),
        ({"pause": PauseConfig(False, receive=True, transmit=False)}, Severity.INFO, "receive on, transmit off"),
        ({"fifo_drops": Count(5, 5)}, Severity.WARNING, "receive off, transmit off"),
        ({"ring_drops": Count(5, 5)}, Severity.WARNING, "receive off, transmit off"),
        ({"ring_drops": Count(5, 0)}, Severity.INFO, "receive off, transmit off"),
    ],
)
def test_pause_not_met(changes: dict[str, object], severity: Severity, actual: str) -> None:
    found = only(pause_off, on(replace(NO_PAUSE, **changes)))  # type: ignore[arg-type]
    assert found is not None
    assert (found.met, found.severity, found.actual) == (False, severity, actual)
    assert found.fix is not None
    assert found.fix.now == "ethtool -A ens2f0 rx on tx on"
    assert found.fix.keep is not None
    assert 'RUN+="/usr/sbin/ethtool -A $name rx on tx on"' in found.fix.keep.content


@pytest.mark.parametrize(
    "nic",
    [
        LOOPBACK,
        replace(VIRTUAL, coalescing=moderated(Moderation(0, 1, False))),
        replace(NIC, coalescing=None),
        replace(NIC, coalescing=moderated(Moderation(None, 1, None))),
        replace(NIC, coalescing=moderated(Moderation(0, 1, False)), up=False),
    ],
)
def test_coalescing_does_not_apply(nic: Nic) -> None:
    assert only(coalescing_off, on(nic)) is None


@pytest.mark.parametrize(
    "rx",
    [
        Moderation(8, 128, True),
        Moderation(0, 0, True),
        Moderation(50, 0, None),
        Moderation(0, 64, False),
        Moderation(None, 64, None),
    ],
)
def test_coalescing_met(rx: Moderation) -> None:
    found = only(coalescing_off, on(replace(NIC, coalescing=moderated(rx))))
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    ("rx", "tx", "actual", "command"),
    [
        (
            Moderation(0, 1, False),
            Moderation(0, 1, False),
            "adaptive off, rx-usecs 0, rx-frames 1",
            "ethtool -C ens2f0 adaptive-rx on adaptive-tx on",
        ),
        (
            Moderation(0, 1, False),
            Moderation(0, 1, None),
            "adaptive off, rx-usecs 0, rx-frames 1",
            "ethtool -C ens2f0 adaptive-rx on",
        ),
        (Moderation(0, 0, None), Moderation(), "rx-usecs 0, rx-frames 0", "ethtool -C ens2f0 rx-usecs 8 rx-frames 128"),
        (Moderation(0, None, None), Moderation(), "rx-usecs 0", "ethtool -C ens2f0 rx-usecs 8"),
    ],
)
def test_coalescing_not_met(rx: Moderation, tx: Moderation, actual: str, command: str) -> None:
    found = only(coalescing_off, on(replace(NIC, coalescing=moderated(rx, tx))))
    assert found is not None
    assert (found.met, found.severity, found.actual) == (False, Severity.INFO, actual)
    assert found.fix is not None
    assert found.fix.now == command
