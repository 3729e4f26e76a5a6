"""InfiniBand ports and IP over them."""

from __future__ import annotations

import pytest

from plumbline.checks.model import Severity
from plumbline.checks.network.bonds import datagram, inactive
from plumbline.checks.network.facts import NetworkFacts, Nic
from plumbline.sources.net.infiniband import InfinibandReading
from support.facts import infiniband, only


@pytest.mark.parametrize(("state", "link"), [(None, 5), (4, None), (1, 2)])
def test_a_port_without_a_link_or_a_state_says_nothing(state: int | None, link: int | None) -> None:
    assert only(inactive, NetworkFacts(infiniband=infiniband(state, link))) is None


def test_roce_needs_no_subnet_manager() -> None:
    assert only(inactive, NetworkFacts(infiniband=infiniband(2, 5, "Ethernet"))) is None


def test_active_as_on_the_slide() -> None:
    found = only(inactive, NetworkFacts(infiniband=infiniband(4, 5)))
    assert found is not None
    assert (found.met, found.subject, found.actual) == (True, "mlx4_0/1", "ACTIVE, LinkUp")


def test_a_link_that_no_subnet_manager_has_configured() -> None:
    found = only(inactive, NetworkFacts(infiniband=infiniband(2, 5, device="qib0")))
    assert found is not None
    assert (found.met, found.severity) == (False, Severity.WARNING)
    assert found.fix is not None
    assert found.fix.now == "ibstat qib0 1"


def ipoib(connected: bool, driver: str | None = "mlx4_core", up: bool = True) -> NetworkFacts:
    return NetworkFacts(nics=(Nic("ib0", driver, up=up),), infiniband=InfinibandReading((), {"ib0": connected}))


@pytest.mark.parametrize(
    "facts",
    [
        ipoib(False, driver="mlx5_core[ib_ipoib]"),
        ipoib(False, driver=None),
        ipoib(False, up=False),
        NetworkFacts(infiniband=InfinibandReading((), {"ib0": False})),
    ],
)
def test_mode_does_not_apply(facts: NetworkFacts) -> None:
    assert only(datagram, facts) is None


def test_mode() -> None:
    met = only(datagram, ipoib(True))
    assert met is not None
    assert met.met
    found = only(datagram, ipoib(False))
    assert found is not None
    assert (found.met, found.severity) == (False, Severity.INFO)
    assert found.fix is not None
    assert found.fix.now == "echo connected > /sys/class/net/ib0/mode && ip link set dev ib0 mtu 65520"
    assert found.fix.keep is not None
    assert found.fix.keep.content == f"up {found.fix.now}"
