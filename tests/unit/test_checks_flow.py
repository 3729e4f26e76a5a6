"""Pause frames and interrupt moderation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plumbline.checks.facts import Coalescing, Count, Nic
from plumbline.checks.model import Severity
from plumbline.checks.network.flow import COALESCING_OFF, PAUSE_OFF
from support.facts import LOOPBACK, NIC, VIRTUAL, on, only

NO_PAUSE = replace(NIC, pause_receive=False, pause_transmit=False)


@pytest.mark.parametrize(
    "nic",
    [
        LOOPBACK,
        VIRTUAL,
        replace(VIRTUAL, pause_receive=False, pause_transmit=False),
        replace(NIC, pause_receive=None, pause_transmit=None),
        replace(NO_PAUSE, up=False),
        pytest.param(replace(NO_PAUSE, pause_frames_received=Count(900, 5)), id="paused by the other end already"),
    ],
)
def test_pause_does_not_apply(nic: Nic) -> None:
    assert only(PAUSE_OFF, on(nic)) is None


def test_pause_met() -> None:
    found = only(PAUSE_OFF, on(NIC))
    assert found is not None
    assert (found.met, found.is_) == (True, "receive on, transmit on")


def test_pause_met_while_paused() -> None:
    found = only(PAUSE_OFF, on(replace(NIC, pause_frames_received=Count(900, 5))))
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    ("changes", "severity", "is_"),
    [
        ({}, Severity.INFO, "receive off, transmit off"),
        ({"pause_receive": True}, Severity.INFO, "receive on, transmit off"),
        ({"fifo_drops": Count(5, 5)}, Severity.WARNING, "receive off, transmit off"),
        ({"ring_drops": Count(5, 5)}, Severity.WARNING, "receive off, transmit off"),
        ({"ring_drops": Count(5, 0)}, Severity.INFO, "receive off, transmit off"),
    ],
)
def test_pause_not_met(changes: dict[str, object], severity: Severity, is_: str) -> None:
    found = only(PAUSE_OFF, on(replace(NO_PAUSE, **changes)))  # type: ignore[arg-type]
    assert found is not None
    assert (found.met, found.severity, found.is_) == (False, severity, is_)
    assert found.fix is not None
    assert found.fix.now == "ethtool -A ens2f0 rx on tx on"
    assert found.fix.keep is not None
    assert 'RUN+="/usr/sbin/ethtool -A $name rx on tx on"' in found.fix.keep.content


@pytest.mark.parametrize(
    "nic",
    [
        LOOPBACK,
        replace(VIRTUAL, rx_coalescing=Coalescing(0, 1, False)),
        replace(NIC, rx_coalescing=None),
        replace(NIC, rx_coalescing=Coalescing(None, 1, None)),
        replace(NIC, rx_coalescing=Coalescing(0, 1, False), up=False),
    ],
)
def test_coalescing_does_not_apply(nic: Nic) -> None:
    assert only(COALESCING_OFF, on(nic)) is None


@pytest.mark.parametrize(
    "coalescing",
    [
        Coalescing(8, 128, True),
        Coalescing(0, 0, True),
        Coalescing(50, 0, None),
        Coalescing(0, 64, False),
        Coalescing(None, 64, None),
    ],
)
def test_coalescing_met(coalescing: Coalescing) -> None:
    found = only(COALESCING_OFF, on(replace(NIC, rx_coalescing=coalescing)))
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    ("rx", "tx", "is_", "command"),
    [
        (
            Coalescing(0, 1, False),
            Coalescing(0, 1, False),
            "adaptive off, rx-usecs 0, rx-frames 1",
            "ethtool -C ens2f0 adaptive-rx on adaptive-tx on",
        ),
        (
            Coalescing(0, 1, False),
            Coalescing(0, 1, None),
            "adaptive off, rx-usecs 0, rx-frames 1",
            "ethtool -C ens2f0 adaptive-rx on",
        ),
        (Coalescing(0, 0, None), None, "rx-usecs 0, rx-frames 0", "ethtool -C ens2f0 rx-usecs 8 rx-frames 128"),
        (Coalescing(0, None, None), None, "rx-usecs 0", "ethtool -C ens2f0 rx-usecs 8"),
    ],
)
def test_coalescing_not_met(rx: Coalescing, tx: Coalescing | None, is_: str, command: str) -> None:
    found = only(COALESCING_OFF, on(replace(NIC, rx_coalescing=rx, tx_coalescing=tx)))
    assert found is not None
    assert (found.met, found.severity, found.is_) == (False, Severity.INFO, is_)
    assert found.fix is not None
    assert found.fix.now == command
