"""Receive rings: who is told to enlarge them, and who is left in peace."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.checks.growth import Count
from plumbline.checks.model import Severity
from plumbline.checks.network.facts import Nic
from plumbline.checks.network.receive import ring_below_maximum
from plumbline.sources.net.port_settings import RingSizes
from support.facts import LOOPBACK, NIC, VIRTUAL, on, only

SMALL = replace(NIC, rings=RingSizes(rx=453, rx_max=4078), storage=None)
DROPPING = Count(750466, 12)


@pytest.mark.parametrize(
    "nic",
    [
        pytest.param(LOOPBACK, id="a loopback has no ring"),
        pytest.param(VIRTUAL, id="a hypervisor's port"),
        pytest.param(
            replace(VIRTUAL, rings=RingSizes(rx=128, rx_max=256), ring_drops=DROPPING), id="even when it drops"
        ),
        pytest.param(replace(NIC, rings=RingSizes()), id="the driver does not tell its ring"),
        pytest.param(replace(NIC, rings=RingSizes(rx=453, rx_max=None)), id="nor its maximum"),
        pytest.param(replace(NIC, rings=RingSizes(rx=453, rx_max=0)), id="a maximum of nothing"),
        pytest.param(replace(SMALL, driver=None), id="nobody knows what it is"),
        pytest.param(SMALL, id="nothing dropped, and nobody said that it carries storage"),
        pytest.param(replace(SMALL, storage=False), id="nothing dropped, and it does not carry storage"),
        pytest.param(replace(SMALL, ring_drops=None), id="drops not known"),
    ],
)
def test_does_not_apply(nic: Nic) -> None:
    assert only(ring_below_maximum, on(nic)) is None


@pytest.mark.parametrize("drops", [Count(0, 0), DROPPING, None])
def test_met_at_the_maximum_whatever_was_dropped(drops: Count | None) -> None:
    found = only(ring_below_maximum, on(replace(NIC, ring_drops=drops)))
    assert found is not None
    assert (found.met, found.actual, found.fix) == (True, "4,078 of 4,078", None)


@pytest.mark.parametrize(
    ("changes", "severity", "actual"),
    [
        (
            {"ring_drops": DROPPING},
            Severity.WARNING,
            "453 of 4,078; dropped for lack of a descriptor: 750,466 frames since boot, 12 of them recently",
        ),
        (
            {"ring_drops": Count(750466)},
            Severity.WARNING,
            "453 of 4,078; dropped for lack of a descriptor: 750,466 frames since boot",
        ),
        (
            {"ring_drops": Count(750466, 0)},
            Severity.INFO,
            "453 of 4,078; dropped for lack of a descriptor: 750,466 frames since boot, none recently",
        ),
        ({"storage": True}, Severity.INFO, "453 of 4,078"),
        ({"storage": True, "ring_drops": None}, Severity.INFO, "453 of 4,078"),
    ],
)
def test_not_met(changes: dict[str, object], severity: Severity, actual: str) -> None:
    found = only(ring_below_maximum, on(replace(SMALL, **changes)))  # type: ignore[arg-type]
    assert found is not None
    assert (found.met, found.severity, found.actual) == (False, severity, actual)
    assert found.expected == "4,078, the driver's maximum"


def test_the_fix() -> None:
    found = only(ring_below_maximum, on(replace(SMALL, ring_drops=DROPPING)))
    assert found is not None
    assert found.fix is not None
    assert found.fix.now == "ethtool -G ens2f0 rx 4078"
    assert found.fix.keep is not None
    assert found.fix.keep.file == "/etc/udev/rules.d/90-storage-network.rules"
    assert found.fix.keep.content == (
        'ACTION=="add", SUBSYSTEM=="net", KERNELS=="0000:3b:00.0", RUN+="/usr/sbin/ethtool -G $name rx 4078"'
    )
    assert "one host at a time" in found.fix.caution


def test_a_name_that_a_shell_or_udev_would_read_is_harmless() -> None:
    evil = replace(SMALL, device='e$(id);"*', bus="?", ring_drops=DROPPING)
    found = only(ring_below_maximum, on(evil))
    assert found is not None
    assert found.fix is not None
    assert found.fix.now == "ethtool -G 'e$(id);\"*' rx 4078"
    assert found.fix.keep is not None
    assert 'KERNEL=="e?(id);??"' in found.fix.keep.content
